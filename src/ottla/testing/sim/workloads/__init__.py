"""What clients do in a simulated cluster, each an actor with real clients of ours, and what they have seen.

    history                what was sent, acknowledged, read and committed
    actor                  a program that has lives, as a node has
    producing              a producer's core, as these programs use it
    idempotent_writer      records to any partition
    transactional_writer   transactions over several partitions, some of them aborted
    group_reader           a consumer of a group, of either protocol
    topic_changer          topics that come, grow and go
    voter_changer          controllers that lose their vote, and get it again
    replica_mover          replicas that go from one log directory to another
    final_reader           reads everything when all is over

Import from the modules.
"""
