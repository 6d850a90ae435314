"""Pure state machines: events and time come in, effects and decisions go out. Nothing here touches the world.

    decision             the shape of a log-backed machine: decisions are records, and only records change it
    coordinator_machine  the same for coordinators, with answers and timers
    patterns             regular expressions that clients send, in linear time

The machines, each a room with a map of its own:

    raft                 who leads the metadata log, and what of it is committed
    metadata             the image that records make, and the controller that decides on them
    partition            one partition's replication: its leader and its followers
    group                consumer groups, of both protocols
    transaction          transactional ids, and how each transaction ends
    quota                how much a client may take
"""
