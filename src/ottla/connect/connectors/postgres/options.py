"""The options of the connector, under Debezium's names. What we lack is refused by name.

An option that is here and says "taken and not needed" tunes something that this connector does not have (queues between
threads, for instance): a configuration that was made for Debezium keeps working.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ottla.config.bounds import Between, NotEmpty, OneOf
from ottla.config.parse import Values
from ottla.config.setting import (
    ANY,
    HIGH,
    INT_MAX,
    LONG_MAX,
    LOW,
    MEDIUM,
    REQUIRED,
    Flag,
    Int,
    List,
    Long,
    Secret,
    Setting,
    Text,
)
from ottla.connect.options import InvalidOption, invalid, read_options
from ottla.connect.transforms.java_patterns import compiled

PLACEHOLDER: Final = "__debezium_unavailable_value"
_NOT_NEEDED: Final = "Taken and not needed here."

ROWS: Final[tuple[Setting, ...]] = (
    Text("database.hostname", REQUIRED, NotEmpty(), HIGH, "The host of the database.", acted_on=True),
    Int("database.port", 5432, Between(1, 65535), HIGH, "Its port.", acted_on=True),
    Text("database.user", REQUIRED, NotEmpty(), HIGH, "The user, who has the REPLICATION right.", acted_on=True),
    Secret("database.password", HIGH, "The user's password.", acted_on=True),
    Text("database.dbname", REQUIRED, NotEmpty(), HIGH, "The database.", acted_on=True),
    Text(
        "database.sslmode",
        "prefer",
        OneOf(("disable", "allow", "prefer", "require", "verify-ca", "verify-full")),
        MEDIUM,
        "Whether the connection is encrypted, and how the server proves who it is.",
        acted_on=True,
    ),
    Text("database.sslcert", None, ANY, MEDIUM, "File of the client's certificate (PEM).", acted_on=True),
    Text("database.sslkey", None, ANY, MEDIUM, "File of the client's key (PEM).", acted_on=True),
    Secret("database.sslpassword", MEDIUM, "The password of that key.", acted_on=True),
    Text("database.sslrootcert", None, ANY, MEDIUM, "File of the certificates that are trusted (PEM).", acted_on=True),
    Flag("database.tcpKeepAlive", True, ANY, LOW, "Whether the system probes a silent connection.", acted_on=True),
    Int(
        "database.query.timeout.ms",
        600_000,
        Between(0, INT_MAX),
        LOW,
        "How long a query may take; 0 is no limit.",
        acted_on=True,
    ),
    Text(
        "topic.prefix",
        REQUIRED,
        NotEmpty(),
        HIGH,
        "The first part of all topics' names, and the name of this database in offsets and records.",
        acted_on=True,
    ),
    Text("topic.delimiter", ".", NotEmpty(), LOW, "What stands between the parts of a topic's name.", acted_on=True),
    Text(
        "plugin.name",
        "pgoutput",
        OneOf(("pgoutput",)),
        MEDIUM,
        "The server's output plugin: pgoutput, which every PostgreSQL has.",
        acted_on=True,
    ),
    Text(
        "slot.name",
        "debezium",
        NotEmpty(),
        MEDIUM,
        "The replication slot. Each connector has one of its own.",
        acted_on=True,
    ),
    Flag(
        "slot.drop.on.stop",
        False,
        ANY,
        LOW,
        "Whether the slot goes when the connector stops: changes until its next start are lost then.",
        acted_on=True,
    ),
    Flag(
        "slot.failover",
        False,
        ANY,
        LOW,
        "Whether the slot is kept on standbys too (PostgreSQL 17 and later).",
        acted_on=True,
    ),
    Text(
        "slot.stream.params",
        None,
        ANY,
        LOW,
        "More parameters of START_REPLICATION: `name=value;name=value`.",
        acted_on=True,
    ),
    Int("slot.max.retries", 6, Between(0, INT_MAX), LOW, _NOT_NEEDED),
    Long("slot.retry.delay.ms", 10_000, Between(0, LONG_MAX), LOW, _NOT_NEEDED),
    Text("publication.name", "dbz_publication", NotEmpty(), MEDIUM, "The publication.", acted_on=True),
    Text(
        "publication.autocreate.mode",
        "all_tables",
        OneOf(("all_tables", "disabled", "filtered", "no_tables")),
        MEDIUM,
        "What is done if the publication is not there: one of all tables, none, one of the tables that are "
        "captured, one of no table. `filtered` also changes one that is there.",
        acted_on=True,
    ),
    Flag(
        "publish.via.partition.root",
        False,
        ANY,
        LOW,
        "Whether changes of partitions are changes of their table, in a publication that the connector makes.",
        acted_on=True,
    ),
    List("schema.include.list", None, ANY, MEDIUM, "Patterns of schemas that are captured.", acted_on=True),
    List("schema.exclude.list", None, ANY, MEDIUM, "Patterns of schemas that are not.", acted_on=True),
    List(
        "table.include.list", None, ANY, HIGH, "Patterns of tables (`schema.table`) that are captured.", acted_on=True
    ),
    List("table.exclude.list", None, ANY, HIGH, "Patterns of tables that are not.", acted_on=True),
    List(
        "column.include.list",
        None,
        ANY,
        MEDIUM,
        "Patterns of columns (`schema.table.column`) that are in records.",
        acted_on=True,
    ),
    List("column.exclude.list", None, ANY, MEDIUM, "Patterns of columns that are not. Keys stay.", acted_on=True),
    Text(
        "message.key.columns",
        None,
        ANY,
        MEDIUM,
        "Columns of records' keys: `schema.table:column,column;…`, with patterns of tables.",
        acted_on=True,
    ),
    List(
        "message.prefix.include.list",
        None,
        ANY,
        LOW,
        "Patterns of prefixes of logical messages that become records.",
        acted_on=True,
    ),
    List("message.prefix.exclude.list", None, ANY, LOW, "Patterns of prefixes that do not.", acted_on=True),
    Text(
        "snapshot.mode",
        "initial",
        OneOf(("always", "initial", "initial_only", "no_data", "never", "when_needed")),
        HIGH,
        "Whether the tables are read before the changes: at the first start (`initial`), with no changes after "
        "it (`initial_only`), not at all (`no_data`, `never`), also when the slot was lost (`when_needed`), or "
        "at every start (`always`).",
        acted_on=True,
    ),
    List(
        "snapshot.include.collection.list",
        None,
        ANY,
        LOW,
        "Patterns of the captured tables that a snapshot reads.",
        acted_on=True,
    ),
    Text("snapshot.locking.mode", "none", OneOf(("none",)), LOW, "A snapshot takes no locks.", acted_on=True),
    Text(
        "snapshot.isolation.mode",
        "serializable",
        OneOf(("serializable", "repeatable_read", "read_committed", "read_uncommitted")),
        LOW,
        _NOT_NEEDED,
    ),
    Int("snapshot.fetch.size", 10_240, Between(1, INT_MAX), LOW, _NOT_NEEDED),
    Int(
        "snapshot.max.threads",
        1,
        Between(1, 64),
        MEDIUM,
        "How many chunks of a table a snapshot reads at once, each through a connection of its own.",
        acted_on=True,
    ),
    Long("snapshot.lock.timeout.ms", 10_000, Between(0, LONG_MAX), LOW, _NOT_NEEDED),
    Int(
        "ottla.snapshot.chunk.rows",
        100_000,
        Between(1, INT_MAX),
        LOW,
        "Rows of a chunk of a snapshot, at most; large rows make smaller chunks. A crash repeats one chunk's reading.",
        acted_on=True,
    ),
    Text(
        "signal.data.collection",
        None,
        ANY,
        MEDIUM,
        "The table (`schema.table`) whose new rows are signals: `id`, `type`, `data`. It is captured, too.",
        acted_on=True,
    ),
    List(
        "signal.enabled.channels",
        ("source",),
        ANY,
        MEDIUM,
        "Where signals come from: `source`, the table.",
        acted_on=True,
    ),
    Long("signal.poll.interval.ms", 5_000, Between(0, LONG_MAX), LOW, _NOT_NEEDED),
    Int("incremental.snapshot.chunk.size", 1024, Between(1, INT_MAX), LOW, _NOT_NEEDED),
    Text(
        "incremental.snapshot.watermarking.strategy",
        "INSERT_INSERT",
        OneOf(("INSERT_INSERT", "INSERT_DELETE"), any_case=True),
        LOW,
        "Taken and not needed: nothing is written to the database.",
    ),
    Flag("incremental.snapshot.allow.schema.changes", False, ANY, LOW, _NOT_NEEDED),
    Flag("read.only", False, ANY, LOW, _NOT_NEEDED),
    Text(
        "decimal.handling.mode",
        "precise",
        OneOf(("precise", "double", "string")),
        MEDIUM,
        "What numeric and money become.",
        acted_on=True,
    ),
    Text(
        "time.precision.mode",
        "adaptive",
        OneOf(("adaptive", "adaptive_time_microseconds", "connect", "isostring", "microseconds", "nanoseconds")),
        MEDIUM,
        "What date, time and timestamp become.",
        acted_on=True,
    ),
    Text(
        "binary.handling.mode",
        "bytes",
        OneOf(("bytes", "base64", "base64-url-safe", "hex")),
        LOW,
        "What bytea becomes.",
        acted_on=True,
    ),
    Text(
        "interval.handling.mode",
        "numeric",
        OneOf(("numeric", "string")),
        LOW,
        "What interval becomes: microseconds, or ISO 8601.",
        acted_on=True,
    ),
    Text("hstore.handling.mode", "json", OneOf(("json", "map")), LOW, "What hstore becomes.", acted_on=True),
    Int("money.fraction.digits", 2, Between(0, 10), LOW, "Digits of money behind the point.", acted_on=True),
    Flag(
        "include.unknown.datatypes",
        False,
        ANY,
        LOW,
        "Whether columns of types that have no mapping are in records, as their text in bytes.",
        acted_on=True,
    ),
    Text(
        "unavailable.value.placeholder",
        PLACEHOLDER,
        ANY,
        LOW,
        "What stands for a large value that an update did not change, and PostgreSQL did not send.",
        acted_on=True,
    ),
    Flag("tombstones.on.delete", True, ANY, MEDIUM, "Whether a delete is followed by a tombstone.", acted_on=True),
    List(
        "skipped.operations", ("t",), ANY, LOW, "Operations that become no records: c, u, d, t, or none.", acted_on=True
    ),
    Flag(
        "extended.headers.enabled",
        True,
        ANY,
        LOW,
        "Whether records have the four `__debezium.context` headers.",
        acted_on=True,
    ),
    Flag(
        "provide.transaction.metadata",
        False,
        ANY,
        LOW,
        "Whether transactions' begins and ends are records of a topic of their own, and changes say their place in "
        "their transaction.",
        acted_on=True,
    ),
    Text("topic.transaction", "transaction", NotEmpty(), LOW, "The last part of that topic's name.", acted_on=True),
    Int(
        "heartbeat.interval.ms",
        0,
        Between(0, INT_MAX),
        MEDIUM,
        "How often a heartbeat record is written; 0 is never. Not needed to free the WAL.",
        acted_on=True,
    ),
    Text(
        "heartbeat.topics.prefix",
        "__debezium-heartbeat",
        NotEmpty(),
        LOW,
        "The first part of the heartbeats' topic.",
        acted_on=True,
    ),
    Text(
        "heartbeat.action.query",
        None,
        ANY,
        LOW,
        "A statement that is run in the database with each heartbeat.",
        acted_on=True,
    ),
    Int(
        "status.update.interval.ms",
        10_000,
        Between(1, INT_MAX),
        LOW,
        "How often the server is told how far its changes are written.",
        acted_on=True,
    ),
    Long(
        "ottla.wal.retained.max.bytes",
        0,
        Between(0, LONG_MAX),
        MEDIUM,
        "When the slot keeps more WAL than this, it is dropped and the connector fails, before the database's disk is "
        "full; 0 is no limit.",
        acted_on=True,
    ),
    Text(
        "schema.name.adjustment.mode",
        "none",
        OneOf(("none", "avro")),
        LOW,
        "Whether schemas' names are made valid for Avro.",
        acted_on=True,
    ),
    Text(
        "field.name.adjustment.mode", "none", OneOf(("none", "avro")), LOW, "Whether fields' names are.", acted_on=True
    ),
    Text(
        "schema.refresh.mode",
        "columns_diff",
        OneOf(("columns_diff", "columns_diff_exclude_unchanged_toast")),
        LOW,
        _NOT_NEEDED,
    ),
    Text(
        "event.processing.failure.handling.mode",
        "fail",
        OneOf(("fail",)),
        LOW,
        "A change that cannot be read fails the connector.",
        acted_on=True,
    ),
    Flag(
        "flush.lsn.source",
        True,
        ANY,
        LOW,
        "Whether the slot moves on. Without, somebody else must see to it.",
        acted_on=True,
    ),
    Int("max.batch.size", 2048, Between(1, INT_MAX), LOW, _NOT_NEEDED),
    Int("max.queue.size", 8192, Between(1, INT_MAX), LOW, _NOT_NEEDED),
    Long("max.queue.size.in.bytes", 0, Between(0, LONG_MAX), LOW, _NOT_NEEDED),
    Long("poll.interval.ms", 500, Between(1, LONG_MAX), LOW, _NOT_NEEDED),
    Long("retriable.restart.connector.wait.ms", 10_000, Between(0, LONG_MAX), LOW, _NOT_NEEDED),
    Int("query.fetch.size", 0, Between(0, INT_MAX), LOW, _NOT_NEEDED),
    Long("xmin.fetch.interval.ms", 0, Between(0, 0), LOW, "0: records have no xmin."),
    Flag("table.ignore.builtin", True, ANY, LOW, _NOT_NEEDED),
    Text(
        "topic.naming.strategy",
        "io.debezium.schema.SchemaTopicNamingStrategy",
        OneOf(("io.debezium.schema.SchemaTopicNamingStrategy",)),
        LOW,
        "`prefix.schema.table`.",
        acted_on=True,
    ),
)

OF_EVERY_CONNECTOR: Final = re.compile(
    r"name|connector\.class|connector\.plugin\.version|tasks\.max|tasks\.max\.enforce|config\.action\.reload|exactly\.once\.support"
    r"|(key|value|header)\.converter(\..+)?|transforms(\..+)?|predicates(\..+)?|errors\..+|topic\.creation\..+"
    r"|(producer|consumer|admin)\.override\..+|offsets\.storage\.topic|transaction\.boundary(\..+)?"
)


@dataclass(frozen=True, slots=True)
class Named:
    """Which of some names are meant, by patterns that match a whole name, in any case of letters."""

    include: tuple[re.Pattern[str], ...] | None
    exclude: tuple[re.Pattern[str], ...]

    def __call__(self, name: str) -> bool:
        if self.include is not None and not any(one.fullmatch(name) for one in self.include):
            return False
        return not any(one.fullmatch(name) for one in self.exclude)


def read(config: Mapping[str, str]) -> Values:
    """The options. Raises `InvalidOption`, also for a name that this connector does not have."""
    known = {row.name for row in ROWS}
    for name in config:
        if name not in known and not OF_EVERY_CONNECTOR.fullmatch(name):
            raise InvalidOption(f"Unknown option {name}: this connector does not have it. Remove it to go on without.")
    options = read_options(ROWS, config)
    for pair in (("schema.include.list", "schema.exclude.list"), ("table.include.list", "table.exclude.list"),
                 ("column.include.list", "column.exclude.list"),
                 ("message.prefix.include.list", "message.prefix.exclude.list")):  # fmt: skip
        if all(options[name] for name in pair):
            raise InvalidOption(f"{pair[0]} and {pair[1]} cannot both be set: remove one")
    if not re.fullmatch(r"[a-z0-9_]{1,63}", options.text("slot.name")):
        raise invalid("slot.name", options.text("slot.name"), "a slot's name has lower-case letters, digits and _")
    if not re.fullmatch(r"[A-Za-z0-9._-]+", options.text("topic.prefix")):
        raise invalid(
            "topic.prefix", options.text("topic.prefix"), "it must have letters, digits, '.', '_' and '-' only"
        )
    for channel in options.list("signal.enabled.channels"):
        if channel != "source":
            raise invalid("signal.enabled.channels", channel, "signals come from the table only: it must be source")
    for operation in options.list("skipped.operations"):
        if operation not in ("c", "u", "d", "t", "none"):
            raise invalid("skipped.operations", operation, "it must be of c, u, d, t, or none")
    for name in ("schema", "table", "column", "message.prefix"):
        named(options, name)
    return options


def named(options: Values, what: str) -> Named:
    """The names that `what.include.list` and `what.exclude.list` choose. Raises `InvalidOption`."""
    include, exclude = f"{what}.include.list", f"{what}.exclude.list"
    chosen = patterns(include, options[include])
    return Named(chosen or None, patterns(exclude, options[exclude]))


def patterns(name: str, listed: object) -> tuple[re.Pattern[str], ...]:
    found: list[re.Pattern[str]] = []
    assert listed is None or isinstance(listed, Sequence)
    for text in listed or ():
        try:
            found.append(re.compile(compiled(text).pattern, re.IGNORECASE))
        except re.error as error:
            raise invalid(name, text, f"it must be a regular expression: {error}") from None
    return tuple(found)
