"""What clients do in a simulated cluster, each an actor with real clients of ours, and what they have seen.

    history                what was sent, acknowledged, read and committed, and what was asked for with it
    programs               the programs by name, and which of them a seed has
    topics                 the topics that they use, and what may be done to each
    actor                  a program that has lives, as a node has
    producing              a producer's core, as these programs use it
    idempotent_writer      records to any partition
    transactional_writer   transactions over several partitions, some of them aborted
    mixed_writer           producers of all kinds, one after the other: codecs, acks, sizes, transactions
    transformer            consumes, transforms and produces, exactly once
    housekeeper            topics that forget: DeleteRecords, retention, compaction
    group_reader           a consumer of a group, of either protocol
    topic_changer          topics that come, grow and go
    operator               reassignments and their cancellation, elections, settings, features, brokers unregistered
    voter_changer          controllers that lose their vote, and get it again
    replica_mover          replicas that go from one log directory to another
    majority               a minority is taken away, and the others have to serve
    final_reader           reads everything when all is over

Import from the modules.
"""
