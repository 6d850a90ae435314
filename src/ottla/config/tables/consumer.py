"""Consumers. Fetching, groups, offsets, and share consumers."""

from ottla.config.bounds import Items, NotEmpty, OneOf, Shaped, at_least
from ottla.config.setting import ANY, HIGH, LOW, MEDIUM, REQUIRED, Class, Flag, Int, List, Long, Text

_DURATION = r"(?i:P(?=[0-9T])([0-9]+D)?(T(?=[0-9])([0-9]+H)?([0-9]+M)?([0-9]+([.,][0-9]{0,9})?S)?)?)"
RESET = Shaped(
    rf"latest|earliest|none|by_duration:{_DURATION}",
    "latest, earliest, none, or by_duration: and an ISO 8601 duration of days to seconds",
)

SETTINGS = (
    List("bootstrap.servers", REQUIRED, Items(may_be_empty=False), HIGH,
         "Some brokers to ask first, as `host:port`; the others are learnt from them.", acted_on=True),
    Text("client.id", "", ANY, LOW,
         "Name that brokers log and count quotas under.", acted_on=True),
    Text("client.rack", "", ANY, LOW,
         "Where this consumer stands, so that it can read from a replica near it (KIP-392).", acted_on=True),
    Class("key.deserializer", REQUIRED, ANY, HIGH,
          "What turns bytes into keys.", acted_on=True),
    Class("value.deserializer", REQUIRED, ANY, HIGH,
          "What turns bytes into values.", acted_on=True),

    # The group
    Text("group.id", None, ANY, HIGH,
         "The group this consumer belongs to; needed to subscribe and to commit.", acted_on=True),
    Text("group.instance.id", None, NotEmpty(), MEDIUM,
         "Name of a static member, which may restart within its session without a rebalance (KIP-345).", acted_on=True),
    Text("group.protocol", "classic", OneOf(("CONSUMER", "CLASSIC"), any_case=True), HIGH,
         "Whether members assign partitions among themselves (`classic`) or the broker does (`consumer`, KIP-848).",
         acted_on=True),
    Text("group.remote.assignor", None, ANY, MEDIUM,
         "Assignor to use on the broker with the consumer protocol. Not given, the broker chooses.", acted_on=True),
    List("partition.assignment.strategy",
         ("org.apache.kafka.clients.consumer.RangeAssignor",
          "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"),
         Items(), MEDIUM,
         "Assignors of the classic protocol, most wanted first; a group uses one that all its members have.",
         acted_on=True),
    Int("session.timeout.ms", 45_000, ANY, HIGH,
        "Silence after which the group gives up on a member, with the classic protocol.", acted_on=True),
    Int("heartbeat.interval.ms", 3000, ANY, HIGH,
        "Time between two heartbeats with the classic protocol; best a third of the session timeout or less.",
        acted_on=True),
    Int("max.poll.interval.ms", 300_000, at_least(1), MEDIUM,
        "Time between two polls after which a member counts as stuck and leaves the group.", acted_on=True),

    # Offsets
    Text("auto.offset.reset", "latest", RESET, MEDIUM,
         "Where to start without a committed offset: at the end, at the beginning, some time ago, or with an error.",
         acted_on=True),
    Flag("enable.auto.commit", True, ANY, MEDIUM,
         "Whether offsets are committed by the way, in the background.", acted_on=True),
    Int("auto.commit.interval.ms", 5000, at_least(0), LOW,
        "Time between two such commits.", acted_on=True),
    Text("isolation.level", "read_uncommitted", OneOf(("read_committed", "read_uncommitted")), MEDIUM,
         "Whether records of transactions are seen only once committed, or all as they come.", acted_on=True),

    # Fetching
    Int("fetch.min.bytes", 1, at_least(0), HIGH,
        "Bytes that a broker waits to have before it answers a fetch.", acted_on=True),
    Int("fetch.max.wait.ms", 500, at_least(0), LOW,
        "Longest that a broker waits for them.", acted_on=True),
    Int("fetch.max.bytes", 52_428_800, at_least(0), MEDIUM,
        "Most bytes in one reply; a bigger first batch comes whole all the same.", acted_on=True),
    Int("max.partition.fetch.bytes", 1_048_576, at_least(0), HIGH,
        "Most bytes of one partition in a reply; a bigger first batch comes whole all the same.", acted_on=True),
    Int("max.poll.records", 500, at_least(1), MEDIUM,
        "Records that one poll hands out; what was fetched beyond them waits.", acted_on=True),
    Flag("check.crcs", True, ANY, LOW,
         "Whether the checksum of every fetched batch is checked.", acted_on=True),
    Int("receive.buffer.bytes", 65_536, at_least(-1), MEDIUM,
        "Kernel receive buffer of a connection (SO_RCVBUF); -1 leaves it to the operating system.", acted_on=True),
    Long("connections.max.idle.ms", 540_000, ANY, MEDIUM,
         "Idle time after which a connection is closed.", acted_on=True),
    Int("default.api.timeout.ms", 60_000, at_least(0), MEDIUM,
        "How long calls without a timeout of their own may take.", acted_on=True),

    # Topics
    Flag("allow.auto.create.topics", True, ANY, MEDIUM,
         "Whether subscribing to a topic that does not exist may create it, if the broker does that.", acted_on=True),
    Flag("exclude.internal.topics", True, ANY, MEDIUM,
         "Whether a pattern leaves out internal topics, such as `__consumer_offsets`.", acted_on=True),

    # Share consumers (KIP-932)
    Text("share.acknowledgement.mode", "implicit", OneOf(("implicit", "explicit")), MEDIUM,
         "Whether the next poll acknowledges the records of the last one, or the application does, record by record."),
    Text("share.acquire.mode", "BATCH_OPTIMIZED", OneOf(("batch_optimized", "record_limit"), any_case=True), MEDIUM,
         "Whether whole batches are acquired, perhaps more than `max.poll.records`, or exactly up to that many."),

    # Plug-ins
    List("interceptor.classes", (), Items(), LOW,
         "Classes that see, and may change, every record before it is handed out.", acted_on=True),
    Flag("enable.metrics.push", True, ANY, LOW,
         "Whether metrics are pushed to brokers that ask for them (KIP-714).", acted_on=True),
)

SECTIONS = (("Consumers", SETTINGS),)
