"""Producers. Batching, delivery, partitioning and transactions."""

from ottla.config.bounds import Between, Items, NotEmpty, OneOf, at_least
from ottla.config.setting import ANY, HIGH, INT_MAX, LOW, MEDIUM, REQUIRED, Class, Flag, Int, List, Long, Text

SETTINGS = (
    List("bootstrap.servers", REQUIRED, Items(may_be_empty=False), HIGH,
         "Some brokers to ask first, as `host:port`; the others are learnt from them.", acted_on=True),
    Text("client.id", "", ANY, MEDIUM,
         "Name that brokers log and count quotas under.", acted_on=True),
    Class("key.serializer", REQUIRED, ANY, HIGH,
          "What turns keys into bytes.", acted_on=True),
    Class("value.serializer", REQUIRED, ANY, HIGH,
          "What turns values into bytes.", acted_on=True),

    # Batching
    Int("batch.size", 16_384, at_least(0), MEDIUM,
        "Size at which a partition's batch is full; 0 sends every record alone.", acted_on=True),
    Long("linger.ms", 5, at_least(0), MEDIUM,
         "How long a batch that is not full waits for more records.", acted_on=True),
    Long("buffer.memory", 33_554_432, at_least(0), HIGH,
         "Memory for records that wait to be sent; when it is full, sending blocks for up to `max.block.ms`.",
         acted_on=True),
    Long("max.block.ms", 60_000, at_least(0), MEDIUM,
         "How long a call may block for metadata or for memory.", acted_on=True),
    Int("max.request.size", 1_048_576, at_least(0), MEDIUM,
        "Largest request, and so the largest record, before compression.", acted_on=True),
    Text("compression.type", "none", OneOf(("none", "gzip", "snappy", "lz4", "zstd")), HIGH,
         "How batches are compressed.", acted_on=True),
    Int("compression.gzip.level", -1, Between(1, 9, also=-1), MEDIUM,
        "Effort of gzip; -1 is gzip's own default.", acted_on=True),
    Int("compression.lz4.level", 9, Between(1, 17), MEDIUM,
        "Effort of lz4.", acted_on=True),
    Int("compression.zstd.level", 3, Between(-131_072, 22), MEDIUM,
        "Effort of zstd; negative levels trade size for speed.", acted_on=True),

    # Delivery
    Text("acks", "all", OneOf(("all", "-1", "0", "1")), LOW,
         "When a write counts as done: `all` (or -1) once every replica in sync has it, 1 once the leader has it, 0 at "
         "once.", acted_on=True),
    Flag("enable.idempotence", True, ANY, LOW,
         "Whether retries can neither repeat nor reorder records; needs acks=all and at most 5 requests in flight.",
         acted_on=True),
    Int("retries", INT_MAX, Between(0, INT_MAX), HIGH,
        "How often a failed send is tried again; `delivery.timeout.ms` is the better limit.", acted_on=True),
    Int("delivery.timeout.ms", 120_000, at_least(0), MEDIUM,
        "Time from send to success or failure, waiting and retries included.", acted_on=True),
    Int("max.in.flight.requests.per.connection", 5, at_least(1), LOW,
        "Requests that may be on their way to one broker; more than 1 without idempotence can reorder on retry.",
        acted_on=True),
    Int("receive.buffer.bytes", 32_768, at_least(-1), MEDIUM,
        "Kernel receive buffer of a connection (SO_RCVBUF); -1 leaves it to the operating system.", acted_on=True),
    Long("connections.max.idle.ms", 540_000, ANY, MEDIUM,
         "Idle time after which a connection is closed.", acted_on=True),
    Long("metadata.max.idle.ms", 300_000, at_least(5000), LOW,
         "Time without a send after which a topic's metadata is forgotten.", acted_on=True),

    # Partitioning
    Class("partitioner.class", None, ANY, MEDIUM,
          "What picks the partition. Not given: by the key's hash, or for keyless records one partition until a batch "
          "is full (KIP-794).", acted_on=True),
    Flag("partitioner.ignore.keys", False, ANY, MEDIUM,
         "Whether keys are left out of the choice of partition.", acted_on=True),
    Flag("partitioner.adaptive.partitioning.enable", True, ANY, LOW,
         "Whether keyless records go more often to brokers that answer faster.", acted_on=True),
    Long("partitioner.availability.timeout.ms", 0, at_least(0), LOW,
         "Time a broker may leave batches waiting before keyless records avoid it; 0 never avoids one.", acted_on=True),

    # Transactions
    Text("transactional.id", None, NotEmpty(), LOW,
         "Name under which transactions survive a restart, and an older producer of the same name is fenced off.",
         acted_on=True),
    Int("transaction.timeout.ms", 60_000, ANY, LOW,
        "Time after which the coordinator aborts an open transaction.", acted_on=True),
    Flag("transaction.two.phase.commit.enable", False, ANY, LOW,
         "Whether transactions wait for an outside coordinator's decision and never time out (KIP-939)."),

    # Plug-ins
    List("interceptor.classes", (), Items(), LOW,
         "Classes that see, and may change, every record before it is sent.", acted_on=True),
    Flag("enable.metrics.push", True, ANY, LOW,
         "Whether metrics are pushed to brokers that ask for them (KIP-714).", acted_on=True),
)

SECTIONS = (("Producers", SETTINGS),)
