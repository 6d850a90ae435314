"""Into tables, on SQLite: modes, keys, deletes, tables that are made and widened, positions, writers that are late."""

import sqlite3
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ottla.base.ids import TopicPartition
from ottla.connect.connectors.tables.databases import Table
from ottla.connect.data import schema as schemas
from ottla.connect.data.columns import Column, Schemaless, nothing
from ottla.connect.data.records import records_of
from ottla.connect.data.rows import column_of
from ottla.connect.data.schema import Schema, Type, struct
from ottla.connect.errors import ConnectError, Retriable
from ottla.connect.options import InvalidOption
from tests.unit.connect.tables.given_tables import (
    KEY,
    ORDER,
    ConfluentTablesSink,
    DebeziumTablesSink,
    context,
    put,
    records,
    started,
)

Sinks = Callable[..., Any]
WIDER = struct([*((field.name, field.schema) for field in ORDER.fields), ("price", schemas.decimal(2, optional=True))])


@pytest.fixture
def sinks(tmp_path: Path) -> Any:
    """Makes sinks on one file."""
    made: list[Any] = []

    def make(kind: Any = ConfluentTablesSink, **options: str) -> Any:
        made.append(
            started(f"jdbc:sqlite:{tmp_path / 'shop.db'}", kind, {"file.allowed.paths": str(tmp_path)}, **options)
        )
        return made[-1]

    yield make
    for one in made:
        one.stop()


@pytest.fixture
def rows(tmp_path: Path) -> Callable[..., list[Any]]:
    def read(statement: str = "SELECT * FROM orders ORDER BY 1") -> list[Any]:
        connection = sqlite3.connect(tmp_path / "shop.db")
        try:
            return connection.execute(statement).fetchall()
        finally:
            connection.close()

    return read


UPSERT = {
    "insert_mode": "upsert",
    "pk_mode": "record_key",
    "auto_create": "true",
    "auto_evolve": "true",
    "delete_enabled": "true",
}


def test_rows_and_positions_are_written_together(sinks: Sinks, rows: Any) -> None:
    sink = sinks(auto_create="true")
    assert sink.positions() == {}
    put(sink, records([{"id": 1, "note": "a"}, {"id": 2, "note": None}]), 2)
    assert rows() == [(1, "a"), (2, None)]
    assert sink.positions() == {TopicPartition("orders", 0): 2}
    sink.put([], {TopicPartition("orders", 0): 7, TopicPartition("orders", 1): 1})
    assert sinks().positions() == {TopicPartition("orders", 0): 7, TopicPartition("orders", 1): 1}


def test_what_fails_leaves_neither_rows_nor_positions(sinks: Sinks, rows: Any) -> None:
    sink = sinks(auto_create="true", pk_mode="record_key")
    put(sink, records([{"id": 1, "note": "a"}]), 1)
    with pytest.raises(ConnectError, match="UNIQUE constraint failed"):
        put(sink, records([{"id": 2, "note": "b"}, {"id": 1, "note": "c"}], first=1), 3)
    assert rows() == [(1, "a")]
    assert sink.positions() == {TopicPartition("orders", 0): 1}
    put(sink, records([{"id": 2, "note": "b"}], first=1), 2)
    assert rows() == [(1, "a"), (2, "b")]


def test_a_writer_that_is_late_writes_nothing(sinks: Sinks, rows: Any) -> None:
    late, new = sinks(**UPSERT), sinks(**UPSERT)
    put(new, records([{"id": 1, "note": "new"}]), 1)
    with pytest.raises(Retriable, match="another writer of connector into"):
        put(late, records([{"id": 1, "note": "late"}]), 1)
    put(new, records([{"id": 2, "note": "new"}], first=1), 2)
    late.positions()
    put(new, records([{"id": 3, "note": "new"}], first=2), 3)
    with pytest.raises(Retriable):
        put(late, records([{"id": 3, "note": "late"}], first=2), 3)
    assert rows() == [(1, "new"), (2, "new"), (3, "new")]


def test_of_each_key_the_last_word_counts_in_the_order_of_the_records(sinks: Sinks, rows: Any) -> None:
    sink = sinks(**UPSERT)
    words = [{"id": 1, "note": "a"}, {"id": 2, "note": "b"}, None, {"id": 2, "note": "c"}, None, {"id": 3, "note": "d"}]
    put(sink, records(words, keys=[1, 2, 1, 2, 3, 3]), 6)
    assert rows() == [(2, "c"), (3, "d")]
    put(sink, records([None, None], keys=[2, 9], first=6), 8)
    assert rows() == [(3, "d")]


def test_a_delete_between_two_rows_of_a_key_takes_the_other_columns_with_it(sinks: Sinks, rows: Any) -> None:
    sink = sinks(**UPSERT)
    put(sink, records([{"id": 1, "note": "a", "price": Decimal("1.50")}], schema=WIDER), 1)
    put(sink, records([None, {"id": 1, "note": "b"}], keys=[1, 1], first=1), 3)
    assert rows() == [(1, "b", None)]


def test_rows_of_several_schemas_are_written_one_after_the_other(sinks: Sinks, rows: Any) -> None:
    sink = sinks(**UPSERT)
    batches = records([{"id": 1, "note": "a"}]) + records(
        [{"id": 1, "note": "b", "price": Decimal("2.25")}], schema=WIDER, first=1
    )
    put(sink, batches + records([{"id": 1, "note": "c"}, None], keys=[1, 5], first=2), 4)
    assert rows() == [(1, "c", 2.25)]


def test_rows_are_updated_and_none_added(sinks: Sinks, rows: Any) -> None:
    sink = sinks(**UPSERT)
    put(sink, records([{"id": 1, "note": "a"}]), 1)
    other = sinks(insert_mode="update", pk_mode="record_value", pk_fields="id")
    put(other, records([{"id": 1, "note": "z"}, {"id": 2, "note": "y"}], first=1), 3)
    assert rows() == [(1, "z")]


def test_keys_of_kafkas_and_of_plain_values(sinks: Sinks, rows: Any) -> None:
    sink = sinks(insert_mode="upsert", pk_mode="kafka", auto_create="true")
    put(sink, records([{"id": 1, "note": "a"}]), 1)
    assert rows() == [("orders", 0, 0, 1, "a")]
    plain = sinks(
        pk_mode="record_key", pk_fields="k", auto_create="true", table_name_format="t_${topic}", fields_whitelist="note"
    )
    (one,) = records([{"id": 1, "note": "a"}], first=1)
    put(plain, [one.but(key=column_of(Schema(Type.INT64), [77]))], 2)
    assert rows("SELECT * FROM t_orders") == [(77, "a")]


def test_values_become_what_the_database_has_for_them(sinks: Sinks, rows: Any) -> None:
    schema = struct(
        [
            ("id", Schema(Type.INT32)),
            ("d", schemas.decimal(2)),
            ("day", schemas.date()),
            ("t", schemas.time()),
            ("ts", schemas.timestamp(optional=True)),
            ("us", Schema(Type.INT64, name="io.debezium.time.MicroTimestamp")),
            ("b", Schema(Type.BYTES)),
            ("ok", Schema(Type.BOOLEAN)),
            ("f", Schema(Type.FLOAT64)),
        ]
    )
    row = {"id": 1, "d": Decimal("1.50"), "day": 1, "t": 1, "ts": 5, "us": 7, "b": b"\0x", "ok": True, "f": 0.5}
    put(sinks(auto_create="true"), records([row], schema=schema), 1)
    (found,) = rows()
    assert found[:4] == (1, 1.5, "1970-01-02", "00:00:00.001000")
    assert found[4].startswith("1970-01-01T00:00:00.005")
    assert found[5:] == ("1970-01-01T00:00:00.000007", b"\0x", 1, 0.5)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "there is no table orders in SQLite .*set auto.create=true"),
        ({"table_name_format": "narrow"}, "has no column note: add it, or set auto.evolve=true"),
        (
            {"table_name_format": "narrow", "auto_evolve": "true", "pk_mode": "record_key", "pk_fields": "x"},
            "no field x",
        ),
    ],
)
def test_tables_that_do_not_fit_are_refused_with_the_remedy(sinks: Sinks, options: dict[str, str], words: str) -> None:
    sink = sinks(**options)
    sink._open().execute("CREATE TABLE narrow (id INTEGER)")
    with pytest.raises(ConnectError, match=words):
        put(sink, records([{"id": 1, "note": "a"}]), 1)


def test_records_that_are_no_rows_are_refused_by_name(sinks: Sinks) -> None:
    sink = sinks(auto_create="true")
    (one,) = records([{"id": 1, "note": "a"}], first=4)
    with pytest.raises(ConnectError, match="set a converter that has schemas"):
        put(sink, [one.but(value=Schemaless(({"id": 1},)))], 5)
    with pytest.raises(ConnectError, match=r"offset 4 of orders-0 has no value, and delete\.enabled is false"):
        put(sink, [one.but(value=nothing(1))], 5)
    nested = struct([("in", struct([("a", Schema(Type.INT32))]))])
    with pytest.raises(ConnectError, match="Flatten"):
        put(sink, [one.but(value=column_of(nested, [{"in": {"a": 1}}]))], 5)
    required = struct([("id", Schema(Type.INT32)), ("more", Schema(Type.INT32))])
    put(sink, [one], 5)
    wide = sinks(auto_evolve="true")
    with pytest.raises(ConnectError, match="neither optional nor has a default"):
        put(wide, records([{"id": 2, "more": 1}], schema=required, first=5), 6)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"delete.enabled": "true"}, "only supported with pk.mode=record_key"),
        ({"insert.mode": "upsert"}, "needs a key"),
        ({"insert.mode": "merge"}, "insert.mode"),
        ({"pk.mode": "kafka", "pk.fields": "a"}, "three columns"),
        ({"db.timezone": "UTC"}, "has no option db.timezone here"),
        ({"table.name.format": "${source.table}"}, "only"),
        ({"connection.url": "jdbc:oracle:thin:@x"}, "there is no database for 'oracle'"),
    ],
)
def test_configurations_that_cannot_work_are_refused(options: dict[str, str], words: str) -> None:
    config = {"connection.url": "jdbc:sqlite::memory:", "topics": "a", "value.converter": "x", **options}
    ((name, problem),) = ConfluentTablesSink.validate(config)
    assert words in problem
    assert name in {row.name for row in ConfluentTablesSink.settings}
    sink = ConfluentTablesSink(config, context())
    with pytest.raises((ConnectError, InvalidOption)):
        sink.start()
    sink.stop()


def test_files_outside_of_what_the_worker_allows_are_refused(tmp_path: Path) -> None:
    config = {"connection.url": "jdbc:sqlite:/etc/x.db"}
    assert ConfluentTablesSink.validate(config) == []  # it is the worker's to say
    with pytest.raises(ConnectError, match=r"connection\.url=/etc/x\.db: .*file\.allowed\.paths"):
        ConfluentTablesSink(config, context()).start()
    (tmp_path / "text.db").write_text("no database, " * 100)
    with pytest.raises(ConnectError, match="cannot be opened: file is not a database"):
        started(f"jdbc:sqlite:{tmp_path / 'text.db'}", worker={"file.allowed.paths": str(tmp_path)})


def test_change_events_are_taken_out_of_their_envelopes(sinks: Sinks, rows: Any) -> None:
    row = ORDER.but(optional=True)
    envelope = struct([("before", row), ("after", row), ("op", Schema(Type.STRING))], name="shop.orders.Envelope")

    def event(place: int, op: str, before: Any, after: Any) -> Any:
        key = column_of(KEY, [{"id": (before or after)["id"]}])
        value = column_of(envelope, [{"op": op, "before": before, "after": after}])
        one = records_of("shop.orders", key, value, partitions=[0], first=place)
        return one.but(offset=one.position)

    sink = sinks(
        DebeziumTablesSink,
        insert_mode="upsert",
        primary_key_mode="record_key",
        schema_evolution="basic",
        delete_enabled="true",
    )
    a, b = {"id": 1, "note": "a"}, {"id": 2, "note": "b"}
    batches = [event(0, "c", None, a), event(1, "c", None, b), event(2, "d", a, None)]
    (gone,) = records([None], keys=[1], first=3, topic="shop.orders")
    put(sink, [*batches, gone], 4, "shop.orders")
    assert rows("SELECT * FROM shop_orders") == [(2, "b")]
    keeps = sinks(DebeziumTablesSink, insert_mode="upsert", primary_key_mode="record_key", field_exclude_list="note")
    put(keeps, [event(4, "d", b, None), event(5, "u", b, {"id": 2, "note": "c"})], 6, "shop.orders")
    assert rows("SELECT * FROM shop_orders") == [(2, "b")]


def test_names_of_tables() -> None:
    assert Table.of('shop."Orders"') == Table("Orders", "shop")
    with pytest.raises(ConnectError, match="no name of a table"):
        Table.of("a..b")


BEYOND = [
    (schemas.timestamp(), pa.array([253_402_300_800_000]), "years 1 to 9999"),
    (schemas.timestamp(), pa.array([-(1 << 62)]), "years 1 to 9999"),
    (schemas.date(), pa.array([(1 << 31) - 1], pa.int32()), "years 1 to 9999"),
    (schemas.time(), pa.array([86_400_001], pa.int32()), "not within a day"),
    (schemas.time(), pa.array([-5], pa.int32()), "not within a day"),
]


@pytest.mark.parametrize("options", [{}, {"insert_mode": "upsert", "pk_mode": "record_value", "pk_fields": "x"}])
@pytest.mark.parametrize(("schema", "array", "said"), BEYOND)
def test_dates_and_times_that_sqlite_cannot_have_are_refused_by_their_column(
    sinks: Sinks, schema: Schema, array: Any, said: str, options: dict[str, str]
) -> None:
    sink = sinks(auto_create="true", **options)
    twice = pa.StructArray.from_arrays([pa.concat_arrays([array, array])], ["x"])
    made = records_of("orders", nothing(2), Column(struct([("x", schema)]), twice), partitions=[0, 0])
    with pytest.raises(ConnectError, match=f"column x: .*{said}"):
        put(sink, [made.but(offset=pa.array([0, 1], pa.int64()))], 2)
    assert sink.positions() == {}


@pytest.mark.parametrize(
    "url", ["jdbc:postgresql://h:abc/db", "jdbc:postgresql://[::1/db", "jdbc:postgresql://h:99999/d"]
)
def test_an_address_that_is_none_is_a_problem_of_its_setting(url: str) -> None:
    pytest.importorskip("psycopg")
    ((setting, said),) = ConfluentTablesSink.validate({"connection.url": url, "topics": "t"})
    assert setting == "connection.url"
    assert "it must be jdbc:postgresql://HOST:PORT/DATABASE" in said


def test_two_connectors_that_make_the_table_of_positions_at_once_both_start(sinks: Sinks) -> None:
    class Late:
        """It is not there, and cannot be made: another has made it meanwhile."""

        looks = 0

        def columns(self, table: Table) -> list[Any]:
            self.looks += 1
            return [table] * (self.looks - 1)

        def execute(self, statement: str) -> None:
            raise ConnectError("duplicate key value violates unique constraint pg_type_typname_nsp_index")

    late: Any = Late()
    sinks()._make_positions(late)
    assert late.looks == 2
