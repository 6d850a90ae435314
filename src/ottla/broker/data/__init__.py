"""Records in and out: what clients ask of the partitions that this node leads.

    produce              batches into logs; batch_checks decides what a batch must be, ordinary_batch at a glance
    fetch                bytes out of logs; fetch_reader reads one partition, fetch_sessions remembers what clients read
    produce_replies, fetch_replies     what replies are made like
    ordinary_fetch       the fetch that is sent most; fetch_lookup which partitions any other names
    replica_selector     which replica a consumer is to read from
    list_offsets, offset_for_leader_epoch, delete_records
    repeated_produce, repeated_fetch   requests like one before them, which are not decoded
    leader_hints         where a leader is, for a client that asked the wrong node

Import from the modules.
"""
