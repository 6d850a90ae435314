"""What a broker answers: one small module per API or family of APIs, from the decoded request to the reply.

    dispatch             the table: which API is answered by whom
    context              `Broker`: what every handler is given

Records:

    produce, fetch       the two that matter; fetch_reader reads a partition, fetch_sessions remembers clients
    list_offsets, offset_for_leader_epoch, delete_records, producers, init_producer_id, log_dirs
    purgatory            requests that wait for records, for replicas or for the disk
    leader_hints         where a leader is, for who asked the wrong node

Partitions:

    replicas             from metadata to open logs; directory_assignments tells the controller where they are
    replica_moves        those on their way to another directory; replica_move is one of them, replica_copy its copy,
                         and interrupted_moves puts right what a stop in the middle has left
    partition            one of them: its log, its leader's state, who waits for it
    topic_settings       the settings it lives by
    flushing, background what happens on disk threads and without being asked
    cleaner              which logs are due for compaction; cleaner_task is one of them, cleaner_process and
                         cleaner_worker the two ends of the process that does it; removing takes files away
    traffic, producer_ids

Groups:

    coordination         the driver of everything whose state is a log; find_coordinator tells where it is
    join_group, sync_group, heartbeat, leave_group           the classic protocol; the machine is `machines.group`
    consumer_group_heartbeat, consumer_group_describe        the consumer protocol
    offset_commit, offset_fetch, offset_delete, list_groups, describe_groups, delete_groups

Transactions:

    transactions         their coordinators; the machine is `machines.transaction`
    add_partitions_to_txn, add_offsets_to_txn, end_txn, txn_offset_commit, describe_transactions, list_transactions
    transactional_produce, transaction_verification    what is asked before a transaction's first write to a partition
    transaction_markers  a decided end on its way to all partitions; marker_writing and write_txn_markers at each

The cluster:

    api_versions, metadata, topic_partitions, cluster, quorum, features, registration
    topics, elections, reassignments, topic_creation
    describe_configs, alter_configs, config_resources, config_entries, node_settings, loggers, quotas
    forwarding           a request to the controller and back
    cluster_view         the cluster as clients of one listener see it

Import from the modules.
"""
