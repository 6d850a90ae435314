"""The metadata log, and the driver that puts Raft, the controller and the disk together.

    metadata_log        the driver: decisions in, committed metadata out
    metadata_decisions  what the controller decides, until it is committed and answered
    snapshotter         when a snapshot is taken

Rooms, each of which knows only those above it:

    storage             the directory `__cluster_metadata-0`: batches, snapshots, quorum state, flushes
    quorum              elections and voters: what Raft orders, what replicas ask each other, who may vote
    replication         how the log gets from the leader to the replicas that follow it

Import from the modules.
"""
