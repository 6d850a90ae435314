"""The options of the connectors, under Debezium's names. What we lack is refused by name.

An option that says "taken and not needed" tunes something that this connector does not have, a history of schemas for
instance: a configuration that was made for Debezium keeps working.
"""

import re
from collections.abc import Mapping
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
from ottla.connect.connectors.postgres.options import OF_EVERY_CONNECTOR, named
from ottla.connect.options import InvalidOption, invalid, read_options

MARIADB: Final = "io.debezium.connector.mariadb.MariaDbConnector"
MYSQL: Final = "io.debezium.connector.mysql.MySqlConnector"
_NOT_NEEDED: Final = "Taken and not needed here."
SSL_MODES: Final = (
    "disable", "disabled", "trust", "prefer", "preferred", "required", "verify-ca", "verify_ca", "verify-full",
    "verify_identity",
)  # fmt: skip

ROWS: Final[tuple[Setting, ...]] = (
    Text("database.hostname", REQUIRED, NotEmpty(), HIGH, "The host of the server.", acted_on=True),
    Int("database.port", 3306, Between(1, 65535), HIGH, "Its port.", acted_on=True),
    Text(
        "database.user",
        REQUIRED,
        NotEmpty(),
        HIGH,
        "The user, who has the rights REPLICATION SLAVE, BINLOG MONITOR (REPLICATION CLIENT) and SELECT.",
        acted_on=True,
    ),
    Secret("database.password", HIGH, "The user's password.", acted_on=True),
    Long(
        "database.server.id",
        None,
        Between(1, 4_294_967_295),
        HIGH,
        "The number by which the server knows this connector; no other replica may have it. Without one it is made of "
        "the connector's name and topic.prefix.",
        acted_on=True,
    ),
    Text(
        "database.ssl.mode",
        "preferred",
        OneOf(SSL_MODES),
        MEDIUM,
        "Whether connections are encrypted, and how the server proves who it is. MariaDB's names and MySQL's are both "
        "taken. `preferred` encrypts if the server can.",
        acted_on=True,
    ),
    Text("ottla.database.ssl.ca", None, ANY, MEDIUM, "File of the certificates that are trusted (PEM).", acted_on=True),
    Text("ottla.database.ssl.cert", None, ANY, MEDIUM, "File of the client's certificate (PEM).", acted_on=True),
    Text("ottla.database.ssl.key", None, ANY, MEDIUM, "File of the client's key (PEM).", acted_on=True),
    Int(
        "connect.timeout.ms",
        30_000,
        Between(1, INT_MAX),
        MEDIUM,
        "How long a connection may take to open.",
        acted_on=True,
    ),
    Flag("connect.keep.alive", True, ANY, LOW, _NOT_NEEDED),
    Long(
        "connect.keep.alive.interval.ms",
        60_000,
        Between(1000, LONG_MAX),
        LOW,
        "How often a silent server says that it is there. After twice this time without a word the connection is "
        "given up and opened anew.",
        acted_on=True,
    ),
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
        "The first part of all topics' names, and the name of this server in offsets and records.",
        acted_on=True,
    ),
    Text("topic.delimiter", ".", NotEmpty(), LOW, "What stands between the parts of a topic's name.", acted_on=True),
    List("database.include.list", None, ANY, HIGH, "Patterns of databases that are captured.", acted_on=True),
    List("database.exclude.list", None, ANY, MEDIUM, "Patterns of databases that are not.", acted_on=True),
    List(
        "table.include.list", None, ANY, HIGH, "Patterns of tables (`database.table`) that are captured.", acted_on=True
    ),
    List("table.exclude.list", None, ANY, HIGH, "Patterns of tables that are not.", acted_on=True),
    List(
        "column.include.list",
        None,
        ANY,
        MEDIUM,
        "Patterns of columns (`database.table.column`) that are in records.",
        acted_on=True,
    ),
    List("column.exclude.list", None, ANY, MEDIUM, "Patterns of columns that are not. Keys stay.", acted_on=True),
    Text(
        "message.key.columns",
        None,
        ANY,
        MEDIUM,
        "Columns of records' keys: `database.table:column,column;…`, with patterns of tables.",
        acted_on=True,
    ),
    Text(
        "snapshot.mode",
        "initial",
        OneOf(("always", "initial", "initial_only", "no_data", "never", "schema_only", "when_needed")),
        HIGH,
        "Whether the tables are read before the changes: at the first start (`initial`), with no changes after "
        "it (`initial_only`), not at all (`no_data`, `schema_only`, `never`), also when the binary log is gone "
        "(`when_needed`), or at every start (`always`).",
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
    Text(
        "snapshot.locking.mode",
        "none",
        OneOf(("none", "minimal", "minimal_percona", "minimal_percona_no_table_locks", "extended")),
        LOW,
        "Taken and not needed here: a snapshot takes no locks.",
    ),
    Int("snapshot.fetch.size", 10_240, Between(1, INT_MAX), LOW, _NOT_NEEDED),
    Int("snapshot.max.threads", 1, Between(1, INT_MAX), LOW, _NOT_NEEDED),
    Long("snapshot.lock.timeout.ms", 10_000, Between(0, LONG_MAX), LOW, _NOT_NEEDED),
    Int("min.row.count.to.stream.results", 1000, Between(0, INT_MAX), LOW, _NOT_NEEDED),
    Int(
        "ottla.snapshot.chunk.rows",
        100_000,
        Between(1, INT_MAX),
        LOW,
        "Rows of a chunk of a snapshot, at most; large rows make smaller chunks. A crash repeats one chunk's reading.",
        acted_on=True,
    ),
    Text(
        "decimal.handling.mode",
        "precise",
        OneOf(("precise", "double", "string")),
        MEDIUM,
        "What decimal becomes.",
        acted_on=True,
    ),
    Text(
        "time.precision.mode",
        "adaptive_time_microseconds",
        OneOf(("adaptive_time_microseconds", "connect", "isostring", "microseconds", "nanoseconds")),
        MEDIUM,
        "What date, time and datetime become.",
        acted_on=True,
    ),
    Text(
        "bigint.unsigned.handling.mode",
        "long",
        OneOf(("long", "precise")),
        MEDIUM,
        "What bigint unsigned becomes: INT64, in which numbers beyond 9223372036854775807 are negative, or Decimal.",
        acted_on=True,
    ),
    Text(
        "binary.handling.mode",
        "bytes",
        OneOf(("bytes", "base64", "base64-url-safe", "hex")),
        LOW,
        "What binary, varbinary and blob become.",
        acted_on=True,
    ),
    Flag("enable.time.adjuster", True, ANY, LOW, "Taken and not needed here: the server stores years of four digits."),
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
        "Records of transactions' begin and end: not here yet, true is refused.",
        acted_on=True,
    ),
    Flag(
        "include.schema.changes",
        False,
        ANY,
        MEDIUM,
        "Records of DDL, in the topic of the prefix: not here yet, true is refused.",
        acted_on=True,
    ),
    Flag("include.schema.comments", False, ANY, LOW, "Not here: true is refused.", acted_on=True),
    Flag("include.query", False, ANY, LOW, "The statement of a change: not here yet, true is refused.", acted_on=True),
    Int(
        "heartbeat.interval.ms",
        0,
        Between(0, INT_MAX),
        MEDIUM,
        "How often a heartbeat record is written; 0 is never. Not needed: in a server whose changes are in other "
        "tables, the offset moves by itself.",
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
        "event.processing.failure.handling.mode",
        "fail",
        OneOf(("fail",)),
        LOW,
        "A change that cannot be read fails the connector.",
        acted_on=True,
    ),
    Text(
        "event.deserialization.failure.handling.mode",
        "fail",
        OneOf(("fail",)),
        LOW,
        "The same, under its older name.",
        acted_on=True,
    ),
    Text(
        "inconsistent.schema.handling.mode",
        "fail",
        OneOf(("fail",)),
        LOW,
        "A change whose columns are not known fails the connector.",
        acted_on=True,
    ),
    Int(
        "binlog.buffer.size",
        0,
        Between(0, 0),
        LOW,
        "0: only transactions that are committed are in the log.",
        acted_on=True,
    ),
    Flag("use.nongraceful.disconnect", False, ANY, LOW, _NOT_NEEDED),
    Flag("resolve.like.table.schema", False, ANY, LOW, _NOT_NEEDED),
    Text("database.protocol", None, ANY, LOW, _NOT_NEEDED),
    Text("database.jdbc.driver", None, ANY, LOW, _NOT_NEEDED),
    Long("database.server.id.offset", 10_000, Between(0, LONG_MAX), LOW, _NOT_NEEDED),
    Int("max.batch.size", 2048, Between(1, INT_MAX), LOW, _NOT_NEEDED),
    Int("max.queue.size", 8192, Between(1, INT_MAX), LOW, _NOT_NEEDED),
    Long("max.queue.size.in.bytes", 0, Between(0, LONG_MAX), LOW, _NOT_NEEDED),
    Long("poll.interval.ms", 500, Between(1, LONG_MAX), LOW, _NOT_NEEDED),
    Long("retriable.restart.connector.wait.ms", 10_000, Between(0, LONG_MAX), LOW, _NOT_NEEDED),
    Int("query.fetch.size", 0, Between(0, INT_MAX), LOW, _NOT_NEEDED),
    Flag("table.ignore.builtin", True, ANY, LOW, "Taken and not needed here: system tables are never captured."),
    Text(
        "topic.naming.strategy",
        "io.debezium.schema.DefaultTopicNamingStrategy",
        OneOf(("io.debezium.schema.DefaultTopicNamingStrategy", "io.debezium.schema.SchemaTopicNamingStrategy")),
        LOW,
        "`prefix.database.table`.",
        acted_on=True,
    ),
)

_HISTORY: Final = re.compile(r"schema\.history\.internal(\..+)?")
"""Debezium's history of schemas: taken and not needed, whatever it says."""
_NOT_YET: Final = ("provide.transaction.metadata", "include.schema.changes", "include.schema.comments", "include.query")
SYSTEM: Final = frozenset(["mysql", "sys", "information_schema", "performance_schema"])


def read(config: Mapping[str, str]) -> Values:
    """The options. Raises `InvalidOption`, also for a name that this connector does not have."""
    known = {row.name for row in ROWS}
    for name in config:
        if name not in known and not OF_EVERY_CONNECTOR.fullmatch(name) and not _HISTORY.fullmatch(name):
            raise InvalidOption(f"Unknown option {name}: this connector does not have it. Remove it to go on without.")
    options = read_options(ROWS, config)
    for what in ("database", "table", "column"):
        pair = (f"{what}.include.list", f"{what}.exclude.list")
        if all(options[name] for name in pair):
            raise InvalidOption(f"{pair[0]} and {pair[1]} cannot both be set: remove one")
        named(options, what)
    for name in _NOT_YET:
        if options.flag(name):
            raise invalid(name, "true", "this is not supported here")
    if not re.fullmatch(r"[A-Za-z0-9._-]+", options.text("topic.prefix")):
        raise invalid(
            "topic.prefix", options.text("topic.prefix"), "it must have letters, digits, '.', '_' and '-' only"
        )
    for operation in options.list("skipped.operations"):
        if operation not in ("c", "u", "d", "t", "none"):
            raise invalid("skipped.operations", operation, "it must be of c, u, d, t, or none")
    return options
