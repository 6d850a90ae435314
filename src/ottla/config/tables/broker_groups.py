"""Consumer groups. Their coordinator, both of their protocols, and the offsets topic."""

from ottla.config.bounds import Items, OneOf, at_least
from ottla.config.setting import ANY, CLUSTER_WIDE, HIGH, INT_MAX, MEDIUM, Int, List, Long, Short, Text

SETTINGS = (
    # The coordinator
    List("group.coordinator.rebalance.protocols", ("classic", "consumer", "streams"),
         Items(("consumer", "classic", "share", "streams"), may_be_empty=False), MEDIUM,
         "Group protocols that are served.", acted_on=True),
    Int("group.coordinator.threads", 4, at_least(1), HIGH,
        "Threads that run the groups' state machines."),
    Int("group.coordinator.background.threads", 2, at_least(1), HIGH,
        "Threads for the coordinator's slow work, such as matching regular expressions and computing assignments."),
    Int("group.coordinator.append.linger.ms", -1, at_least(-1), MEDIUM,
        "How long the coordinator gathers records before it writes them; -1 adapts to the load.", acted_on=True),
    Int("group.coordinator.cached.buffer.max.bytes", 1_048_588, at_least(524_288), MEDIUM,
        "Largest write buffer that the coordinator keeps for another use.", CLUSTER_WIDE),

    # The classic protocol
    Int("group.min.session.timeout.ms", 6000, ANY, MEDIUM,
        "Shortest session timeout that a member may ask for.", acted_on=True),
    Int("group.max.session.timeout.ms", 1_800_000, ANY, MEDIUM,
        "Longest session timeout that a member may ask for.", acted_on=True),
    Int("group.initial.rebalance.delay.ms", 3000, ANY, MEDIUM,
        "How long the first rebalance of an empty group waits for more members.", acted_on=True),
    Int("group.max.size", INT_MAX, at_least(1), MEDIUM,
        "Members of one group; more are refused.", acted_on=True),

    # The consumer protocol (KIP-848)
    Text("group.consumer.migration.policy", "bidirectional",
         OneOf(("DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL"), any_case=True), MEDIUM,
         "Which way a group may change between the classic and the consumer protocol while members of both are in it.",
         acted_on=True),
    List("group.consumer.assignors", ("uniform", "range"), Items(may_be_empty=False), MEDIUM,
         "Assignors on the broker, by name or class; the first is used by groups that ask for none.", acted_on=True),
    Int("group.consumer.session.timeout.ms", 45_000, at_least(1), MEDIUM,
        "Silence after which a member is removed.", acted_on=True),
    Int("group.consumer.min.session.timeout.ms", 45_000, at_least(1), MEDIUM,
        "Shortest session timeout that a group may be given.", acted_on=True),
    Int("group.consumer.max.session.timeout.ms", 60_000, at_least(1), MEDIUM,
        "Longest session timeout that a group may be given.", acted_on=True),
    Int("group.consumer.heartbeat.interval.ms", 5000, at_least(1), MEDIUM,
        "Time between two heartbeats that members are told to keep.", acted_on=True),
    Int("group.consumer.min.heartbeat.interval.ms", 5000, at_least(1), MEDIUM,
        "Shortest heartbeat interval that a group may be given.", acted_on=True),
    Int("group.consumer.max.heartbeat.interval.ms", 15_000, at_least(1), MEDIUM,
        "Longest heartbeat interval that a group may be given.", acted_on=True),
    Int("group.consumer.assignment.interval.ms", 1000, at_least(0), MEDIUM,
        "Shortest time between two computations of a group's assignment.", CLUSTER_WIDE, acted_on=True),
    Int("group.consumer.min.assignment.interval.ms", 0, at_least(0), MEDIUM,
        "Shortest assignment interval that a group may be given.", acted_on=True),
    Int("group.consumer.max.assignment.interval.ms", 15_000, at_least(0), MEDIUM,
        "Longest assignment interval that a group may be given.", acted_on=True),
    Int("group.consumer.max.size", INT_MAX, at_least(1), MEDIUM,
        "Members of one group; more are refused.", acted_on=True),

    # Offsets, and __consumer_offsets
    Int("offset.metadata.max.bytes", 4096, ANY, HIGH,
        "Longest note that may go with a committed offset.", acted_on=True),
    Int("offsets.commit.timeout.ms", 5000, at_least(1), HIGH,
        "How long a commit waits for the replicas of the offsets topic before it fails.", acted_on=True),
    Int("offsets.retention.minutes", 10_080, at_least(1), HIGH,
        "How long committed offsets are kept once their group is empty, or no longer reads their topic.",
        acted_on=True),
    Long("offsets.retention.check.interval.ms", 600_000, at_least(1), HIGH,
         "Time between two looks for offsets that are too old.", acted_on=True),
    Int("offsets.load.buffer.size", 5_242_880, at_least(1), HIGH,
        "Bytes read at a time while a coordinator loads a partition of `__consumer_offsets`; a bigger batch is read "
        "whole.", acted_on=True),
    Int("offsets.topic.num.partitions", 50, at_least(1), HIGH,
        "Partitions of `__consumer_offsets`; not to be changed once it exists.", acted_on=True),
    Short("offsets.topic.replication.factor", 3, at_least(1), HIGH,
          "Replicas of `__consumer_offsets`; it cannot be created with fewer brokers.", acted_on=True),
    Int("offsets.topic.segment.bytes", 104_857_600, at_least(1), HIGH,
        "Its `segment.bytes`: small, so that it is compacted and loaded fast.", acted_on=True),
    Int("offsets.topic.compression.codec", 0, ANY, HIGH,
        "Compression of its batches, by number: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.", acted_on=True),
)
