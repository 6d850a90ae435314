"""Producers and their transactions. The machine is `ottla.machines.transaction`.

    init_producer_id, producer_ids, describe_producers
    transaction_coordinators     the transactions that this node coordinates
    add_partitions_to_txn, add_offsets_to_txn, end_txn, txn_offset_commit, describe_transactions, list_transactions
    transactional_produce, transaction_verification, coordinator_questions
                                 what is asked before a transaction's first write to a partition
    transaction_markers          a decided end on its way to all partitions
        marker_writing, write_txn_markers                  the end at each partition

Import from the modules.
"""
