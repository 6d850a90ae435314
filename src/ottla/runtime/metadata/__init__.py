"""The metadata log on disk, and the driver that puts Raft, the controller and the disk together.

    batches             metadata records to batches of the log, and back
    quorum_state_file   what a replica remembers of elections
    snapshots           `.checkpoint` files: named, written, read
    store               the directory `__cluster_metadata-0`: the log, its snapshots, its quorum state
    quorum              which quorum the directory belongs to
    quorum_driver       performs what Raft orders
    quorum_network      what is sent to other replicas
    quorum_answers      what other replicas ask: votes, and who leads
    voter_changes       adding and removing voters; raising kraft.version
    voter_place         what a controller asks of the quorum for itself
    metadata_leader     what a leader gives to those that fetch
    metadata_follower   fetching from the leader
    controller_machine  what the driver needs of the machine that decides
    quorum_view         what the node knows of the quorum, for clients and metrics
    snapshotter         when a snapshot is taken
    metadata_log        the driver: decisions in, committed metadata out

Import from the modules.
"""
