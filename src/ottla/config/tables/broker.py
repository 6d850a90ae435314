"""The settings of a broker, a section an area."""

import sys

from ottla.config.bounds import Between, Items, NotEmpty, OneOf, Shaped, at_least
from ottla.config.setting import (
    ANY,
    CLUSTER_WIDE,
    HIGH,
    INT_MAX,
    LONG_MAX,
    LOW,
    MEDIUM,
    PER_BROKER,
    READ_ONLY,
    REQUIRED,
    Class,
    Double,
    Flag,
    Int,
    List,
    Long,
    Secret,
    Setting,
    Short,
    Text,
)
from ottla.config.tables import client

# The node. Who it is, what it does, and its threads.
NODE = (
    List("process.roles", REQUIRED, Items(("broker", "controller"), may_be_empty=False), HIGH,
         "What this node does: `broker` serves clients, `controller` votes on and leads the cluster's metadata; one or "
         "both.", acted_on=True),
    Int("node.id", REQUIRED, at_least(0), HIGH,
        "The number of this node; no two nodes of a cluster, of either role, have the same.", acted_on=True),
    Int("broker.id", -1, ANY, HIGH,
        "An older name of `node.id`; if both are given they must agree.", acted_on=True),
    Text("broker.rack", None, ANY, MEDIUM,
         "Where this node stands (rack, zone), so that replicas are spread and consumers can read from one near them.",
         acted_on=True),

    # Life in the cluster
    Int("broker.heartbeat.interval.ms", 2000, ANY, MEDIUM,
        "Time between two heartbeats of a broker to the controller.", acted_on=True),
    Int("broker.session.timeout.ms", 9000, ANY, MEDIUM,
        "Silence after which the controller counts a broker as gone.", acted_on=True),
    Int("initial.broker.registration.timeout.ms", 60_000, ANY, MEDIUM,
        "How long a starting broker tries to register with the controller before it gives up and exits.",
        acted_on=True),
    Flag("controlled.shutdown.enable", True, ANY, MEDIUM,
         "Whether a stopping broker hands its leaderships over first.", acted_on=True),
    Flag("delete.topic.enable", True, ANY, HIGH,
         "Whether topics can be deleted; if not, a deletion is refused.", acted_on=True),

    # Threads and queues
    Int("num.io.threads", 8, at_least(1), HIGH,
        "Threads that carry out requests, disk work included.", CLUSTER_WIDE),
    Int("num.network.threads", 3, at_least(1), HIGH,
        "Threads of a listener that read requests from the network and write replies to it.", CLUSTER_WIDE),
    Int("background.threads", 10, at_least(1), HIGH,
        "Threads for periodic work: deletion, flushing, checkpoints.", CLUSTER_WIDE),
    Int("queued.max.requests", 500, at_least(1), HIGH,
        "Requests that may wait to be carried out before the network stops reading more."),
    Long("queued.max.request.bytes", -1, ANY, MEDIUM,
         "Bytes of requests that may wait before the network stops reading more; -1 is no limit.", acted_on=True),
    Int("request.timeout.ms", 30_000, ANY, HIGH,
        "How long this node, as the client of another, waits for a reply before it retries or fails.", acted_on=True),

    # Waiting rooms of requests that are not yet answered
    Int("fetch.purgatory.purge.interval.requests", 1000, ANY, MEDIUM,
        "Finished fetches that may stay in the waiting room before it is swept."),
    Int("producer.purgatory.purge.interval.requests", 1000, ANY, MEDIUM,
        "Finished produce requests that may stay in the waiting room before it is swept."),
    Int("delete.records.purgatory.purge.interval.requests", 1, ANY, MEDIUM,
        "Finished DeleteRecords requests that may stay in the waiting room before it is swept."),
    Int("share.fetch.purgatory.purge.interval.requests", 1000, ANY, MEDIUM,
        "Finished share fetches that may stay in the waiting room before it is swept."),

    # Plug-ins
    Class("alter.config.policy.class.name", None, ANY, LOW,
          "Class that may refuse changes of configuration (AlterConfigPolicy)."),
    Class("create.topic.policy.class.name", None, ANY, LOW,
          "Class that may refuse the creation of topics (CreateTopicPolicy)."),
    Text("authorizer.class.name", "", ANY, LOW,
         "Class that decides who may do what; empty, everyone may do everything. "
         "`org.apache.kafka.metadata.authorizer.StandardAuthorizer`, the only one there is, keeps its rules in the "
         "cluster's metadata.", acted_on=True),
    List("config.providers", (), Items(), LOW,
         "Names of providers that stand behind `${provider:path:key}` references; each is set up by its own "
         "`config.providers.<name>.*` keys.", CLUSTER_WIDE),
    List("early.start.listeners", None, Items(may_be_null=True), HIGH,
         "Listeners that may open before the authorizer is ready. Not given, those of the controllers."),
)

# Listeners and connections. Where a node listens, and how much it takes.
NETWORK = (
    # Addresses
    List("listeners", ("PLAINTEXT://:9092",), Items(may_be_empty=False), HIGH,
         "Where the node listens, as `NAME://host:port`; no host is every interface.", PER_BROKER, acted_on=True),
    List("advertised.listeners", None, Items(may_be_empty=False, may_be_null=True), HIGH,
         "Addresses that clients connect to, if they are not those of `listeners`: behind NAT, or in "
         "containers.", acted_on=True),
    Text("listener.security.protocol.map",
         "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT", ANY, LOW,
         "The security protocol of each listener name, as `NAME:PROTOCOL` pairs.", PER_BROKER, acted_on=True),
    Text("inter.broker.listener.name", None, ANY, MEDIUM,
         "Listener over which brokers talk to each other. Not given, the one of `security.inter.broker.protocol`.",
         acted_on=True),
    List("controller.listener.names", REQUIRED, Items(may_be_empty=False), HIGH,
         "Listeners of the controllers; brokers use the first to reach them.", acted_on=True),

    # Sockets
    Int("socket.send.buffer.bytes", 102_400, ANY, HIGH,
        "Kernel send buffer of a connection (SO_SNDBUF); -1 leaves it to the operating system.", acted_on=True),
    Int("socket.receive.buffer.bytes", 102_400, ANY, HIGH,
        "Kernel receive buffer of a connection (SO_RCVBUF); -1 leaves it to the operating system.", acted_on=True),
    Int("socket.request.max.bytes", 104_857_600, at_least(1), HIGH,
        "Largest request that is read; a client that announces a bigger one is disconnected.", acted_on=True),
    Int("socket.listen.backlog.size", 50, at_least(1), MEDIUM,
        "Connections that may wait to be accepted.", acted_on=True),
    Long("socket.connection.setup.timeout.ms", 10_000, ANY, MEDIUM,
         "How long the node waits for a connection of its own to be established.", acted_on=True),
    Long("socket.connection.setup.timeout.max.ms", 30_000, ANY, MEDIUM,
         "The most that the wait for a connection grows to."),

    # Limits
    Int("max.connections", INT_MAX, at_least(0), MEDIUM,
        "Connections to this broker; more wait to be accepted. One of another broker is always taken, and the "
        "connection that has been idle longest is closed for it.", CLUSTER_WIDE, acted_on=True),
    Int("max.connections.per.ip", INT_MAX, at_least(0), MEDIUM,
        "Connections from one address; more are closed.", CLUSTER_WIDE, acted_on=True),
    Text("max.connections.per.ip.overrides", "", ANY, MEDIUM,
         "Other limits for some addresses or host names, as `host:number` pairs.", CLUSTER_WIDE, acted_on=True),
    Int("max.connection.creation.rate", INT_MAX, at_least(0), MEDIUM,
        "New connections a second; more are delayed.", CLUSTER_WIDE, acted_on=True),
    Long("connections.max.idle.ms", 600_000, ANY, MEDIUM,
         "Idle time after which a connection is closed.", acted_on=True),
    Int("connection.failed.authentication.delay.ms", 100, at_least(0), LOW,
        "Wait before a connection that failed to authenticate is closed, which slows guessing; less than "
        "`connections.max.idle.ms`.", acted_on=True),

    # Fetching
    Int("fetch.max.bytes", 57_671_680, at_least(1024), MEDIUM,
        "Most bytes of records in one reply to a fetch, whatever the client asks for.", acted_on=True),
    Int("max.incremental.fetch.session.cache.slots", 1000, at_least(0), MEDIUM,
        "Incremental fetch sessions that are remembered (KIP-227).", acted_on=True),
    Int("max.request.partition.size.limit", 2000, at_least(1), MEDIUM,
        "Partitions in one reply to DescribeTopicPartitions (KIP-966).", acted_on=True),
)


# The metadata quorum. Controllers, the Raft protocol among them, and the `__cluster_metadata` log.
_ADDRESS = r"\[?[0-9A-Za-z%._:-]*\]?:[0-9]+"

QUORUM = (
    # Members
    List("controller.quorum.voters", (), Shaped(rf"[0-9]+@{_ADDRESS}", "a list of id@host:port"), HIGH,
         "The fixed set of voters as `id@host:port`, in a cluster whose quorum does not change by itself.",
         acted_on=True),
    List("controller.quorum.bootstrap.servers", (), Shaped(_ADDRESS, "a list of host:port"), HIGH,
         "Controllers to ask first where the quorum is, as `host:port`; for clusters with a dynamic quorum (KIP-853).",
         acted_on=True),
    Flag("controller.quorum.auto.join.enable", False, ANY, LOW,
         "Whether a controller that is not a voter asks to become one by itself (KIP-1186).", acted_on=True),

    # Raft
    Int("controller.quorum.election.timeout.ms", 1000, at_least(0), HIGH,
        "How long a candidate waits for votes before it begins another election.", acted_on=True),
    Int("controller.quorum.election.backoff.max.ms", 1000, at_least(0), HIGH,
        "Longest random pause before another election, which keeps candidates from blocking each other.",
        acted_on=True),
    Int("controller.quorum.fetch.timeout.ms", 2000, at_least(0), HIGH,
        "Time without a fetch that works after which a voter stands for election, or a leader without a majority "
        "resigns.", acted_on=True),
    Int("controller.quorum.request.timeout.ms", 2000, at_least(0), MEDIUM,
        "How long a voter waits for another's reply.", acted_on=True),
    Int("controller.quorum.retry.backoff.ms", 20, at_least(0), LOW,
        "Pause before a failed request to another voter is tried again.", acted_on=True),
    Int("controller.quorum.append.linger.ms", 25, at_least(0), MEDIUM,
        "How long the leader gathers records before it writes them in one flush. Only a value that is set is waited "
        "for: else the leader writes at once, and gathers what comes while it writes.", acted_on=True),
    Int("controller.quorum.fetch.max.bytes", 1_048_576, at_least(1), LOW,
        "Most bytes of the metadata log that one fetch brings.", acted_on=True),
    Int("controller.quorum.fetch.snapshot.max.bytes", 1_048_576, at_least(1), LOW,
        "Most bytes of a snapshot that one request brings.", acted_on=True),
    Int("controller.socket.timeout.ms", 30_000, ANY, MEDIUM,
        "How long a broker waits on a connection to the controller."),

    # The metadata log and its snapshots
    Text("metadata.log.dir", None, ANY, HIGH,
         "Directory of the metadata log. Not given, the first of the log directories.", acted_on=True),
    Int("metadata.log.segment.bytes", 1_073_741_824, at_least(8_388_608), HIGH,
        "Size at which a segment of the metadata log is closed.", acted_on=True),
    Long("metadata.log.segment.ms", 604_800_000, ANY, HIGH,
         "Age at which a segment of the metadata log is closed.", acted_on=True),
    Long("metadata.log.max.record.bytes.between.snapshots", 20_971_520, at_least(1), HIGH,
         "Bytes of new records after which the next snapshot is written.", acted_on=True),
    Long("metadata.log.max.snapshot.interval.ms", 3_600_000, at_least(0), HIGH,
         "Time after which a snapshot is written if there are new records; 0 is never by time.", acted_on=True),
    Long("metadata.max.retention.bytes", 104_857_600, ANY, HIGH,
         "Size of the metadata log and its snapshots above which old ones are deleted.", acted_on=True),
    Long("metadata.max.retention.ms", 604_800_000, ANY, HIGH,
         "Age at which old parts of the metadata log and old snapshots are deleted.", acted_on=True),
    Int("metadata.max.idle.interval.ms", 500, at_least(0), LOW,
        "Time between the no-op records of a leader, which show that its followers keep up; 0 writes none (KIP-835).",
        acted_on=True),
)

# Logs. Where partitions are kept, and the defaults of topics that do not say otherwise.
LOG = (
    # Directories
    List("log.dirs", None, Items(may_be_empty=False, may_be_null=True), HIGH,
         "Directories that hold the partitions, ideally one a disk. Not given, `log.dir` counts.", acted_on=True),
    List("log.dir", ("/tmp/kafka-logs",), Items(may_be_empty=False), HIGH,
         "The directories to use when `log.dirs` is not given.", acted_on=True),
    List("cordoned.log.dirs", (), Items(may_be_null=True), MEDIUM,
         "Log directories that get no new partitions, `*` for all of them; those that are there stay (KIP-1066).",
         PER_BROKER, acted_on=True),
    Long("log.dir.failure.timeout.ms", 30_000, at_least(1), LOW,
         "How long a broker with a failed directory tries to tell the controller before it ends (KIP-858).",
         acted_on=True),
    Int("num.recovery.threads.per.data.dir", 2, at_least(1), HIGH,
        "Threads that recover a directory's logs at start and flush them at stop.", CLUSTER_WIDE),

    # Rolling
    Int("log.segment.bytes", 1_073_741_824, at_least(1_048_576), HIGH,
        "Default of `segment.bytes`: the size at which a segment is closed.", CLUSTER_WIDE, acted_on=True),
    Long("log.roll.ms", None, ANY, HIGH,
         "Default of `segment.ms`: the age at which a segment is closed. Comes before `log.roll.hours`.",
         CLUSTER_WIDE, acted_on=True),
    Int("log.roll.hours", 168, at_least(1), HIGH,
        "Default of `segment.ms`, in hours, when `log.roll.ms` is not given.", acted_on=True),
    Long("log.roll.jitter.ms", None, ANY, HIGH,
         "Default of `segment.jitter.ms`: the most that chance takes off a segment's age. Comes before "
         "`log.roll.jitter.hours`.", CLUSTER_WIDE, acted_on=True),
    Int("log.roll.jitter.hours", 0, at_least(0), HIGH,
        "Default of `segment.jitter.ms`, in hours, when `log.roll.jitter.ms` is not given.", acted_on=True),
    Int("log.index.size.max.bytes", 10_485_760, at_least(4), MEDIUM,
        "Default of `segment.index.bytes`: the largest size of an index.", CLUSTER_WIDE, acted_on=True),
    Int("log.index.interval.bytes", 4096, at_least(0), MEDIUM,
        "Default of `index.interval.bytes`: the bytes between two index entries.", CLUSTER_WIDE, acted_on=True),
    Flag("log.preallocate", False, ANY, MEDIUM,
         "Default of `preallocate`: whether new segments get their full size at once.", CLUSTER_WIDE),

    # Retention
    Long("log.retention.ms", None, ANY, HIGH,
         "Default of `retention.ms`: the age at which segments go, -1 is never. Comes before minutes and hours.",
         CLUSTER_WIDE, acted_on=True),
    Int("log.retention.minutes", None, ANY, HIGH,
        "Default of `retention.ms`, in minutes, when `log.retention.ms` is not given.", acted_on=True),
    Int("log.retention.hours", 168, ANY, HIGH,
        "Default of `retention.ms`, in hours, when neither milliseconds nor minutes are given.", acted_on=True),
    Long("log.retention.bytes", -1, ANY, HIGH,
         "Default of `retention.bytes`: the size of a partition above which its oldest segments are deleted.",
         CLUSTER_WIDE, acted_on=True),
    Long("log.retention.check.interval.ms", 300_000, at_least(1), MEDIUM,
         "Time between two looks for segments that may be deleted.", acted_on=True),
    Long("log.segment.delete.delay.ms", 60_000, at_least(0), HIGH,
         "Default of `file.delete.delay.ms`: the wait before a deleted segment's files are removed.",
         CLUSTER_WIDE, acted_on=True),
    List("log.cleanup.policy", ("delete",), Items(("compact", "delete")), MEDIUM,
         "Default of `cleanup.policy`: `delete`, `compact`, both, or nothing.", CLUSTER_WIDE, acted_on=True),

    # Flushing
    Long("log.flush.interval.messages", LONG_MAX, at_least(1), HIGH,
         "Default of `flush.messages`: the records after which a log is forced to disk.", CLUSTER_WIDE, acted_on=True),
    Long("log.flush.interval.ms", None, ANY, HIGH,
         "Default of `flush.ms`: the longest a record waits to be forced to disk. Not given, "
         "`log.flush.scheduler.interval.ms` counts.", CLUSTER_WIDE, acted_on=True),
    Long("log.flush.scheduler.interval.ms", LONG_MAX, ANY, HIGH,
         "Time between two looks for logs that are due to be flushed.", acted_on=True),
    Int("log.flush.offset.checkpoint.interval.ms", 60_000, at_least(0), HIGH,
        "Time between two writes of the recovery points, from which a log is checked after a crash.", acted_on=True),
    Int("log.flush.start.offset.checkpoint.interval.ms", 60_000, at_least(0), HIGH,
        "Time between two writes of the log start offsets, which keep deleted records from coming back.",
        acted_on=True),

    # Records
    Int("message.max.bytes", 1_048_588, at_least(0), HIGH,
        "Default of `max.message.bytes`: the largest record batch that is taken.", CLUSTER_WIDE, acted_on=True),
    Text("log.message.timestamp.type", "CreateTime", OneOf(("CreateTime", "LogAppendTime")), MEDIUM,
         "Default of `message.timestamp.type`: the producer's clock or the broker's.", CLUSTER_WIDE, acted_on=True),
    Long("log.message.timestamp.before.max.ms", LONG_MAX, at_least(0), MEDIUM,
         "Default of `message.timestamp.before.max.ms`: how old a timestamp may be.", CLUSTER_WIDE, acted_on=True),
    Long("log.message.timestamp.after.max.ms", 3_600_000, at_least(0), MEDIUM,
         "Default of `message.timestamp.after.max.ms`: how far ahead a timestamp may be.", CLUSTER_WIDE, acted_on=True),
    Text("compression.type", "producer", OneOf(("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")), HIGH,
         "Default of a topic's `compression.type`: as the producer chose, or one codec for all.",
         CLUSTER_WIDE, acted_on=True),
    Int("compression.gzip.level", -1, Between(1, 9, also=-1), MEDIUM,
        "Default of a topic's `compression.gzip.level`.", CLUSTER_WIDE, acted_on=True),
    Int("compression.lz4.level", 9, Between(1, 17), MEDIUM,
        "Default of a topic's `compression.lz4.level`.", CLUSTER_WIDE, acted_on=True),
    Int("compression.zstd.level", 3, Between(-131_072, 22), MEDIUM,
        "Default of a topic's `compression.zstd.level`.", CLUSTER_WIDE, acted_on=True),
)

# The log cleaner. Compaction of topics that keep the last record of every key.
CLEANER = (
    Flag("log.cleaner.enable", True, ANY, MEDIUM,
         "Whether compaction runs at all. Without it compacted topics, the offsets topic among them, only grow.",
         acted_on=True),
    Int("log.cleaner.threads", 1, at_least(0), MEDIUM,
        "Compactions that run at the same time.", CLUSTER_WIDE, acted_on=True),
    Double("log.cleaner.io.max.bytes.per.second", sys.float_info.max, ANY, MEDIUM,
           "Most bytes a second that compaction reads and writes, taken together.", CLUSTER_WIDE, acted_on=True),
    Long("log.cleaner.dedupe.buffer.size", 134_217_728, ANY, MEDIUM,
         "Memory, over all threads, for the map from key to latest offset; a bigger map cleans more in one pass.",
         CLUSTER_WIDE, acted_on=True),
    Double("log.cleaner.io.buffer.load.factor", 0.9, ANY, MEDIUM,
           "How full the map may get: fuller takes more keys and collides more often.", CLUSTER_WIDE, acted_on=True),
    Int("log.cleaner.io.buffer.size", 524_288, at_least(0), MEDIUM,
        "Memory, over all threads, for reading and writing while compacting.", CLUSTER_WIDE, acted_on=True),
    Long("log.cleaner.backoff.ms", 15_000, at_least(0), MEDIUM,
         "Rest when no log needs compaction.", CLUSTER_WIDE, acted_on=True),
    Double("log.cleaner.min.cleanable.ratio", 0.5, Between(0, 1), MEDIUM,
           "Default of `min.cleanable.dirty.ratio`: the part of a log that must be new before it is compacted.",
           CLUSTER_WIDE, acted_on=True),
    Long("log.cleaner.delete.retention.ms", 86_400_000, at_least(0), MEDIUM,
         "Default of `delete.retention.ms`: how long tombstones are kept.", CLUSTER_WIDE, acted_on=True),
    Long("log.cleaner.min.compaction.lag.ms", 0, at_least(0), MEDIUM,
         "Default of `min.compaction.lag.ms`: how long a record is safe from compaction.", CLUSTER_WIDE, acted_on=True),
    Long("log.cleaner.max.compaction.lag.ms", LONG_MAX, at_least(1), MEDIUM,
         "Default of `max.compaction.lag.ms`: when a record must have been compacted.", CLUSTER_WIDE, acted_on=True),
)

# Replication. How followers keep up, and when a replica counts as in sync.
REPLICATION = (
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

# New topics. What a topic gets that is created without saying.
TOPICS = (
    Flag("auto.create.topics.enable", True, ANY, HIGH,
         "Whether a topic that a client asks for is created when it does not exist.", acted_on=True),
    Int("num.partitions", 1, at_least(1), MEDIUM,
        "Partitions of a topic that is created without a number of its own.", acted_on=True),
    Int("default.replication.factor", 1, ANY, MEDIUM,
        "Replicas of a topic that is created without a number of its own.", acted_on=True),
)

# Consumer groups. Their coordinator, both of their protocols, and the offsets topic.
GROUPS = (
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
        "Interval at which members of the group send heartbeats.", acted_on=True),
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

# Share groups. Queues over topics (KIP-932): many consumers of one partition, records acknowledged one by one.
SHARE_GROUPS = (
    # Members
    List("group.share.assignors", ("simple",), Items(may_be_empty=False), MEDIUM,
         "Assignors on the broker, by name or class; the first is used."),
    Int("group.share.session.timeout.ms", 45_000, at_least(1), MEDIUM,
        "Silence after which a member is removed."),
    Int("group.share.min.session.timeout.ms", 45_000, at_least(1), MEDIUM,
        "Shortest session timeout that a group may be given."),
    Int("group.share.max.session.timeout.ms", 60_000, at_least(1), MEDIUM,
        "Longest session timeout that a group may be given."),
    Int("group.share.heartbeat.interval.ms", 5000, at_least(1), MEDIUM,
        "Interval at which members of the group send heartbeats."),
    Int("group.share.min.heartbeat.interval.ms", 5000, at_least(1), MEDIUM,
        "Shortest heartbeat interval that a group may be given."),
    Int("group.share.max.heartbeat.interval.ms", 15_000, at_least(1), MEDIUM,
        "Longest heartbeat interval that a group may be given."),
    Int("group.share.assignment.interval.ms", 1000, at_least(0), MEDIUM,
        "Shortest time between two computations of a group's assignment.", CLUSTER_WIDE),
    Int("group.share.min.assignment.interval.ms", 0, at_least(0), MEDIUM,
        "Shortest assignment interval that a group may be given."),
    Int("group.share.max.assignment.interval.ms", 15_000, at_least(0), MEDIUM,
        "Longest assignment interval that a group may be given."),
    Int("group.share.max.size", 200, Between(1, 1000), MEDIUM,
        "Members of one group; more are refused."),
    Int("group.share.max.share.sessions", 2000, at_least(1), MEDIUM,
        "Share sessions that a broker remembers."),

    # Records in flight
    Int("group.share.delivery.count.limit", 5, Between(2, 10), MEDIUM,
        "Times that a record is handed out before it is given up as undeliverable."),
    Int("group.share.min.delivery.count.limit", 2, Between(2, 5), MEDIUM,
        "Smallest delivery limit that a group may be given."),
    Int("group.share.max.delivery.count.limit", 10, Between(5, 25), MEDIUM,
        "Largest delivery limit that a group may be given."),
    Int("group.share.record.lock.duration.ms", 30_000, Between(1000, 3_600_000), MEDIUM,
        "How long a consumer has a record to itself before it goes back to be handed out again."),
    Int("group.share.min.record.lock.duration.ms", 15_000, Between(1000, 30_000), MEDIUM,
        "Shortest lock that a group may be given."),
    Int("group.share.max.record.lock.duration.ms", 60_000, Between(30_000, 3_600_000), MEDIUM,
        "Longest lock that a group may be given."),
    Int("group.share.partition.max.record.locks", 2000, Between(100, 10_000), MEDIUM,
        "Records of one partition that may be out at the same time."),
    Int("group.share.min.partition.max.record.locks", 100, Between(100, 2000), MEDIUM,
        "Smallest number of locks that a group may be given."),
    Int("group.share.max.partition.max.record.locks", 4000, Between(2000, 10_000), MEDIUM,
        "Largest number of locks that a group may be given."),

    # The share coordinator, and __share_group_state
    Int("share.coordinator.threads", 1, at_least(1), MEDIUM,
        "Threads that run the share coordinator's state machines."),
    Int("share.coordinator.append.linger.ms", -1, at_least(-1), MEDIUM,
        "How long it gathers records before it writes them; -1 adapts to the load."),
    Int("share.coordinator.cached.buffer.max.bytes", 1_048_588, at_least(524_288), MEDIUM,
        "Largest write buffer that it keeps for another use.", CLUSTER_WIDE),
    Int("share.coordinator.snapshot.update.records.per.snapshot", 500, Between(0, 500), MEDIUM,
        "Update records that it writes between two full snapshots of a partition's state."),
    Int("share.coordinator.write.timeout.ms", 5000, at_least(1), HIGH,
        "How long a write waits for the replicas of the state topic before it fails."),
    Int("share.coordinator.load.buffer.size", 5_242_880, at_least(1), HIGH,
        "Bytes read at a time while a coordinator loads a partition of `__share_group_state`."),
    Int("share.coordinator.state.topic.num.partitions", 50, at_least(1), HIGH,
        "Partitions of `__share_group_state`; not to be changed once it exists.", acted_on=True),
    Short("share.coordinator.state.topic.replication.factor", 3, at_least(1), HIGH,
          "Replicas of `__share_group_state`; it cannot be created with fewer brokers.", acted_on=True),
    Short("share.coordinator.state.topic.min.isr", 2, at_least(1), HIGH,
          "Its `min.insync.replicas`.", acted_on=True),
    Int("share.coordinator.state.topic.segment.bytes", 104_857_600, at_least(1), HIGH,
        "Its `segment.bytes`.", acted_on=True),
    Int("share.coordinator.state.topic.compression.codec", 0, ANY, HIGH,
        "Compression of its batches, by number: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."),
)

# Streams groups. Kafka Streams applications whose tasks the broker assigns (KIP-1071).
STREAMS_GROUPS = (
    Int("group.streams.session.timeout.ms", 45_000, at_least(1), MEDIUM,
        "Silence after which a member is removed."),
    Int("group.streams.min.session.timeout.ms", 45_000, at_least(1), MEDIUM,
        "Shortest session timeout that a group may be given."),
    Int("group.streams.max.session.timeout.ms", 60_000, at_least(1), MEDIUM,
        "Longest session timeout that a group may be given."),
    Int("group.streams.heartbeat.interval.ms", 5000, at_least(1), MEDIUM,
        "Interval at which members of the group send heartbeats."),
    Int("group.streams.min.heartbeat.interval.ms", 5000, at_least(1), MEDIUM,
        "Shortest heartbeat interval that a group may be given."),
    Int("group.streams.max.heartbeat.interval.ms", 15_000, at_least(1), MEDIUM,
        "Longest heartbeat interval that a group may be given."),
    Int("group.streams.assignment.interval.ms", 1000, at_least(0), MEDIUM,
        "Shortest time between two computations of a group's assignment.", CLUSTER_WIDE),
    Int("group.streams.min.assignment.interval.ms", 0, at_least(0), MEDIUM,
        "Shortest assignment interval that a group may be given."),
    Int("group.streams.max.assignment.interval.ms", 15_000, at_least(0), MEDIUM,
        "Longest assignment interval that a group may be given."),
    Int("group.streams.initial.rebalance.delay.ms", 3000, at_least(0), MEDIUM,
        "How long the first assignment of an empty group waits for more members."),
    Int("group.streams.max.size", INT_MAX, at_least(1), MEDIUM,
        "Members of one group; more are refused."),
    Int("group.streams.num.standby.replicas", 0, at_least(0), MEDIUM,
        "Warm copies of a task's state that are kept on other members."),
    Int("group.streams.max.standby.replicas", 2, at_least(0), MEDIUM,
        "Most warm copies that a group may ask for."),
)

# Transactions and idempotent producers. Their coordinator, its topic, and how long producers are remembered.
TRANSACTIONS = (
    Int("transaction.max.timeout.ms", 900_000, at_least(1), HIGH,
        "Longest transaction timeout that a producer may ask for.", acted_on=True),
    Int("transactional.id.expiration.ms", 604_800_000, at_least(1), HIGH,
        "Time without use after which a transactional id is forgotten.", acted_on=True),
    Int("transaction.abort.timed.out.transaction.cleanup.interval.ms", 10_000, at_least(1), LOW,
        "Time between two looks for transactions to abort because they ran too long.", acted_on=True),
    Int("transaction.remove.expired.transaction.cleanup.interval.ms", 3_600_000, at_least(1), LOW,
        "Time between two looks for transactional ids to forget.", acted_on=True),
    Flag("transaction.partition.verification.enable", True, ANY, LOW,
         "Whether the leader asks the coordinator if a partition really belongs to a transaction before it takes the "
         "first write (KIP-890).", CLUSTER_WIDE, acted_on=True),
    Flag("transaction.two.phase.commit.enable", False, ANY, LOW,
         "Whether producers may take part in two-phase commit, with transactions that never time out (KIP-939)."),
    Int("add.partitions.to.txn.retry.backoff.ms", 20, at_least(1), HIGH,
        "First pause before the broker asks the coordinator again to add partitions to a transaction.", acted_on=True),
    Int("add.partitions.to.txn.retry.backoff.max.ms", 100, at_least(0), HIGH,
        "How long the broker tries before the client has to.", acted_on=True),
    Int("producer.id.expiration.ms", 86_400_000, at_least(1), LOW,
        "Time without a write after which a partition forgets a producer's last sequence numbers.",
        CLUSTER_WIDE, acted_on=True),

    # __transaction_state
    Int("transaction.state.log.num.partitions", 50, at_least(1), HIGH,
        "Partitions of `__transaction_state`; not to be changed once it exists.", acted_on=True),
    Short("transaction.state.log.replication.factor", 3, at_least(1), HIGH,
          "Replicas of `__transaction_state`; it cannot be created with fewer brokers.", acted_on=True),
    Int("transaction.state.log.min.isr", 2, at_least(1), HIGH,
        "Its `min.insync.replicas`.", acted_on=True),
    Int("transaction.state.log.segment.bytes", 104_857_600, at_least(1), HIGH,
        "Its `segment.bytes`: small, so that it is compacted and loaded fast.", acted_on=True),
    Int("transaction.state.log.load.buffer.size", 5_242_880, at_least(1), HIGH,
        "Bytes read at a time while a coordinator loads a partition of it; a bigger batch is read whole.",
        acted_on=True),
)

# Quotas. The windows over which rates are measured.
QUOTAS = (
    Int("quota.window.num", 11, at_least(1), LOW,
        "Windows that are kept to measure a client's rate.", acted_on=True),
    Int("quota.window.size.seconds", 1, at_least(1), LOW,
        "Length of one such window.", acted_on=True),
    Int("replication.quota.window.num", 11, at_least(1), LOW,
        "Windows that are kept to measure the rate of throttled replication."),
    Int("replication.quota.window.size.seconds", 1, at_least(1), LOW,
        "Length of one such window."),
    Int("alter.log.dirs.replication.quota.window.num", 11, at_least(1), LOW,
        "Windows that are kept to measure the rate of moves between log directories."),
    Int("alter.log.dirs.replication.quota.window.size.seconds", 1, at_least(1), LOW,
        "Length of one such window."),
    Int("controller.quota.window.num", 11, at_least(1), LOW,
        "Windows that are kept to measure the rate of changes to topics and partitions (KIP-599).", acted_on=True),
    Int("controller.quota.window.size.seconds", 1, at_least(1), LOW,
        "Length of one such window.", acted_on=True),
    Class("client.quota.callback.class", None, ANY, LOW,
          "Class that decides clients' quotas instead of the configured ones."),
)

# Tiered storage. Closed segments copied to remote storage, and read back from it (KIP-405).
REMOTE_LOG = (
    Flag("remote.log.storage.system.enable", False, ANY, MEDIUM,
         "Whether this broker has tiered storage at all; only then may topics switch it on."),
    Long("log.local.retention.ms", -2, at_least(-2), MEDIUM,
         "Default of `local.retention.ms`: the age at which copied segments leave the local disk.", CLUSTER_WIDE),
    Long("log.local.retention.bytes", -2, at_least(-2), MEDIUM,
         "Default of `local.retention.bytes`: the local size above which copied segments leave the disk.",
         CLUSTER_WIDE),
    Flag("follower.fetch.last.tiered.offset.enable", False, ANY, MEDIUM,
         "Whether an empty follower starts where the remote copy ends, instead of copying what is there already.",
         CLUSTER_WIDE),

    # Plug-ins
    Text("remote.log.storage.manager.class.name", None, NotEmpty(), MEDIUM,
         "Class that stores and fetches segments (RemoteStorageManager)."),
    Text("remote.log.storage.manager.class.path", None, ANY, MEDIUM,
         "Where that class and what it needs are found."),
    Text("remote.log.storage.manager.impl.prefix", "rsm.config.", NotEmpty(), MEDIUM,
         "Prefix of the settings that are handed to it."),
    Text("remote.log.metadata.manager.class.name",
         "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager", NotEmpty(), MEDIUM,
         "Class that remembers which segments are remote (RemoteLogMetadataManager)."),
    Text("remote.log.metadata.manager.class.path", None, ANY, MEDIUM,
         "Where that class and what it needs are found."),
    Text("remote.log.metadata.manager.impl.prefix", "rlmm.config.", NotEmpty(), MEDIUM,
         "Prefix of the settings that are handed to it."),
    Text("remote.log.metadata.manager.listener.name", None, NotEmpty(), MEDIUM,
         "Listener of the local broker that it connects to, if it needs one."),
    Int("remote.log.metadata.custom.metadata.max.bytes", 128, at_least(0), LOW,
        "Most bytes of its own that the storage plug-in may have remembered with a segment."),

    # Work
    Long("remote.log.manager.task.interval.ms", 30_000, at_least(1), LOW,
         "Time between two rounds of copying and expiring."),
    Int("remote.log.manager.thread.pool.size", 2, at_least(1), MEDIUM,
        "Threads for followers' work, unless `remote.log.manager.follower.thread.pool.size` says otherwise."),
    Int("remote.log.manager.copier.thread.pool.size", 10, at_least(1), MEDIUM,
        "Threads that copy segments out.", CLUSTER_WIDE),
    Int("remote.log.manager.expiration.thread.pool.size", 10, at_least(1), MEDIUM,
        "Threads that delete expired remote segments.", CLUSTER_WIDE),
    Int("remote.log.manager.follower.thread.pool.size", 2, at_least(1), MEDIUM,
        "Threads that do what a follower needs of remote storage.", CLUSTER_WIDE),
    Int("remote.log.reader.threads", 10, at_least(1), MEDIUM,
        "Threads that read remote segments for consumers.", CLUSTER_WIDE),
    Int("remote.log.reader.max.pending.tasks", 100, at_least(1), MEDIUM,
        "Remote reads that may wait; more are turned away for the moment."),
    Long("remote.log.index.file.cache.total.size.bytes", 1_073_741_824, at_least(1), LOW,
         "Disk space for indexes of remote segments that are kept at hand.", CLUSTER_WIDE),
    Int("remote.fetch.max.wait.ms", 500, at_least(1), MEDIUM,
        "How long a consumer's fetch waits for remote data.", CLUSTER_WIDE),
    Long("remote.list.offsets.request.timeout.ms", 30_000, at_least(1), MEDIUM,
         "How long ListOffsets waits for remote data.", CLUSTER_WIDE),

    # Quotas
    Long("remote.log.manager.copy.max.bytes.per.second", LONG_MAX, at_least(1), MEDIUM,
         "Bytes a second that may be copied to remote storage.", CLUSTER_WIDE),
    Int("remote.log.manager.copy.quota.window.num", 11, at_least(1), MEDIUM,
        "Windows that are kept to measure the rate of copying."),
    Int("remote.log.manager.copy.quota.window.size.seconds", 1, at_least(1), MEDIUM,
        "Length of one such window."),
    Long("remote.log.manager.fetch.max.bytes.per.second", LONG_MAX, at_least(1), MEDIUM,
         "Bytes a second that may be fetched from remote storage.", CLUSTER_WIDE),
    Int("remote.log.manager.fetch.quota.window.num", 11, at_least(1), MEDIUM,
        "Windows that are kept to measure the rate of fetching."),
    Int("remote.log.manager.fetch.quota.window.size.seconds", 1, at_least(1), MEDIUM,
        "Length of one such window."),
)

# Metrics. How they are sampled and who gets them.
METRICS = (
    List("metric.reporters", ("org.apache.kafka.common.metrics.JmxReporter",), Items(), LOW,
         "Classes that are notified of every metric.", CLUSTER_WIDE),
    Int("metrics.num.samples", 2, at_least(1), LOW,
        "Samples from which an average or a rate is made."),
    Long("metrics.sample.window.ms", 30_000, at_least(1), LOW,
         "Length of one sample."),
    Text("metrics.recording.level", "INFO", ANY, LOW,
         "How much is measured: INFO, or more with DEBUG and TRACE."),
    List("kafka.metrics.reporters", (), Items(), LOW,
         "Classes that report the broker's older (Yammer) metrics."),
    Int("kafka.metrics.polling.interval.secs", 10, at_least(1), LOW,
        "Time between two of their reports."),
    Int("telemetry.max.bytes", 1_048_576, at_least(1), LOW,
        "Largest batch of metrics that a client may push (KIP-714).", acted_on=True),
)


# TLS. Certificates, keys, whom a broker trusts, and what a client's certificate makes of it.
#
# The rows that clients have too are theirs, with a broker's importance; a listener can take new ones while it runs.
_STILL_LOW = {
    "ssl.endpoint.identification.algorithm", "ssl.engine.factory.class", "ssl.secure.random.implementation",
}


# Names of Java's classes and algorithms, which nothing here can be told to use.
_JAVAS = {
    "ssl.provider", "ssl.keymanager.algorithm", "ssl.trustmanager.algorithm", "ssl.secure.random.implementation",
    "ssl.engine.factory.class",
}


def _ssl_of_a_broker(row: Setting) -> Setting:
    importance = LOW if row.name in _STILL_LOW else MEDIUM
    return row._replace(importance=importance, dynamic=PER_BROKER, acted_on=row.name not in _JAVAS)


SSL = (
    Text("security.inter.broker.protocol", "PLAINTEXT",
         OneOf(("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")), MEDIUM,
         "Security protocol between brokers, when `inter.broker.listener.name` does not name a listener.",
         acted_on=True),
    Text("ssl.client.auth", "none", OneOf(("required", "requested", "none")), MEDIUM,
         "Whether clients must show a certificate, may show one, or are not asked.", PER_BROKER,
         acted_on=True),
    Text("ssl.principal.mapping.rules", "DEFAULT", ANY, LOW,
         "Rules that turn a certificate's distinguished name into a principal's name; the first that matches counts.",
         acted_on=True),
    Class("principal.builder.class",
          "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder", ANY, MEDIUM,
          "Class that makes the principal of a connection.", PER_BROKER),
    Flag("ssl.allow.dn.changes", False, ANY, LOW,
         "Whether a new certificate for a listener may name another subject than the one before (KIP-978).",
         acted_on=True),
    Flag("ssl.allow.san.changes", False, ANY, LOW,
         "Whether a new certificate for a listener may leave out alternative names of the one before (KIP-978).",
         acted_on=True),
    *(row for row in client.SSL if row.name == "security.providers"),
    *(_ssl_of_a_broker(row) for row in client.SSL if row.name.startswith("ssl.")),
)


# SASL. Mechanisms a broker offers and uses, and delegation tokens.
#
# The rows that clients have too are theirs; a broker gives some more weight, and does not bound the refreshing of
# logins.
_NOT_OF_A_BROKER = {"sasl.mechanism", "sasl.oauthbearer.header.urlencode"}
_ACTED_ON = {
    "sasl.jaas.config",
    "sasl.kerberos.service.name",
    "sasl.login.callback.handler.class",
    "sasl.login.connect.timeout.ms",
    "sasl.login.read.timeout.ms",
    "sasl.login.refresh.buffer.seconds",
    "sasl.login.refresh.min.period.seconds",
    "sasl.login.refresh.window.factor",
    "sasl.login.refresh.window.jitter",
    "sasl.login.retry.backoff.max.ms",
    "sasl.login.retry.backoff.ms",
    *(row.name for row in client.SASL if row.name.startswith("sasl.oauthbearer.")),
}


def _sasl_of_a_broker(row: Setting) -> Setting:
    refresh = row.name.startswith("sasl.login.refresh.")
    kerberos = row.name.startswith("sasl.kerberos.")
    return row._replace(
        importance=MEDIUM if refresh or kerberos else row.importance,
        bound=None if refresh else row.bound,
        acted_on=row.name in _ACTED_ON,
        dynamic=PER_BROKER if refresh or kerberos or row.name == "sasl.jaas.config" else READ_ONLY,
    )


SASL = (
    List("sasl.enabled.mechanisms", ("GSSAPI",), Items(), MEDIUM,
         "Mechanisms with which clients may prove who they are.", PER_BROKER, acted_on=True),
    Text("sasl.mechanism.inter.broker.protocol", "GSSAPI", ANY, MEDIUM,
         "Mechanism between brokers.", PER_BROKER, acted_on=True),
    Text("sasl.mechanism.controller.protocol", "GSSAPI", ANY, HIGH,
         "Mechanism towards controllers.", acted_on=True),
    Class("sasl.server.callback.handler.class", None, ANY, MEDIUM,
          "Class that answers the server side of a mechanism; given for a listener and mechanism.", acted_on=True),
    Int("sasl.server.max.receive.size", 524_288, ANY, MEDIUM,
        "Largest message that is read before a client has authenticated.", acted_on=True),
    List("sasl.kerberos.principal.to.local.rules", ("DEFAULT",), Items(), MEDIUM,
         "Rules that turn a Kerberos principal into a short name; the first that matches counts.", PER_BROKER,
         acted_on=True),
    Long("connections.max.reauth.ms", 0, ANY, MEDIUM,
         "Longest time before a client must authenticate again (KIP-368); 0 is never.", acted_on=True),

    # Delegation tokens
    Secret("delegation.token.secret.key", MEDIUM,
           "Key that signs delegation tokens, the same on all nodes; without it there are none.", acted_on=True),
    Long("delegation.token.expiry.time.ms", 86_400_000, at_least(1), MEDIUM,
         "Life of a token until it must be renewed.", acted_on=True),
    Long("delegation.token.max.lifetime.ms", 604_800_000, at_least(1), MEDIUM,
         "Life of a token after which it cannot be renewed any more.", acted_on=True),
    Long("delegation.token.expiry.check.interval.ms", 3_600_000, at_least(1), LOW,
         "Time between two looks for expired tokens.", acted_on=True),

    *(_sasl_of_a_broker(row) for row in client.SASL if row.name not in _NOT_OF_A_BROKER),
)

# Who may do what. Apache Kafka's authorizer reads these settings by itself, and they are in no table of Kafka's.
ACCESS = (
    Text("super.users", "", ANY, LOW,
         "Principals that may do everything, with `;` between them, as `User:admin;User:broker`.", acted_on=True),
    Flag("allow.everyone.if.no.acl.found", False, ANY, LOW,
         "Whether everyone may do everything with a resource that no access rule is about.", acted_on=True),
)

# Ottla's own. Apache Kafka has no such settings; their names begin with `ottla.`.
OTTLA = (
    Int("ottla.spin.max.us", 100, Between(0, 10_000), LOW,
        "How long the node looks for more requests before it sleeps, when the last ones came in quick succession: "
        "waking up takes a processor about as long as a request. 0 is never. A node that may use less than two "
        "processors, by its machine or by the quota of its container, never does.", acted_on=True),
    Secret("ottla.scram.salt.secret", LOW,
           "What nodes make the SCRAM salts of users that there are not of, so that nobody can tell them from those "
           "that there are. The same on all nodes: the active controller puts one into the metadata with the first "
           "user of SCRAM, if none is given.", CLUSTER_WIDE, acted_on=True),
    Int("ottla.delegation.token.max.per.owner", 1000, at_least(1), LOW,
        "Most delegation tokens of one owner; one more is refused with POLICY_VIOLATION. Every node keeps all tokens. "
        "A controller goes by its own setting.", acted_on=True),
    Text("ottla.metrics.listener", "", ANY, MEDIUM,
         "Where Prometheus reads metrics (/metrics) and probes ask how the node is (/healthz, /readyz): `HOST:PORT`, "
         "`http://HOST:PORT`, or `https://HOST:PORT` with certificates of `ssl.…` or `listener.name.metrics.ssl.…`. "
         "A port alone is on loopback; port 0 picks a free one. Empty: nowhere.", acted_on=True),
    Secret("ottla.metrics.basic.auth", MEDIUM,
           "Who may read metrics: `name:password`, or several with commas between. Without it, and without tokens, "
           "everybody who reaches the listener. /healthz and /readyz ask nobody who they are.", acted_on=True),
    Secret("ottla.metrics.bearer.tokens", MEDIUM,
           "Tokens that may read metrics, with commas between (`Authorization: Bearer …`).", acted_on=True),
    Int("ottla.metrics.max.group.partitions", 20_000, at_least(0), LOW,
        "Most partitions of consumer groups that the metrics page of a node shows; those with the largest lag come "
        "first, and `ottla_consumergroup_partitions_left_out` counts the others.", acted_on=True),
)

SECTIONS = (
    ("The node", NODE),
    ("Listeners and connections", NETWORK),
    ("The metadata quorum", QUORUM),
    ("Logs", LOG),
    ("The log cleaner", CLEANER),
    ("Replication", REPLICATION),
    ("New topics", TOPICS),
    ("Consumer groups", GROUPS),
    ("Share groups", SHARE_GROUPS),
    ("Streams groups", STREAMS_GROUPS),
    ("Transactions and idempotent producers", TRANSACTIONS),
    ("Quotas", QUOTAS),
    ("Tiered storage", REMOTE_LOG),
    ("Metrics", METRICS),
    ("TLS", SSL),
    ("SASL", SASL),
    ("Who may do what", ACCESS),
    ("Ottla's own", OTTLA),
)
