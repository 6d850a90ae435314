"""Debezium's records: schemas of keys, values and envelopes, names of topics, and columns put together.

A change is one record; a delete is followed by a tombstone; an update of the key is a delete of the old key, its
tombstone, and a create of the new one. All changes of a table that come together are one batch of envelopes and one of
tombstones. A tombstone must not come after a newer record of its key: where a key that was deleted comes again, the
batches end and new ones begin.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]

from ottla.config.parse import Values
from ottla.connect.connectors.postgres.catalogue import TableFacts
from ottla.connect.connectors.postgres.defaults import default_of
from ottla.connect.connectors.postgres.options import Named, named, patterns
from ottla.connect.connectors.postgres.pgoutput import DELETE, INSERT, UPDATE, RelationColumn, Rows, Sent
from ottla.connect.connectors.postgres.types import Mapped, TypeMap
from ottla.connect.data.columns import Column, Schemaless, nothing, storage_type, struct_column
from ottla.connect.data.records import Header, Records
from ottla.connect.data.rows import column_of
from ottla.connect.data.schema import Field, Schema, Type, struct
from ottla.connect.errors import ConnectError

DEBEZIUM_VERSION: Final = "3.6.0.Final"
"""The version whose records these are; `source.version` has it."""
STRIDE: Final = 4
"""A change has so many positions: it is up to three records."""

_INT64: Final = Schema(Type.INT64)
_STRING: Final = Schema(Type.STRING)
_SNAPSHOTS: Final = "true,first,first_in_data_collection,last_in_data_collection,last,false,incremental"
SOURCE: Final = struct(
    [
        ("version", _STRING),
        ("connector", _STRING),
        ("name", _STRING),
        ("ts_ms", _INT64),
        (
            "snapshot",
            Schema(Type.STRING, True, "false", "io.debezium.data.Enum", 1, parameters={"allowed": _SNAPSHOTS}),
        ),
        ("db", _STRING),
        ("sequence", Schema(Type.STRING, True)),
        ("ts_us", Schema(Type.INT64, True)),
        ("ts_ns", Schema(Type.INT64, True)),
        ("schema", _STRING),
        ("table", _STRING),
        ("txId", Schema(Type.INT64, True)),
        ("lsn", Schema(Type.INT64, True)),
        ("xmin", Schema(Type.INT64, True)),
        ("origin", Schema(Type.STRING, True)),
        ("origin_lsn", Schema(Type.INT64, True)),
    ],
    name="io.debezium.connector.postgresql.Source",
    version=1,
)
TRANSACTION: Final = struct(
    [("id", _STRING), ("total_order", _INT64), ("data_collection_order", _INT64)],
    name="event.block",
    version=1,
    optional=True,
)
MESSAGE_KEY: Final = struct(
    [("prefix", Schema(Type.STRING, True))], name="io.debezium.connector.postgresql.MessageKey", version=1
)
MESSAGE: Final = struct(
    [("prefix", Schema(Type.STRING, True)), ("content", Schema(Type.BYTES, True))],
    name="io.debezium.connector.postgresql.Message",
    version=1,
)
MESSAGE_VALUE: Final = struct(
    [
        ("op", _STRING),
        ("ts_ms", Schema(Type.INT64, True)),
        ("source", SOURCE),
        ("transaction", TRANSACTION),
        ("message", MESSAGE),
    ],
    name="io.debezium.connector.postgresql.MessageValue",
    version=1,
)
HEARTBEAT_KEY: Final = struct([("serverName", _STRING)], name="io.debezium.connector.common.ServerNameKey", version=1)
HEARTBEAT_VALUE: Final = struct([("ts_ms", _INT64)], name="io.debezium.connector.common.Heartbeat", version=1)

_NOT_IN_TOPICS: Final = re.compile(r"[^A-Za-z0-9._-]")
_LONGEST_TOPIC: Final = 249


@dataclass(frozen=True, slots=True)
class Moments:
    """What is known of each change beside its row, as arrays: `lsn`, and from its transaction `xid`, `commit_us`,
    `last_commit` (the LSN of the commit before it), `origin` and `origin_lsn`; each may be null."""

    lsn: Any
    xid: Any
    commit_us: Any
    last_commit: Any
    origin: Any
    origin_lsn: Any
    snapshot: Any = None

    def take(self, rows: Any) -> "Moments":
        parts = (self.lsn, self.xid, self.commit_us, self.last_commit, self.origin, self.origin_lsn, self.snapshot)
        return Moments(*(None if one is None else one.take(rows) for one in parts))


@dataclass(frozen=True, slots=True)
class ColumnShape:
    place: int
    """Among the columns of the relation."""
    name: str
    schema: Schema
    mapped: Mapped
    table: str

    def column(self, sent: Sent) -> Column:
        """The values of the texts that were sent. Raises `ConnectError` for one that a record cannot have."""
        read = self.mapped.read(sent.texts)
        if sent.unchanged is not None:
            read = self._where(read, pa.array(sent.unchanged), self.mapped.placeholder)
        if read.null_count and not self.schema.optional:
            lost = pc.and_(read.is_null(), sent.texts.is_valid())
            if pc.any(lost).as_py():
                text = sent.texts.filter(lost)[0].as_py()
                raise ConnectError(
                    f"column {self.name} of {self.table} is NOT NULL and has {text}, which a Decimal cannot be: "
                    "set decimal.handling.mode to string or double"
                )
            default = self.schema.default
            read = self._where(read, read.is_null(), self.mapped.fallback if default is None else default)
        return Column(self.schema, read)

    def _where(self, read: Any, chosen: Any, value: Any) -> Any:
        one = column_of(self.schema.but(optional=True, default=None), [value]).array
        last = len(read)
        rows = pc.if_else(chosen, pa.scalar(last, pa.int64()), pa.array(np.arange(last, dtype=np.int64)))
        return pa.concat_arrays([read, one]).take(rows)


class Shapes:
    """Makes the shape of a table, with a connector's options."""

    def __init__(self, options: Values, types: TypeMap, database: str) -> None:
        self.types = types
        self.database = database
        self.prefix = options.text("topic.prefix")
        self._delimiter = options.text("topic.delimiter")
        self._is_captured_column = named(options, "column")
        self._adjusts_schemas = options.text("schema.name.adjustment.mode") == "avro"
        self._adjusts_fields = options.text("field.name.adjustment.mode") == "avro"
        self.has_tombstones = options.flag("tombstones.on.delete")
        self.skipped = set(options.list("skipped.operations"))
        self._keys = _custom_keys(options)

    def topic(self, schema: str, table: str) -> str:
        return topic_name(self._delimiter.join(part for part in (self.prefix, schema, table) if part))

    def field_name(self, name: str) -> str:
        if not self._adjusts_fields:
            return name
        name = re.sub(r"[^A-Za-z0-9_]", "_", name)
        return f"_{name}" if name[:1].isdigit() else name

    def schema_name(self, name: str) -> str:
        if not self._adjusts_schemas:
            return name
        parts = [re.sub(r"[^A-Za-z0-9_]", "_", part) for part in name.split(".")]
        return ".".join(f"_{part}" if part[:1].isdigit() else part for part in parts)

    def shape(self, facts: TableFacts, relation: Sequence[RelationColumn]) -> "TableShape":
        """The shape of a table whose changes have these columns; what the catalogue says of them is in `facts`."""
        made: dict[str, ColumnShape] = {}
        for place, column in enumerate(relation):
            mapped = self.types.of(column.type_oid, column.modifier)
            if mapped is None:
                continue
            known = facts.by_name.get(column.name)
            is_optional = known is None or not known.required
            kind, _ = self.types.types.root(column.type_oid, column.modifier)
            is_domain = kind.oid != column.type_oid
            default = None if known is None or is_domain else default_of(known.default, kind, mapped)
            schema = mapped.schema.but(optional=is_optional, default=default)
            made[column.name] = ColumnShape(place, column.name, schema, mapped, facts.full_name)
        key_names = self._key_names(facts)
        in_value = [one for one in made.values() if self._is_captured_column(f"{facts.full_name}.{one.name}")]
        in_key = [made[name] for name in key_names if name in made]
        identity = {column.name for column in relation if column.is_key}
        places = {column.name: place for place, column in enumerate(relation)}
        return TableShape(self, facts, in_value, in_key, {one.name for one in in_key} <= identity, places)

    def _key_names(self, facts: TableFacts) -> Sequence[str]:
        for pattern, names in self._keys:
            if pattern.fullmatch(facts.full_name):
                return names
        return facts.key


def topic_name(name: str) -> str:
    return _NOT_IN_TOPICS.sub("_", name)[:_LONGEST_TOPIC]


def _custom_keys(options: Values) -> list[tuple[re.Pattern[str], tuple[str, ...]]]:
    """`message.key.columns`: patterns of tables with the columns of their keys."""
    found: list[tuple[re.Pattern[str], tuple[str, ...]]] = []
    for part in (options.optional_text("message.key.columns") or "").split(";"):
        if part.strip():
            table, _, names = part.strip().rpartition(":")
            (pattern,) = patterns("message.key.columns", (table,))
            found.append((pattern, tuple(name.strip() for name in names.split(","))))
    return found


def source_column(shapes: Shapes, schema: str, table: str, moments: Moments) -> Column:
    """The `source` of each record."""
    count = len(moments.lsn)

    def text(value: str) -> Any:
        return pa.repeat(pa.scalar(value, pa.string()), count)

    us = pc.fill_null(moments.commit_us, 0)
    ms = pa.array(np.asarray(us) // 1000, pa.int64())
    lsn = moments.lsn.cast(pa.string())
    last = pc.fill_null(pc.binary_join_element_wise('"', moments.last_commit.cast(pa.string()), '"', ""), "null")
    arrays = [
        text(DEBEZIUM_VERSION),
        text("postgresql"),
        text(shapes.prefix),
        ms,
        pa.nulls(count, pa.string()) if moments.snapshot is None else moments.snapshot,
        text(shapes.database),
        pc.binary_join_element_wise("[", last, ',"', lsn, '"]', ""),
        us,
        pc.multiply(us, 1000),
        text(schema),
        text(table),
        moments.xid,
        moments.lsn,
        pa.nulls(count, pa.int64()),
        moments.origin,
        moments.origin_lsn,
    ]
    columns = [Column(field.schema, array) for field, array in zip(SOURCE.fields, arrays, strict=True)]
    return struct_column(SOURCE, columns, count)


class TableShape:
    """One version of a table: its topic and schemas, and its records from its columns."""

    source_schema: ClassVar[Schema] = SOURCE

    def __init__(
        self,
        shapes: Shapes,
        facts: TableFacts,
        value: Sequence[ColumnShape],
        key: Sequence[ColumnShape],
        key_is_in_identity: bool,
        places: dict[str, int],
    ) -> None:
        self.shapes = shapes
        self.facts = facts
        self.places = places
        """Of all columns, also of those that have no field."""
        self.width = len(places)
        self.topic = shapes.topic(facts.schema, facts.name)
        self._value = value
        self._key = key
        self._key_is_in_identity = key_is_in_identity

        def fields(columns: Sequence[ColumnShape]) -> tuple[Field, ...]:
            return tuple(Field(shapes.field_name(one.name), one.schema) for one in columns)

        name = shapes.schema_name
        self.value_schema = Schema(Type.STRUCT, True, name=name(f"{self.topic}.Value"), fields=fields(value))
        self.key_schema = Schema(Type.STRUCT, name=name(f"{self.topic}.Key"), fields=fields(key)) if key else None
        self.envelope = struct(
            [
                ("before", self.value_schema),
                ("after", self.value_schema),
                ("source", self.source_schema),
                ("transaction", TRANSACTION),
                ("op", _STRING),
                ("ts_ms", Schema(Type.INT64, True)),
                ("ts_us", Schema(Type.INT64, True)),
                ("ts_ns", Schema(Type.INT64, True)),
            ],
            name=name(f"{self.topic}.Envelope"),
            version=2,
        )

    def source(self, moments: Any) -> Column:
        """The `source` of records of changes with these moments."""
        return source_column(self.shapes, self.facts.schema, self.facts.name, moments)

    def key_places(self) -> list[int]:
        """Where the catalogue's key is among the columns of the relation."""
        return [self.places[name] for name in self.facts.key if name in self.places]

    def _columns(self, sent: Sequence[Sent], count: int) -> tuple[Any, Any]:
        """Values and keys of rows, as arrays of structs; without a key, None."""
        if not sent:
            return _nulls(self.value_schema, count), None if self.key_schema is None else _nulls(self.key_schema, count)
        needed = {one.place: one for one in [*self._value, *self._key]}
        made = {place: one.column(sent[place]) for place, one in needed.items()}
        value = struct_column(self.value_schema, [made[one.place] for one in self._value], count).array
        if self.key_schema is None:
            return value, None
        return value, struct_column(self.key_schema, [made[one.place] for one in self._key], count).array

    def _key_texts(self, sent: Sequence[Sent], rows: Any) -> Any:
        """Something that is equal where keys are, of these rows."""
        parts = [pc.fill_null(sent[one.place].texts.take(rows), "\0") for one in self._key]
        return pc.binary_join_element_wise(*parts, "\1") if len(parts) > 1 else parts[0]

    def records(
        self, rows: Rows, positions: Any, moments: Moments, headers: "ContextHeaders", now_us: int
    ) -> list[Records]:
        """The records of changes, in batches that keep the order of each key."""
        operations = rows.operations
        old_row = np.cumsum(rows.has_before) - 1
        new_row = np.cumsum(rows.has_after) - 1
        is_delete = operations == DELETE
        moved = self._moved(rows, old_row, new_row)
        if is_delete.any() or moved.any():
            self._hold_identity(rows, is_delete)
        before, old_keys = self._columns(rows.before, int(rows.has_before.sum()))
        after, new_keys = self._columns(rows.after, int(rows.has_after.sum()))
        letters = np.where(is_delete, "d", np.where(operations == UPDATE, "u", "c"))
        letters = np.where(moved, "d", letters)
        kept = ~np.isin(operations, [ord(one) for one in self._skipped_operations()])
        # A moved row is two events: the delete, here, and the create, behind.
        first = np.flatnonzero(kept)
        second = np.flatnonzero(kept & moved)
        change = np.concatenate([first, second])
        is_create = np.concatenate([np.zeros(len(first), bool), np.ones(len(second), bool)])
        place = positions[change] + np.where(is_create, 2, 0)
        order = np.argsort(place, kind="stable")
        change, is_create, place = change[order], is_create[order], place[order]
        if not len(change):
            return []
        letter = np.where(is_create, "c", letters[change])
        is_gone = letter == "d"
        has_before = rows.has_before[change] & ~is_create
        has_after = ~is_gone
        before_at = np.where(has_before, old_row[change], -1)
        after_at = np.where(has_after, new_row[change], -1)
        key_old = is_gone
        events = _Events(
            self,
            change,
            place,
            pa.array(letter.astype(str).tolist(), pa.string()),
            is_gone,
            _taken(before, before_at, self.value_schema),
            _taken(after, after_at, self.value_schema),
            self._keys_of(old_keys, new_keys, np.where(key_old, old_row[change], -1), np.where(key_old, -1, after_at)),
            self._other_keys(new_keys, np.where(moved[change] & ~is_create, new_row[change], -1)),
            self._other_keys(old_keys, np.where(is_create, old_row[change], -1)),
            moments.take(pa.array(change)),
        )
        return events.batches(headers, now_us, self._cuts(rows, events, old_row, new_row))

    def _skipped_operations(self) -> list[str]:
        return [letter for letter, name in (("I", "c"), ("U", "u"), ("D", "d")) if name in self.shapes.skipped]

    def _moved(self, rows: Rows, old_row: Any, new_row: Any) -> Any:
        """Which changes are updates that change the key."""
        none = np.zeros(len(rows.operations), bool)
        if self.key_schema is None:
            return none
        both = rows.has_before & rows.has_after
        if not self._key_is_in_identity:
            full = none.copy()
            full[rows.has_before] = rows.before_is_full
            both = both & full
        if not both.any():
            return none
        chosen = np.flatnonzero(both)
        old = self._key_texts(rows.before, pa.array(old_row[chosen]))
        new = self._key_texts(rows.after, pa.array(new_row[chosen]))
        none[chosen] = np.asarray(pc.fill_null(pc.not_equal(old, new), False))
        return none

    def _hold_identity(self, rows: Rows, is_delete: Any) -> None:
        if self.key_schema is None or self._key_is_in_identity or rows.before_is_full.all():
            return
        names = ",".join(one.name for one in self._key)
        raise ConnectError(
            f"a delete from {self.facts.full_name} does not have the key ({names}): its REPLICA IDENTITY is an index "
            f"without it. Run ALTER TABLE {self.facts.full_name} REPLICA IDENTITY DEFAULT (or FULL), or name the "
            "index's columns in message.key.columns"
        )

    def _keys_of(self, old: Any, new: Any, old_at: Any, new_at: Any) -> Any:
        if self.key_schema is None:
            return None
        if (old_at < 0).all():
            return _taken(new, new_at, self.key_schema)
        both = pa.concat_arrays([old, new])
        return both.take(pa.array(np.where(old_at >= 0, old_at, len(old) + new_at)))

    def _other_keys(self, keys: Any, at: Any) -> Any:
        return None if self.key_schema is None or (at < 0).all() else _taken(keys, at, self.key_schema)

    def _cuts(self, rows: Rows, events: "_Events", old_row: Any, new_row: Any) -> list[int]:
        """Where batches end so that no tombstone comes after a newer record of its key."""
        if not events.is_gone.any() or not self.shapes.has_tombstones:
            return []
        if self.key_schema is None:
            return []
        keys: list[Any] = events.keys.to_pylist()
        gone: set[str] = set()
        cuts: list[int] = []
        for row, (key, is_gone) in enumerate(zip(keys, events.is_gone.tolist(), strict=True)):
            shown = repr(key)
            if shown in gone:
                cuts.append(row)
                gone.clear()
            if is_gone:
                gone.add(shown)
        return cuts

    def reads(
        self, sent: Sequence[Sent], positions: Any, moments: Moments, headers: "ContextHeaders", now_us: int
    ) -> Records:
        """The records of a snapshot's rows."""
        count = len(positions)
        value, keys = self._columns(sent, count)
        events = _Events(
            self,
            np.arange(count),
            positions,
            pa.repeat(pa.scalar("r", pa.string()), count),
            np.zeros(count, bool),
            _nulls(self.value_schema, count),
            value,
            keys,
            None,
            None,
            moments,
        )
        (made,) = events.batches(headers, now_us, [])
        return made

    def truncated(self, position: int, moments: Moments, headers: "ContextHeaders", now_us: int) -> Records:
        """The record of a truncate, which has no key."""
        empty = _nulls(self.value_schema, 1)
        letter = pa.array(["t"], pa.string())
        events = _Events(
            self,
            np.zeros(1, int),
            np.array([position]),
            letter,
            np.zeros(1, bool),
            empty,
            empty,
            None,
            None,
            None,
            moments,
        )
        (made,) = events.batches(headers, now_us, [])
        return made


@dataclass(frozen=True, slots=True)
class _Events:
    """Records to be: all arrays have one row for each, but tombstones, which follow from `is_gone`."""

    shape: TableShape
    change: Any
    place: Any
    letters: Any
    is_gone: Any
    before: Any
    after: Any
    keys: Any
    new_keys: Any
    old_keys: Any
    moments: Moments

    def batches(self, headers: "ContextHeaders", now_us: int, cuts: list[int]) -> list[Records]:
        count = len(self.place)
        now = [now_us // 1000, now_us, now_us * 1000]
        columns = [
            Column(self.shape.value_schema, self.before),
            Column(self.shape.value_schema, self.after),
            self.shape.source(self.moments),
            Column(TRANSACTION, _nulls(TRANSACTION, count)),
            Column(_STRING, self.letters),
            *(Column(Schema(Type.INT64, True), pa.repeat(pa.scalar(one, pa.int64()), count)) for one in now),
        ]
        value = struct_column(self.shape.envelope, columns, count)
        whole = self._records(value, self._key(count), self._key_headers() + headers.of(count), self.place)
        tombs = np.flatnonzero(self.is_gone) if self.shape.shapes.has_tombstones else np.zeros(0, int)
        if not len(tombs):
            return [whole]
        found: list[Records] = []
        bounds = [0, *cuts, count]
        for start, stop in pairwise(bounds):
            found.append(whole.take(pa.array(np.arange(start, stop))) if cuts else whole)
            chosen = tombs[(tombs >= start) & (tombs < stop)]
            if len(chosen):
                some = whole.take(pa.array(chosen))
                found.append(some.but(value=nothing(len(chosen)), position=pa.array(self.place[chosen] + 1)))
        return found

    def _key(self, count: int) -> Column | Schemaless:
        if self.keys is None or self.shape.key_schema is None:
            return nothing(count)
        return Column(self.shape.key_schema, self.keys)

    def _key_headers(self) -> tuple[Header, ...]:
        made: list[Header] = []
        for name, keys in (("__debezium.newkey", self.new_keys), ("__debezium.oldkey", self.old_keys)):
            if keys is not None:
                assert self.shape.key_schema is not None
                present = None if not keys.null_count else keys.is_valid()
                made.append(Header(name, Column(self.shape.key_schema, keys), present))
        return tuple(made)

    def _records(self, value: Column, key: Column | Schemaless, headers: tuple[Header, ...], place: Any) -> Records:
        count = len(place)
        blank = pa.nulls(count, pa.int64())
        position = pa.array(place, pa.int64())
        return Records(self.shape.topic, key, value, position, blank, pa.nulls(count, pa.int32()), headers)


def _taken(array: Any, rows: Any, schema: Schema) -> Any:
    """These rows of an array, null for -1."""
    if len(array) == len(rows) and np.array_equal(rows, np.arange(len(rows))):
        return array
    if not len(array) or (rows < 0).all():
        return _nulls(schema, len(rows))
    return array.take(pa.array(rows, mask=rows < 0))


def _nulls(schema: Schema, count: int) -> Any:
    return pa.nulls(count, storage_type(schema))


@dataclass(frozen=True, slots=True)
class ContextHeaders:
    """The four headers that all records of tables have."""

    values: tuple[tuple[str, str], ...]

    def of(self, count: int) -> tuple[Header, ...]:
        return tuple(
            Header(key, Column(_STRING, pa.repeat(pa.scalar(value, pa.string()), count))) for key, value in self.values
        )


def no_heartbeats(topic: str) -> Records:
    """No record: what carries an offset that moved while there was nothing to write."""
    empty = pa.array([], pa.int64())
    key, value = column_of(HEARTBEAT_KEY, []), column_of(HEARTBEAT_VALUE, [])
    return Records(topic, key, value, empty, empty, pa.array([], pa.int32()))


def context_headers(prefix: str, run_id: str, connector: str = "postgresql") -> ContextHeaders:
    named_so = "__debezium.context."
    return ContextHeaders(
        (
            (named_so + "connectorLogicalName", prefix),
            (named_so + "taskId", "0"),
            (named_so + "connectorName", connector),
            (named_so + "runId", run_id),
        )
    )


def row_records(topic: str, key: Column, value: Column, position: int) -> Records:
    """One record without headers: of a message, or a heartbeat."""
    return Records(
        topic, key, value, pa.array([position], pa.int64()), pa.nulls(1, pa.int64()), pa.nulls(1, pa.int32())
    )


def message_records(
    shapes: Shapes, prefix: str, content: bytes, moments: Moments, position: int, now_ms: int
) -> Records:
    """The record of a logical message."""
    key = column_of(MESSAGE_KEY, [{"prefix": prefix}])
    columns = [
        column_of(_STRING, ["m"]),
        column_of(Schema(Type.INT64, True), [now_ms]),
        source_column(shapes, "", "", moments),
        Column(TRANSACTION, _nulls(TRANSACTION, 1)),
        column_of(MESSAGE, [{"prefix": prefix, "content": content}]),
    ]
    topic = shapes.topic("message", "")
    return row_records(topic, key, struct_column(MESSAGE_VALUE, columns, 1), position)


IsCaptured = Callable[[str, str], bool]


def captured(options: Values) -> IsCaptured:
    """Whether a table, by schema and name, is captured."""
    schemas: Named = named(options, "schema")
    tables: Named = named(options, "table")
    signals = options.optional_text("signal.data.collection")

    def is_captured(schema: str, table: str) -> bool:
        if schema in ("pg_catalog", "information_schema"):
            return False
        return f"{schema}.{table}" == signals or (schemas(schema) and tables(f"{schema}.{table}"))

    return is_captured


__all__ = ["INSERT", "STRIDE", "ContextHeaders", "Moments", "Shapes", "TableShape", "captured", "context_headers"]
