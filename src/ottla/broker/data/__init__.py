"""Records in and out: what clients ask of the partitions that this node leads.

    produce              batches into logs; batch_checks decides what a batch must be
    fetch                bytes out of logs; fetch_reader reads one partition, fetch_sessions remembers what clients read
    follower_progress    what a follower's fetch tells: how far it is, and so where the high watermark is
    produce_replies, fetch_replies     what replies are made like
    plain_produce, plain_fetch         what most requests are, done by compiled code
    fetch_lookup         which partitions any other fetch names
    replica_selector     which replica a consumer is to read from
    list_offsets, offset_for_leader_epoch, delete_records
    leader_hints         where a leader is, for a client that asked the wrong node

Import from the modules.
"""
