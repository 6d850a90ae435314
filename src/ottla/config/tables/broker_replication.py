"""Replication. How followers keep up, and when a replica counts as in sync."""

from ottla.config.bounds import at_least
from ottla.config.setting import ANY, CLUSTER_WIDE, HIGH, MEDIUM, Flag, Int, Long, Text

SETTINGS = (
    Long("replica.lag.time.max.ms", 30_000, ANY, HIGH,
         "Time that a follower may be behind its leader's end before it leaves the in-sync set.", acted_on=True),
    Int("replica.fetch.min.bytes", 1, ANY, HIGH,
        "Bytes that a follower's fetch waits for.", acted_on=True),
    Int("replica.fetch.wait.max.ms", 500, ANY, HIGH,
        "Longest that a follower's fetch waits for them; less than `replica.lag.time.max.ms`.", acted_on=True),
    Int("replica.fetch.max.bytes", 1_048_576, at_least(0), MEDIUM,
        "Bytes that a follower asks for from one partition; a bigger first batch comes whole all the same.",
        acted_on=True),
    Int("replica.fetch.response.max.bytes", 10_485_760, at_least(0), MEDIUM,
        "Bytes that a follower asks for in one reply over all partitions.", acted_on=True),
    Int("replica.fetch.backoff.ms", 1000, at_least(0), MEDIUM,
        "Pause of a follower after a partition's fetch failed.", acted_on=True),
    Int("replica.socket.timeout.ms", 30_000, ANY, HIGH,
        "How long a follower waits on its connection; at least `replica.fetch.wait.max.ms`.", acted_on=True),
    Int("replica.socket.receive.buffer.bytes", 65_536, ANY, HIGH,
        "Kernel receive buffer of a follower's connection."),
    Int("num.replica.fetchers", 1, at_least(1), HIGH,
        "Connections over which a follower fetches from each leader it follows.", CLUSTER_WIDE, acted_on=True),
    Int("num.replica.alter.log.dirs.threads", None, ANY, HIGH,
        "Threads that move replicas between this node's directories. Not given, one a directory.", acted_on=True),
    Long("replica.high.watermark.checkpoint.interval.ms", 5000, ANY, HIGH,
         "Time between two writes of the high watermarks to disk.", acted_on=True),
    Text("replica.selector.class", None, ANY, MEDIUM,
         "Class that picks the replica a consumer reads from (KIP-392). Not given, always the leader. Kafka's "
         "`RackAwareReplicaSelector` is known: a replica in the rack of the consumer.", acted_on=True),
    Int("min.insync.replicas", 1, at_least(1), HIGH,
        "Default of a topic's `min.insync.replicas`: the replicas in sync that acks=all needs.",
        CLUSTER_WIDE, acted_on=True),
    Flag("unclean.leader.election.enable", False, ANY, HIGH,
         "Default of a topic's `unclean.leader.election.enable`: whether a replica out of sync may lead, at the price "
         "of records.", CLUSTER_WIDE, acted_on=True),
    Flag("auto.leader.rebalance.enable", True, ANY, HIGH,
         "Whether the controller gives leadership back to preferred replicas by itself.", acted_on=True),
    Long("leader.imbalance.check.interval.seconds", 300, at_least(1), HIGH,
         "Time between two such checks.", acted_on=True),
)
