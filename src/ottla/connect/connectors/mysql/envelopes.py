"""Debezium's records of MariaDB and MySQL: the envelopes are those of `postgres.envelopes`, with another `source`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]

from ottla.config.parse import Values
from ottla.connect.connectors.mysql import rows
from ottla.connect.connectors.mysql.binlog import DELETE, INSERT, UPDATE, MapColumn
from ottla.connect.connectors.mysql.catalogue import TableFacts
from ottla.connect.connectors.mysql.options import SYSTEM
from ottla.connect.connectors.mysql.types import Mapped, TypeMap, default_of, of_log
from ottla.connect.connectors.postgres import envelopes
from ottla.connect.connectors.postgres.envelopes import ColumnShape
from ottla.connect.connectors.postgres.options import named
from ottla.connect.connectors.postgres.pgoutput import Rows, Sent
from ottla.connect.data.columns import Column, struct_column
from ottla.connect.data.schema import Schema, Type, struct

DEBEZIUM_VERSION: Final = "3.5.0.Final"
"""The version whose records these are; `source.version` has it. No later one for MariaDB is on Maven Central."""

_STRING: Final = Schema(Type.STRING)
_INT64: Final = Schema(Type.INT64)
_SNAPSHOTS: Final = "true,first,first_in_data_collection,last_in_data_collection,last,false,incremental"


def source_schema(connector: str) -> Schema:
    return struct(
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
            ("table", Schema(Type.STRING, True)),
            ("server_id", _INT64),
            ("gtid", Schema(Type.STRING, True)),
            ("file", _STRING),
            ("pos", _INT64),
            ("row", Schema(Type.INT32)),
            ("thread", Schema(Type.INT64, True)),
            ("query", Schema(Type.STRING, True)),
        ],
        name=f"io.debezium.connector.{connector}.Source",
        version=1,
    )


@dataclass(frozen=True, slots=True)
class Moments:
    """What is known of each change beside its row, as arrays."""

    us: Any
    server_id: Any
    gtid: Any
    file: Any
    pos: Any
    row: Any
    thread: Any
    snapshot: Any = None

    def take(self, places: Any) -> "Moments":
        parts = (self.us, self.server_id, self.gtid, self.file, self.pos, self.row, self.thread, self.snapshot)
        return Moments(*(None if one is None else one.take(places) for one in parts))


class Shapes(envelopes.Shapes):
    """Makes the shape of a table, with a connector's options. `connector` is Debezium's word: mariadb or mysql."""

    def __init__(self, options: Values, types: TypeMap, connector: str) -> None:
        super().__init__(options, types, "")  # type: ignore[arg-type]  # its own `shape` is not used
        self.connector = connector
        self.mapping = types

    def table(self, facts: TableFacts, logged: Sequence[MapColumn] | None = None) -> "TableShape":
        """The shape of a table; `logged` are its columns in the log, in the facts' order. Raises `ConnectError`."""
        made: dict[str, ColumnShape] = {}
        for place, column in enumerate(facts.columns):
            mapped = self.mapping.of(column.kind)
            if mapped is None:
                continue
            default = default_of(column.default, column.kind, mapped, required=column.required)
            is_optional = not column.required or mapped.always_optional
            schema = mapped.schema.but(optional=is_optional, default=default)
            made[column.name] = ColumnShape(place, column.name, schema, mapped, facts.full_name)  # type: ignore[arg-type]
        key_names = self._key_names(facts)  # type: ignore[arg-type]
        in_value = [one for one in made.values() if self._is_captured_column(f"{facts.full_name}.{one.name}")]
        in_key = [made[name] for name in key_names if name in made]
        places = {column.name: place for place, column in enumerate(facts.columns)}
        made_of = MySqlShape if self.connector == "mysql" else TableShape
        shape = made_of(self, facts, in_value, in_key, True, places)  # type: ignore[arg-type]
        needed = {one.place for one in [*in_value, *in_key]} | set(shape.key_places())
        shape.needed = needed
        shape.texts = {place: mapped_of(made[facts.columns[place].name]).from_text for place in needed}
        if logged is not None:
            shape.logged = tuple(logged)
            shape.reads_log = {place: of_log(logged[place], facts.columns[place].kind) for place in needed}
        return shape


def mapped_of(shape: ColumnShape) -> Mapped:
    mapped = shape.mapped
    assert isinstance(mapped, Mapped)
    return mapped


class TableShape(envelopes.TableShape):
    """One version of a table. `Sent.texts` here are plain values (`types`)."""

    shapes: Shapes
    facts: TableFacts  # type: ignore[assignment]
    source_schema: ClassVar[Schema] = source_schema("mariadb")
    needed: set[int]
    texts: dict[int, Callable[[Any], Any]]
    logged: tuple[MapColumn, ...] = ()
    reads_log: dict[int, rows.Read]

    def source(self, moments: Moments) -> Column:
        count = len(moments.us)

        def text(value: str) -> Any:
            return pa.repeat(pa.scalar(value, pa.string()), count)

        us = moments.us
        blank = pa.nulls(count, pa.string())
        arrays = [
            text(DEBEZIUM_VERSION),
            text(self.shapes.connector),
            text(self.shapes.prefix),
            pa.array(np.asarray(us) // 1000, pa.int64()),
            blank if moments.snapshot is None else moments.snapshot,
            text(self.facts.schema),
            blank,
            us,
            pc.multiply(us, 1000),
            text(self.facts.name),
            moments.server_id,
            moments.gtid,
            moments.file,
            moments.pos,
            moments.row,
            moments.thread,
            blank,
        ]
        schema = self.source_schema
        columns = [Column(field.schema, array) for field, array in zip(schema.fields, arrays, strict=True)]
        return struct_column(schema, columns, count)

    def _key_texts(self, sent: Sequence[Sent], chosen: Any) -> Any:
        return key_texts(sent, [one.place for one in self._key], chosen)

    def changes(self, parts: Sequence[rows.Part], skipped: dict[int, int]) -> tuple[Rows, Any, Any]:
        """The changes of events in columns; for each the place of its event, and its number among the event's rows.
        `skipped` says of which events how many rows are left out."""
        images = rows.split(parts, self.logged)
        kinds = np.array([part.kind for part in parts], dtype=np.int64)[images.events]
        is_update = kinds == UPDATE
        number = np.where(is_update, images.numbers // 2, images.numbers)
        is_second = is_update & (images.numbers % 2 == 1)
        is_kept = np.ones(len(kinds), bool)
        for event, count in skipped.items():
            is_kept &= (images.events != event) | (number >= count)
        is_after = is_second | (kinds == INSERT)
        first = np.flatnonzero(is_kept & ~is_second)
        found = Rows(
            kinds[first],
            (kinds == UPDATE)[first] | (kinds == DELETE)[first],
            np.ones(int((kinds[first] != INSERT).sum()), bool),
            self._sent(images, np.flatnonzero(is_kept & ~is_after)),
            (kinds != DELETE)[first],
            self._sent(images, np.flatnonzero(is_kept & is_after)),
        )
        return found, images.events[first], number[first]

    def _sent(self, images: rows.Images, chosen: Any) -> list[Sent]:
        if not len(chosen):
            return []
        nothing = Sent(None, None)
        return [
            Sent(self.reads_log[place](column.take(chosen)), None) if place in self.needed else nothing
            for place, column in enumerate(images.columns)
        ]

    def from_texts(self, found: Sequence[Any]) -> list[Sent]:
        """The plain values of a query's columns."""
        return [
            Sent(self.texts[place](column), None) if place in self.needed else Sent(None, None)
            for place, column in enumerate(found)
        ]


class MySqlShape(TableShape):
    source_schema: ClassVar[Schema] = source_schema("mysql")


def key_texts(sent: Sequence[Sent], places: Sequence[int], chosen: Any = None) -> Any:
    """Bytes that are equal where keys are; the log and a query have the same plain values."""

    def shown(column: Any) -> Any:
        column = column if chosen is None else column.take(chosen)
        kind = column.type
        column = column if kind in (pa.string(), pa.binary()) else column.cast(pa.string())
        return pc.fill_null(column.cast(pa.binary()), b"\0")

    parts = [shown(sent[place].texts) for place in places]
    return pc.binary_join_element_wise(*parts, b"\1") if len(parts) > 1 else parts[0]


IsCaptured = Callable[[str, str], bool]


def captured(options: Values) -> IsCaptured:
    """Whether a table, by database and name, is captured."""
    databases, tables = named(options, "database"), named(options, "table")

    def is_captured(database: str, table: str) -> bool:
        return database.lower() not in SYSTEM and databases(database) and tables(f"{database}.{table}")

    return is_captured
