"""A worker's properties, under Kafka's names.

Rows are those that the worker itself acts on; everything else (converters' options, `producer.…`, `consumer.…`,
config providers, `file.allowed.paths`) is kept, and goes to the engine as it is. Where a default differs from
Kafka's, the row says so.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from ottla.client.settings import ClientSettings, read_settings
from ottla.config.bounds import Between, at_least
from ottla.config.parse import Values
from ottla.config.scopes import Scope, settings
from ottla.config.setting import ANY, HIGH, LOW, MEDIUM, REQUIRED, Int, List, Setting, Short, Text
from ottla.connect.options import InvalidOption, invalid, read_options
from ottla.connect.worker.records import Topic

DEFAULT_PORT: Final = 8083
STANDALONE_GROUP: Final = "connect-standalone"
STANDALONE_OFFSETS: Final = "connect-standalone-offsets"

_BOTH: Final = (
    List("bootstrap.servers", ("localhost:9092",), ANY, HIGH, "Brokers of the cluster."),
    Text("key.converter", REQUIRED, ANY, HIGH, "How keys are written and read, unless a connector says otherwise."),
    Text("value.converter", REQUIRED, ANY, HIGH, "How values are written and read, unless a connector says otherwise."),
    List(
        "listeners",
        (f"http://127.0.0.1:{DEFAULT_PORT}",),
        ANY,
        MEDIUM,
        "Where the REST interface is. Kafka's default is all addresses; here it is loopback until told otherwise.",
    ),
    Text("rest.advertised.host.name", None, ANY, LOW, "The host that other workers and states name."),
    Int("rest.advertised.port", None, Between(1, 65535), LOW, "The port that other workers and states name."),
    Text(
        "ottla.connect.state.dir",
        "./ottla-connect-state",
        ANY,
        LOW,
        "Where checkpoints are; those of Spark's formats are needed, others may be lost.",
    ),
)
_TOPIC_ROWS: Final = (
    Short("offset.storage.replication.factor", 3, at_least(1), LOW, "Replicas of the offsets topic."),
    Int("offset.storage.partitions", 25, at_least(1), LOW, "Partitions of the offsets topic."),
)
DISTRIBUTED: Final[tuple[Setting, ...]] = (
    *_BOTH,
    Text("group.id", REQUIRED, ANY, HIGH, "Workers of one group run the same connectors: one leads, others stand by."),
    Text("config.storage.topic", REQUIRED, ANY, HIGH, "The topic of configurations; it has one partition."),
    Short("config.storage.replication.factor", 3, at_least(1), LOW, "Its replicas."),
    Text("offset.storage.topic", REQUIRED, ANY, HIGH, "The topic of source connectors' offsets."),
    *_TOPIC_ROWS,
    Text("status.storage.topic", REQUIRED, ANY, HIGH, "The topic of states."),
    Short("status.storage.replication.factor", 3, at_least(1), LOW, "Its replicas."),
    Int("status.storage.partitions", 5, at_least(1), LOW, "Its partitions."),
    Int(
        "session.timeout.ms",
        6_000,
        at_least(1),
        HIGH,
        "After how long without a sign of life another worker takes over. Kafka's default is 10 s.",
    ),
    Int("heartbeat.interval.ms", 1_000, at_least(1), HIGH, "How often a worker gives a sign of life."),
    Int("rebalance.timeout.ms", 60_000, at_least(1), HIGH, "How long a worker has to join its group again."),
)
STANDALONE: Final[tuple[Setting, ...]] = (
    *_BOTH,
    Text("group.id", STANDALONE_GROUP, ANY, LOW, "What names of transactions begin with."),
    Text("offset.storage.topic", STANDALONE_OFFSETS, ANY, LOW, "The topic of source connectors' offsets."),
    *_TOPIC_ROWS,
    Text("offset.storage.file.filename", None, ANY, LOW, "Not used: offsets are in offset.storage.topic."),
)


class Listener(NamedTuple):
    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


class WorkerSettings(NamedTuple):
    values: Values
    properties: Mapping[str, str]
    """All that was given, and our defaults."""
    listeners: tuple[Listener, ...]
    is_standalone: bool

    @property
    def topics(self) -> dict[Topic, str | None]:
        """None: kept in memory."""
        names = {topic: self.values.optional_text(topic.value) for topic in Topic if topic is Topic.OFFSETS}
        others = (Topic.CONFIGS, Topic.STATUS)
        return names | {topic: None if self.is_standalone else self.values.text(topic.value) for topic in others}

    def client_settings(self, scope: Scope) -> ClientSettings:
        """Of the clients that the worker itself has. Raises `ConfigError`."""
        table = settings(scope)
        given: dict[str, object] = {
            name: value
            for name, value in self.properties.items()
            if name in table and name.startswith(("security.", "sasl.", "ssl.", "client.", "request.", "retry."))
        }
        given["bootstrap.servers"] = list(self.values.list("bootstrap.servers"))
        given.setdefault("client.id", f"connect-{self.values.text('group.id')}")
        if scope is Scope.CONSUMER:
            given |= {
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "allow.auto.create.topics": False,
            }
        if scope is Scope.PRODUCER:
            given |= {
                "transactional.id": f"connect-cluster-{self.values.text('group.id')}",
                "transaction.timeout.ms": 60_000,
                "delivery.timeout.ms": 60_000,
                "linger.ms": 0,
            }
        return read_settings(scope, given)


def read_worker_settings(given: Mapping[str, str], *, standalone: bool = False) -> WorkerSettings:
    """Raises `InvalidOption` in Kafka's words."""
    rows = STANDALONE if standalone else DISTRIBUTED
    values = read_options(rows, given)
    properties = dict(given)
    for name in ("group.id", "offset.storage.topic", "ottla.connect.state.dir"):
        properties.setdefault(name, values.text(name))
    properties.setdefault("bootstrap.servers", ",".join(values.list("bootstrap.servers")))
    listeners = tuple(_listener(text) for text in values.list("listeners"))
    if not listeners:
        raise InvalidOption("Configuration 'listeners' must not be empty.")
    return WorkerSettings(values, properties, listeners, standalone)


def _listener(text: str) -> Listener:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise invalid("listeners", text, "it must be http://HOST:PORT or https://HOST:PORT") from None
    if parts.scheme.lower() not in ("http", "https"):
        raise invalid("listeners", text, "it must be http://HOST:PORT or https://HOST:PORT")
    return Listener(parts.scheme.lower(), parts.hostname or "0.0.0.0", DEFAULT_PORT if port is None else port)
