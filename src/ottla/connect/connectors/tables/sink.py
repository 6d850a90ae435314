"""Into tables: Confluent's and Debezium's JDBC sinks, exactly once.

Theory of operation. A put is one transaction of the target: the rows, and in a table of ours
(`ottla_connect_positions`) the offset behind them for each partition. So the target itself says where to go on. A
position is only moved from where this object left it: if another writer, a worker that was thought dead, has moved it
meanwhile, the transaction fails and nothing of it is there.

Within a put, records of a table are written in the order of their positions. A run is records whose rows have the same
columns, and the deletes among them. Of a run, keys that were deleted are deleted first, then the last row of each key
that is still there is written, all rows in one statement. What comes of it is what one record after the other would
give.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types

from ottla.base.ids import TopicPartition
from ottla.config.bounds import OneOf, at_least
from ottla.config.setting import ANY, HIGH, LOW, MEDIUM, REQUIRED, Flag, Int, List, Secret, Setting, Text
from ottla.connect.connector import Problem, Sink
from ottla.connect.connectors.known_options import refuse_unknown, setting_of
from ottla.connect.connectors.tables.databases import (
    Database,
    NewColumn,
    Table,
    check_database,
    comparable,
    open_database,
)
from ottla.connect.connectors.tables.rows import KeyRule, Rows, joined, last_of_each, rows_to_delete, rows_to_write
from ottla.connect.data.records import Records
from ottla.connect.errors import ConnectError, DataError, Retriable
from ottla.connect.options import InvalidOption, read_options
from ottla.connect.transforms.by_name import make_transform

POSITIONS: Final = Table("ottla_connect_positions")
_CREATE_POSITIONS: Final = (
    "CREATE TABLE IF NOT EXISTS ottla_connect_positions (connector VARCHAR(250) NOT NULL, topic VARCHAR(250) NOT NULL, "
    "partition_number INTEGER NOT NULL, next_offset BIGINT NOT NULL, PRIMARY KEY (connector, topic, partition_number))"
)


class Rules(NamedTuple):
    """What a configuration says, in one form for both vocabularies."""

    url: str
    user: str | None
    password: str | None
    mode: str
    deletes: bool
    key: KeyRule
    table: str
    creates: bool
    evolves: bool
    included: frozenset[str] = frozenset()
    excluded: frozenset[str] = frozenset()
    unwraps: bool = False
    """Whether change events are taken out of their envelopes first."""

    def keeps(self, topic: str, field: str) -> bool:
        """Whether a field becomes a column. Debezium's lists may name a topic before the field."""
        names = {field, f"{topic}:{field}"}
        return not names & self.excluded and (not self.included or bool(names & self.included))


@dataclass
class _Known:
    """A table's columns, as this connection last saw them."""

    names: set[str] = field(default_factory=set)
    is_there: bool = False


class TablesSink(Sink):
    """What both sinks do. A subclass reads its own options."""

    _rules: Rules
    _database: Database | None = None

    @classmethod
    def rules_of(cls, config: Mapping[str, str]) -> Rules:
        """Raises `InvalidOption`."""
        raise NotImplementedError

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> Sequence[Problem]:
        try:
            rules = cls.rules_of(config)
            check_database(rules.url, rules.user, rules.password)
        except (ConnectError, ImportError) as problem:
            return [(setting_of(str(problem), cls.settings, "connection.url"), str(problem))]
        return []

    def start(self) -> None:
        self._rules = self.rules_of(self.config)
        self._tables: dict[Table, _Known] = {}
        self._left: dict[TopicPartition, int] = {}
        self._unwrap = make_transform(
            "io.debezium.transforms.ExtractNewRecordState", {"delete.tombstone.handling.mode": "delete-to-tombstone"}
        )
        rules = self._rules
        self._database = open_database(rules.url, rules.user, rules.password, self.context.worker)
        self._make_positions(self._database)

    def _make_positions(self, database: Database) -> None:
        """The table of positions, if it is not there. Of two connectors that make it at once PostgreSQL fails one,
        whatever IF NOT EXISTS says."""
        if database.columns(POSITIONS):
            return
        try:
            database.execute(_CREATE_POSITIONS)
        except ConnectError:
            if not database.columns(POSITIONS):
                raise

    def stop(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None

    def positions(self) -> Mapping[TopicPartition, int]:
        rows = self._open().execute(
            "SELECT topic, partition_number, next_offset FROM ottla_connect_positions WHERE connector = ?",
            (self.context.connector,),
        )
        self._left = {TopicPartition(topic, partition): int(position) for topic, partition, position in rows}
        return dict(self._left)

    def _open(self) -> Database:
        assert self._database is not None, "the sink is not started"
        return self._database

    def put(self, batches: Sequence[Records], positions: Mapping[TopicPartition, int]) -> None:
        database = self._open()
        left = dict(self._left)
        known = {table: _Known(set(one.names), one.is_there) for table, one in self._tables.items()}
        try:
            with database.transaction():
                for table, parts in self._by_table(batches).items():
                    self._write(table, parts)
                self._move(positions)
        except BaseException:
            self._left, self._tables = left, known
            raise

    # Positions.

    def _move(self, positions: Mapping[TopicPartition, int]) -> None:
        database = self._open()
        for partition, position in positions.items():
            known = self._left.get(partition)
            if known == position:
                continue
            where = (self.context.connector, partition.topic, partition.partition)
            if known is None:
                moved = database.execute(
                    "INSERT INTO ottla_connect_positions (connector, topic, partition_number, next_offset) "
                    "VALUES (?, ?, ?, ?) ON CONFLICT (connector, topic, partition_number) DO NOTHING RETURNING 1",
                    (*where, position),
                )
            else:
                moved = database.execute(
                    "UPDATE ottla_connect_positions SET next_offset = ? WHERE connector = ? AND topic = ? "
                    "AND partition_number = ? AND next_offset = ? RETURNING 1",
                    (position, *where, known),
                )
            if not moved:
                raise Retriable(
                    f"another writer of connector {self.context.connector} has moved the position of {partition} in "
                    f"{database.place}; nothing was written"
                )
            self._left[partition] = position

    # Rows.

    def _by_table(self, batches: Sequence[Records]) -> "dict[Table, list[Records]]":
        found: dict[Table, list[Records]] = {}
        for whole in batches:
            for records in self._unwrapped(whole) if self._rules.unwraps else [whole]:
                topic = records.topic.replace(".", "_") if self._rules.unwraps else records.topic
                name = self._rules.table.replace("${topic}", topic)
                found.setdefault(Table.of(name), []).append(records)
        return found

    def _unwrapped(self, records: Records) -> list[Records]:
        """Rows out of change events. Deletes become tombstones, which go where deletes are not wanted."""
        gone, there = records.split(records.value.is_null())
        made = [] if there is None else self._unwrap.apply(there)
        made += [] if gone is None else [gone]
        if self._rules.deletes:
            return made
        return [part for one in made if (part := one.split(one.value.is_null())[1]) is not None]

    def _write(self, table: Table, batches: list[Records]) -> None:
        runs: dict[tuple[NewColumn, ...], list[Rows]] = {}
        deletes: list[Rows] = []
        for records in batches:
            gone, there = records.split(records.value.is_null())
            if gone is not None:
                deletes.append(self._deleted(gone))
            if there is not None:
                rows = self._rows(there)
                runs.setdefault(rows.columns, []).append(rows)
        for columns, writes, removed in _in_turn([joined(parts) for parts in runs.values()], deletes):
            if columns:
                self._make_room(table, columns)
            self._write_run(table, writes, removed)

    def _rows(self, records: Records) -> Rows:
        try:
            rows = rows_to_write(records, self._rules.key, lambda name: self._rules.keeps(records.topic, name))
        except DataError as error:
            raise _of(records, error) from None
        if self._rules.mode != "insert" and not rows.keys:
            raise InvalidOption(
                f"insert.mode={self._rules.mode} needs a key: set pk.mode to record_key, record_value or kafka"
            )
        return rows

    def _deleted(self, records: Records) -> Rows:
        if not self._rules.deletes:
            raise ConnectError(
                f"{records.where(0)} has no value, and delete.enabled is false: set it, or drop tombstones with the "
                "transform Filter and the predicate RecordIsTombstone"
            )
        try:
            return rows_to_delete(records, self._rules.key)
        except DataError as error:
            raise _of(records, error) from None

    def _make_room(self, table: Table, columns: tuple[NewColumn, ...]) -> None:
        """The table, with a column for each field; made or widened if the options allow it."""
        database = self._open()
        known = self._tables.setdefault(table, _Known())
        if known.is_there and {column.name for column in columns} <= known.names:
            return
        known.names = {column.name for column in database.columns(table)}
        known.is_there = bool(known.names)
        if not known.is_there:
            if not self._rules.creates:
                raise ConnectError(
                    f"there is no table {table} in {database.place}: create it, or set "
                    f"{'schema.evolution=basic' if self._rules.unwraps else 'auto.create=true'}"
                )
            database.create(table, columns)
        else:
            missing = [column for column in columns if column.name not in known.names]
            if missing and not self._rules.evolves:
                names = ", ".join(column.name for column in missing)
                raise ConnectError(
                    f"table {table} in {database.place} has no column {names}: add it, or set "
                    f"{'schema.evolution=basic' if self._rules.unwraps else 'auto.evolve=true'}"
                )
            for column in missing:
                if not column.schema.may_be_null:
                    raise ConnectError(
                        f"table {table} in {database.place} has no column {column.name}, and the field is neither "
                        "optional nor has a default: rows that are there would have no value; add the column"
                    )
            database.add_columns(table, missing)
        known.names |= {column.name for column in columns}
        known.is_there = True

    def _write_run(self, table: Table, rows: Rows | None, removed: Rows | None) -> None:
        database = self._open()
        if removed is not None:
            if not self._tables.setdefault(table, _Known()).is_there:
                self._tables[table].is_there = bool(database.columns(table))
            if self._tables[table].is_there:  # nothing to delete in a table that is not there yet
                database.delete(table, last_of_each(removed).batch)
        if rows is None or not rows.batch.num_rows:
            return
        if self._rules.mode == "insert":
            database.insert(table, rows.batch)
        elif self._rules.mode == "upsert":
            database.upsert(table, last_of_each(rows).batch, rows.keys)
        else:
            database.update(table, last_of_each(rows).batch, rows.keys)


def _of(records: Records, error: DataError) -> ConnectError:
    where = f"records of {records.topic}" if error.row is None else records.where(error.row)
    return ConnectError(f"{where}: {error}")


_Turn = tuple[tuple[NewColumn, ...], Rows | None, Rows | None]


def _in_turn(writes: list[Rows], deletes: list[Rows]) -> list[_Turn]:
    """What is written and deleted, run by run.

    Nearly always there is one kind of rows, and so one run. Otherwise a run ends where a row with other columns comes.
    Within a run, deletes come first: a row that was written before its key was deleted is left out.
    """
    if not writes:
        return [((), None, joined(deletes))] if deletes else []
    ends = [len(one.position) for one in writes]
    if len(writes) == 1 and ends[0]:
        return [_run(writes[0], joined(deletes) if deletes else None)]
    events = sorted((position, number) for number, one in enumerate(writes) for position in one.position.to_pylist())
    runs: list[tuple[int, int, int]] = []
    for position, number in events:
        if runs and runs[-1][0] == number:
            runs[-1] = (number, runs[-1][1], position)
        else:
            runs.append((number, position, position))
    gone = joined(deletes) if deletes else None
    made: list[_Turn] = []
    before = -(1 << 62)
    for place, (number, first, last) in enumerate(runs):
        end = runs[place + 1][1] - 1 if place + 1 < len(runs) else 1 << 62
        part = None if gone is None else _between(gone, before, end)
        made.append(_run(_between(writes[number], first, last), part))
        before = end + 1
    return made


def _between(rows: Rows, first: int, last: int) -> Rows:
    chosen = [place for place, one in enumerate(rows.position.to_pylist()) if first <= one <= last]
    taken = pa.array(chosen, pa.int64())
    return Rows(rows.columns, rows.batch.take(taken), rows.position.take(taken))


def _run(rows: Rows, gone: Rows | None) -> _Turn:
    if gone is None or not gone.batch.num_rows:
        return rows.columns, rows, None
    last_delete: dict[Any, int] = {}
    names = gone.keys
    keys = zip(*(comparable(gone.batch.column(name)) for name in names), strict=True)
    for key, position in zip(keys, gone.position.to_pylist(), strict=True):
        last_delete[key] = max(position, last_delete.get(key, position))
    written = zip(*(comparable(rows.batch.column(name)) for name in names), strict=True)
    kept = [
        place
        for place, (key, position) in enumerate(zip(written, rows.position.to_pylist(), strict=True))
        if position > last_delete.get(key, -(1 << 62))
    ]
    taken = pa.array(kept, pa.int64())
    return rows.columns, Rows(rows.columns, rows.batch.take(taken), rows.position.take(taken)), gone


def _checked_format(name: str, text: str) -> str:
    if "${" in text.replace("${topic}", ""):
        raise InvalidOption(f"{name}={text}: only ${{topic}} is put in here")
    return text


def _url() -> Setting:
    return Text(
        "connection.url",
        REQUIRED,
        ANY,
        HIGH,
        "jdbc:postgresql://HOST:PORT/DATABASE or jdbc:sqlite:FILE.",
        acted_on=True,
    )


class ConfluentTablesSink(TablesSink):
    """io.confluent.connect.jdbc.JdbcSinkConnector"""

    settings = (
        _url(),
        Text("connection.user", None, ANY, HIGH, "The user.", acted_on=True),
        Secret("connection.password", HIGH, "Their password.", acted_on=True),
        Text(
            "insert.mode", "insert", OneOf(("insert", "upsert", "update")), HIGH, "How rows are written.", acted_on=True
        ),
        Flag(
            "delete.enabled",
            False,
            ANY,
            MEDIUM,
            "Whether a tombstone deletes; needs pk.mode=record_key.",
            acted_on=True,
        ),
        Text(
            "pk.mode",
            "none",
            OneOf(("none", "kafka", "record_key", "record_value")),
            HIGH,
            "What a row's key is: nothing, topic with partition and offset, the record's key, or fields of its value.",
            acted_on=True,
        ),
        List(
            "pk.fields",
            (),
            ANY,
            MEDIUM,
            "The fields of the key, or the columns for topic, partition, offset.",
            acted_on=True,
        ),
        Text("table.name.format", "${topic}", ANY, MEDIUM, "The table, with ${topic} for the topic.", acted_on=True),
        Flag("auto.create", False, ANY, MEDIUM, "Whether a table that is not there is made.", acted_on=True),
        Flag("auto.evolve", False, ANY, MEDIUM, "Whether columns that are not there are added.", acted_on=True),
        List("fields.whitelist", (), ANY, MEDIUM, "The fields of values to write, if any are named.", acted_on=True),
        Int("batch.size", 3000, at_least(0), MEDIUM, "Accepted; all that arrived together is written together."),
        Int("max.retries", 10, at_least(0), MEDIUM, "Accepted; what may pass is tried again without end."),
        Int("retry.backoff.ms", 3000, at_least(0), MEDIUM, "Accepted; pauses grow by themselves."),
        Text("dialect.name", "", ANY, LOW, "Accepted; the address says it."),
    )

    @classmethod
    def rules_of(cls, config: Mapping[str, str]) -> Rules:
        name = "io.confluent.connect.jdbc.JdbcSinkConnector"
        refuse_unknown(name, cls.settings, config)
        options = read_options(cls.settings, config)
        mode, fields = options.text("pk.mode"), options.list("pk.fields")
        key = KeyRule(mode, fields)
        if mode == "kafka" and fields:
            if len(fields) != 3:
                raise InvalidOption("pk.fields: with pk.mode=kafka it names three columns, or none")
            key = KeyRule(mode, (), fields)
        if options.flag("delete.enabled") and mode != "record_key":
            raise InvalidOption("delete.enabled: deletes are only supported with pk.mode=record_key")
        if options.text("insert.mode") != "insert" and mode == "none":
            raise InvalidOption(f"pk.mode: insert.mode={options.text('insert.mode')} needs a key, and pk.mode is none")
        password = options.secret("connection.password")
        return Rules(
            options.text("connection.url"),
            options.optional_text("connection.user"),
            None if password is None else password.secret,
            options.text("insert.mode"),
            options.flag("delete.enabled"),
            key,
            _checked_format("table.name.format", options.text("table.name.format")),
            options.flag("auto.create"),
            options.flag("auto.evolve"),
            frozenset(options.list("fields.whitelist")),
        )


class DebeziumTablesSink(TablesSink):
    """io.debezium.connector.jdbc.JdbcSinkConnector: change events or plain records."""

    settings = (
        _url(),
        Text("connection.username", None, ANY, HIGH, "The user.", acted_on=True),
        Secret("connection.password", HIGH, "Their password.", acted_on=True),
        Text(
            "insert.mode", "insert", OneOf(("insert", "upsert", "update")), HIGH, "How rows are written.", acted_on=True
        ),
        Flag(
            "delete.enabled",
            False,
            ANY,
            HIGH,
            "Whether deletes delete; needs primary.key.mode=record_key.",
            acted_on=True,
        ),
        Text(
            "primary.key.mode",
            "none",
            OneOf(("none", "kafka", "record_key", "record_value")),
            HIGH,
            "What a row's key is: nothing, topic with partition and offset, the record's key, or fields of its value.",
            acted_on=True,
        ),
        List("primary.key.fields", (), ANY, HIGH, "The fields of the key.", acted_on=True),
        Text(
            "collection.name.format", "${topic}", ANY, MEDIUM, "The table, with ${topic} for the topic.", acted_on=True
        ),
        Text(
            "schema.evolution",
            "none",
            OneOf(("none", "basic")),
            MEDIUM,
            "Whether tables are made and columns added (`basic`).",
            acted_on=True,
        ),
        List("field.include.list", (), ANY, LOW, "The fields to write, `field` or `topic:field`.", acted_on=True),
        List("field.exclude.list", (), ANY, LOW, "Fields not to write.", acted_on=True),
        Int("batch.size", 500, at_least(1), LOW, "Accepted; all that arrived together is written together."),
        Text("quote.identifiers", "false", ANY, LOW, "Accepted; names are always quoted."),
        Flag("use.reduction.buffer", False, ANY, LOW, "Accepted; of each key the last row is written."),
    )

    @classmethod
    def rules_of(cls, config: Mapping[str, str]) -> Rules:
        refuse_unknown("io.debezium.connector.jdbc.JdbcSinkConnector", cls.settings, config)
        options = read_options(cls.settings, config)
        mode = options.text("primary.key.mode")
        if options.flag("delete.enabled") and mode != "record_key":
            raise InvalidOption("delete.enabled: deletes are only supported with primary.key.mode=record_key")
        if options.text("insert.mode") != "insert" and mode == "none":
            raise InvalidOption(f"primary.key.mode: insert.mode={options.text('insert.mode')} needs a key")
        password = options.secret("connection.password")
        evolves = options.text("schema.evolution") == "basic"
        return Rules(
            options.text("connection.url"),
            options.optional_text("connection.username"),
            None if password is None else password.secret,
            options.text("insert.mode"),
            options.flag("delete.enabled"),
            KeyRule(mode, options.list("primary.key.fields")),
            _checked_format("collection.name.format", options.text("collection.name.format")),
            evolves,
            evolves,
            frozenset(options.list("field.include.list")),
            frozenset(options.list("field.exclude.list")),
            unwraps=True,
        )
