"""From tables by polling, on SQLite: what is new in each mode, offsets, rows of one moment, what is refused."""

import logging
import sqlite3
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from ottla.connect.connector import SourceContext
from ottla.connect.connectors.allowed_paths import PathNotAllowed
from ottla.connect.connectors.tables.databases import open_database
from ottla.connect.connectors.tables.source import TablesSource, _value
from ottla.connect.data import schema as schemas
from ottla.connect.data.columns import Column
from ottla.connect.data.rows import rows_of
from ottla.connect.data.schema import Schema, Type, struct
from ottla.connect.errors import ConnectError


class Shop:
    """A database in a file, and sources on it that remember their offsets as the engine does."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.offsets: dict[str, dict[str, Any]] = {}
        self._started: list[TablesSource] = []
        self.run("CREATE TABLE orders (id INTEGER PRIMARY KEY, note TEXT, changed TIMESTAMP NOT NULL)")

    def run(self, statement: str, *parameters: Any) -> None:
        connection = sqlite3.connect(self.directory / "shop.db")
        connection.execute(statement, parameters)
        connection.commit()
        connection.close()

    def add(self, id: int, changed: str = "2026-11-18 00:00:00.000") -> None:
        self.run("INSERT OR REPLACE INTO orders VALUES (?, ?, ?)", id, f"n{id}", changed)

    def source(self, **options: str) -> TablesSource:
        given = {"name": "from", "topic.prefix": "shop-", "connection.url": f"jdbc:sqlite:{self.directory / 'shop.db'}"}
        given |= {"poll.interval.ms": "0", "batch.max.rows": "3"}
        given |= {name.replace("__", "+").replace("_", "."): value for name, value in options.items()}

        def offset(partition: Mapping[str, Any]) -> dict[str, Any] | None:
            return self.offsets.get(str(sorted(partition.items())))

        worker = {"file.allowed.paths": str(self.directory)}
        source = TablesSource(
            given, SourceContext("from", logging.getLogger("tables"), offset, lambda: 7, worker=worker)
        )
        self._started.append(source)
        source.start()
        return source

    def ids(self, source: TablesSource) -> list[list[int]]:
        """What one poll gives: ids of each batch."""
        found: list[list[int]] = []
        for made in source.poll(0.02):
            assert isinstance(made.records.value, Column)
            self.offsets[str(sorted(made.partition.items()))] = dict(made.offset)
            found.append([row["id"] for row in rows_of(made.records.value)])
        return found

    def close(self) -> None:
        for one in self._started:
            one.stop()


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    made = Shop(tmp_path)
    yield made
    made.close()


def test_larger_numbers_are_new_and_a_new_start_goes_on_behind_them(shop: Shop) -> None:
    for number in (1, 2, 3, 4, 9):
        shop.add(number)
    source = shop.source(mode="incrementing", incrementing_column_name="id")
    assert [shop.ids(source) for _ in range(3)] == [[[1, 2, 3]], [[4, 9]], []]
    shop.add(5)
    shop.add(10)
    again = shop.source(mode="incrementing", incrementing_column_name="id")
    assert [shop.ids(again) for _ in range(2)] == [[[10]], []]
    assert shop.offsets == {"[('protocol', '1'), ('table', 'orders')]": {"incrementing": 10}}


@pytest.mark.parametrize("mode", ["incrementing", "timestamp+incrementing"])
def test_rows_without_a_number_are_not_seen_and_keep_back_no_others(shop: Shop, mode: str) -> None:
    shop.run("CREATE TABLE bills (id INTEGER PRIMARY KEY, number INTEGER, changed TIMESTAMP NOT NULL)")
    for id, number in ((1, None), (2, None), (3, None), (4, 1), (5, None)):
        shop.run("INSERT INTO bills VALUES (?, ?, ?)", id, number, f"2020-01-01 00:00:0{id}")
    options = {"table_whitelist": "bills", "incrementing_column_name": "number", "validate_non_null": "false"}
    source = shop.source(mode=mode, timestamp_column_name="changed", **options)
    assert [shop.ids(source), shop.ids(source)] == [[[4]], []]


@pytest.mark.parametrize(("kind", "number"), [("REAL", 1.5), ("TEXT", "9")])
def test_what_is_no_whole_number_says_not_what_is_new(shop: Shop, kind: str, number: Any) -> None:
    shop.run(f"CREATE TABLE bills (id {kind} NOT NULL)")
    shop.run("INSERT INTO bills VALUES (?)", number)
    source = shop.source(mode="incrementing", incrementing_column_name="id", table_whitelist="bills")
    with pytest.raises(ConnectError, match=f"incrementing.column.name: {number!r} in bills is no whole number"):
        source.poll(0)


def test_records_have_the_schema_of_their_table(shop: Shop) -> None:
    shop.add(1)
    (made,) = shop.source(mode="incrementing", incrementing_column_name="id").poll(0)
    fields = [("id", Schema(Type.INT64)), ("note", Schema(Type.STRING, True)), ("changed", schemas.timestamp())]
    assert made.records.value.schema == struct(fields, name="orders")
    assert isinstance(made.records.value, Column)
    assert rows_of(made.records.value) == [{"id": 1, "note": "n1", "changed": 1_794_960_000_000}]
    assert made.records.topic == "shop-orders"


@pytest.mark.parametrize(
    ("kind", "value", "read"),
    [
        ("BOOLEAN", 1, True),
        ("BOOLEAN", "false", "'false' is no boolean"),
        ("BLOB", b"\xff", b"\xff"),
        ("BLOB", "é", "é".encode()),
        ("BLOB", 5, "5 is no bytes"),
        ("TEXT", b"\xff", "can't decode byte 0xff"),
    ],
)
def test_a_value_is_what_it_was_or_refused(shop: Shop, kind: str, value: Any, read: Any) -> None:
    shop.run(f"CREATE TABLE kinds (value {kind})")
    shop.run("INSERT INTO kinds VALUES (?)", value)
    source = shop.source(mode="bulk", table_whitelist="kinds")
    if isinstance(read, str):
        with pytest.raises(ConnectError, match=f"a row of kinds .* cannot be read: .*{read}"):
            source.poll(0)
        return
    (made,) = source.poll(0)
    assert isinstance(made.records.value, Column)
    assert rows_of(made.records.value) == [{"value": read}]


def test_numbers_have_all_their_digits() -> None:
    number = Decimal("12345678901234567890123456789012345678.9")
    assert _value(schemas.decimal(2), number) == number


def test_newer_rows_are_new_and_rows_of_one_moment_stay_together(shop: Shop) -> None:
    for number, second in ((1, 0), (2, 1), (3, 2), (4, 2), (5, 2), (6, 2), (7, 3)):
        shop.add(number, f"2020-01-01 00:00:0{second}.000")
    source = shop.source(mode="timestamp", timestamp_column_name="changed")
    assert [shop.ids(source) for _ in range(4)] == [[[1, 2]], [[3, 4, 5, 6]], [[7]], []]
    shop.add(2, "2020-01-01 00:00:04.250")
    again = shop.source(mode="timestamp", timestamp_column_name="changed")
    assert shop.ids(again) == [[2]]
    assert list(shop.offsets.values()) == [{"timestamp": 1_577_836_804_250, "timestamp_nanos": 250_000_000}]


def test_a_page_that_is_cut_at_a_moment_is_not_the_end(shop: Shop) -> None:
    for number, second in ((1, 0), (2, 1), (3, 2), (4, 2), (5, 3)):
        shop.add(number, f"2020-01-01 00:00:0{second}.000")
    source = shop.source(mode="timestamp", timestamp_column_name="changed", poll_interval_ms="3600000")
    seen = []
    while not source.is_at_end():
        seen += shop.ids(source)
    assert seen == [[1, 2], [3, 4], [5]]


@pytest.mark.parametrize("fraction", ["1231", "1236"])
def test_times_with_more_digits_than_sqlite_compares_are_read_once(shop: Shop, fraction: str) -> None:
    for number in range(1, 7):
        shop.add(number, f"2020-01-01 00:00:00.{fraction}{number}0")
    source = shop.source(mode="timestamp", timestamp_column_name="changed")
    assert [shop.ids(source) for _ in range(3)] == [[[1, 2, 3, 4, 5, 6]], [], []]
    shop.add(7, "2020-01-01 00:00:00.125000")
    assert shop.ids(shop.source(mode="timestamp", timestamp_column_name="changed")) == [[7]]


@pytest.mark.parametrize("query", ["", "SELECT * FROM orders"])
def test_milliseconds_in_a_column_of_times_are_times(shop: Shop, query: str) -> None:
    shop.run("INSERT INTO orders VALUES (1, 'a', 1577836800000), (2, 'b', 1577836800001)")
    source = shop.source(mode="timestamp", timestamp_column_name="changed", query=query)
    assert [shop.ids(source) for _ in range(2)] == [[[1, 2]], []]
    assert list(shop.offsets.values()) == [{"timestamp": 1_577_836_800_001, "timestamp_nanos": 1_000_000}]


def test_a_text_that_is_no_time_is_refused_and_not_passed_over(shop: Shop) -> None:
    shop.add(1, "2020-01-01 00:00:00")
    shop.add(2, "01/02/2020 10:00")
    source = shop.source(mode="timestamp", timestamp_column_name="changed")
    with pytest.raises(ConnectError, match=r"timestamp.column.name: '01/02/2020 10:00' in orders is no time"):
        source.poll(0)


def test_a_column_of_times_that_is_not_there_any_more_is_no_silence(shop: Shop) -> None:
    source = shop.source(mode="timestamp", timestamp_column_name="changed")
    shop.run("ALTER TABLE orders RENAME COLUMN changed TO altered")
    shop.run("INSERT INTO orders VALUES (1, 'a', '2020-01-01')")
    with pytest.raises(ConnectError, match=r"no such column: polled\.changed"):
        source.poll(0)
    misspelt = shop.source(mode="timestamp", timestamp_column_name="chnged", query="SELECT * FROM orders")
    with pytest.raises(ConnectError, match=r"no such column: polled\.chnged"):
        misspelt.poll(0)


def test_rows_of_the_future_wait_and_the_beginning_may_be_given(shop: Shop) -> None:
    shop.add(1, "2020-01-01 00:00:00.000")
    shop.add(2, "2021-01-01 00:00:00.000")
    shop.add(3, "2999-01-01 00:00:00.000")
    source = shop.source(mode="timestamp", timestamp_column_name="changed", timestamp_initial="1590000000000")
    assert [shop.ids(source), shop.ids(source)] == [[[2]], []]
    assert shop.ids(shop.source(mode="timestamp", timestamp_column_name="changed", timestamp_initial="-1")) == []


@pytest.mark.parametrize("mode", ["timestamp", "timestamp+incrementing"])
def test_rows_from_before_1970_are_read_where_no_beginning_is_given(shop: Shop, mode: str) -> None:
    for number, day in ((1, "1914-07-28"), (2, "1969-12-31 23:59:59.999"), (3, "1970-01-01"), (4, "1970-01-02")):
        shop.add(number, day)
    both = {"timestamp_column_name": "changed", "incrementing_column_name": "id"}
    seen: list[int] = []
    while found := shop.ids(shop.source(mode=mode, **both, batch_max_rows="2")):
        seen += found[0]
    assert seen == [1, 2, 3, 4]
    shop.offsets.clear()
    assert shop.ids(shop.source(mode=mode, **both, timestamp_initial="0")) == [[4]]


def test_of_several_columns_of_times_one_is_never_null(shop: Shop) -> None:
    shop.run("CREATE TABLE bills (id INTEGER PRIMARY KEY, changed TIMESTAMP, made TIMESTAMP)")
    options = {"mode": "timestamp", "timestamp_column_name": "changed,made", "table_whitelist": "bills"}
    with pytest.raises(ConnectError, match=r"timestamp\.column\.name: .* may be null"):
        shop.source(**options)
    shop.run("INSERT INTO bills VALUES (1, NULL, '2020-01-01'), (2, '2020-01-02', '2019-01-01'), (3, NULL, NULL)")
    assert shop.ids(shop.source(**options, validate_non_null="false")) == [[1, 2]]


def test_of_one_moment_the_number_says_what_is_new(shop: Shop) -> None:
    both = {"timestamp_column_name": "changed", "incrementing_column_name": "id"}
    for number in (1, 2, 3, 4):
        shop.add(number, "2020-01-01 00:00:00.000")
    source = shop.source(**both, mode="timestamp+incrementing")
    assert [shop.ids(source) for _ in range(2)] == [[[1, 2, 3]], [[4]]]
    shop.add(5, "2020-01-01 00:00:00.000")
    shop.add(1, "2020-01-01 00:00:01.000")
    assert [shop.ids(shop.source(**both, mode="timestamp+incrementing")) for _ in range(2)] == [[[5, 1]], []]


def test_bulk_gives_all_rows_each_time_in_pieces(shop: Shop) -> None:
    for number in (1, 2, 3, 4):
        shop.add(number)
    source = shop.source(mode="bulk")
    assert [shop.ids(source) for _ in range(4)] == [[[1, 2, 3]], [[4]], [[1, 2, 3]], [[4]]]


def test_a_query_stands_instead_of_tables(shop: Shop) -> None:
    shop.add(1)
    shop.add(2)
    query = "SELECT id, note || '!' AS loud FROM orders WHERE note LIKE 'n%'"
    source = shop.source(mode="incrementing", incrementing_column_name="id", query=query)
    (made,) = source.poll(0)
    assert isinstance(made.records.value, Column)
    assert rows_of(made.records.value) == [{"id": 1, "loud": "n1!"}, {"id": 2, "loud": "n2!"}]
    assert (made.records.topic, made.partition) == ("shop-", {"query": "query"})


@pytest.mark.parametrize("mode", ["bulk", "incrementing"])
def test_a_table_that_is_dropped_ends_nothing_for_the_others(shop: Shop, mode: str) -> None:
    for name in ("bills", "customers"):
        shop.run(f"CREATE TABLE {name} (id INTEGER PRIMARY KEY)")
        shop.run(f"INSERT INTO {name} VALUES (7)")
    source = shop.source(mode=mode, incrementing_column_name="id")
    assert shop.ids(source) == [[7], [7]]
    shop.run("DROP TABLE bills")
    shop.add(1)
    seen = [ids for _ in range(2) for ids in shop.ids(source)]
    assert [1] in seen
    shop.run("CREATE TABLE bills (id INTEGER PRIMARY KEY)")
    named = shop.source(mode=mode, incrementing_column_name="id", table_whitelist="bills")
    shop.run("DROP TABLE bills")
    with pytest.raises(ConnectError, match=r"table\.whitelist: there is no table bills"):
        named.poll(0)


@pytest.mark.parametrize("statement", ["ATTACH '{}' AS other", "VACUUM INTO '{}'"])
def test_a_query_opens_no_other_file(shop: Shop, tmp_path: Path, statement: str) -> None:
    other = tmp_path / "other.db"
    with pytest.raises(ConnectError, match="attached databases"):
        shop.source(mode="bulk", query=statement.replace("{}", str(other))).poll(0)
    assert not other.exists()


@pytest.mark.parametrize("name", ["sslrootcert", "sslcert", "sslkey"])
def test_files_in_an_address_are_those_that_the_worker_allows(tmp_path: Path, name: str) -> None:
    pytest.importorskip("psycopg")
    url = f"jdbc:postgresql://127.0.0.1:1/shop?sslmode=require&{name}=/etc/hostname"
    with pytest.raises(PathNotAllowed, match=rf"connection\.url: {name}=/etc/hostname"):
        open_database(url, "me", None, {"file.allowed.paths": str(tmp_path)})
    assert TablesSource.validate({"connection.url": url, "mode": "bulk", "topic.prefix": "p"}) == []


def test_tables_that_come_later_and_columns_that_are_added_are_seen(shop: Shop) -> None:
    source = shop.source(mode="incrementing", incrementing_column_name="id", table_poll_interval_ms="0")
    assert shop.ids(source) == []
    shop.run("CREATE TABLE bills (id INTEGER PRIMARY KEY)")
    shop.run("INSERT INTO bills VALUES (5)")
    shop.run("ALTER TABLE orders ADD COLUMN more REAL")
    shop.run("INSERT INTO orders VALUES (1, 'a', '2020-01-01', 2.5)")
    found = {made.records.topic: made.records.value for made in source.poll(1)}
    assert sorted(found) == ["shop-bills", "shop-orders"]
    assert found["shop-orders"].schema is not None
    assert found["shop-orders"].schema.fields[3].schema == Schema(Type.FLOAT64, True)
    only = shop.source(mode="bulk", table_whitelist="bills")
    assert [made.records.topic for made in only.poll(0)] == ["shop-bills"]
    others = shop.source(mode="bulk", table_blacklist="bills")
    assert [made.records.topic for made in others.poll(0)] == ["shop-orders"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"mode": "incrementing"}, "incrementing.column.name"),
        ({"mode": "timestamp"}, "timestamp.column.name"),
        ({"mode": "sometimes"}, "mode"),
        ({"mode": "incrementing", "incrementing_column_name": "no"}, "has no column no; it has id, note, changed"),
        ({"mode": "incrementing", "incrementing_column_name": "note"}, "validate.non.null=false"),
        ({"mode": "bulk", "table_whitelist": "no"}, "there is no table no"),
        ({"mode": "bulk", "query": "SELECT 1", "table_whitelist": "orders"}, "take table.whitelist"),
        ({"mode": "bulk", "numeric_mapping": "best_fit"}, "has no option numeric.mapping here"),
    ],
)
def test_configurations_that_cannot_work_are_refused(shop: Shop, options: dict[str, str], words: str) -> None:
    with pytest.raises(ConnectError) as refused:
        shop.source(**options)
    assert words in str(refused.value)


def test_a_configuration_is_checked_before_it_runs() -> None:
    good = {"connection.url": "jdbc:sqlite::memory:", "mode": "bulk", "topic.prefix": "p"}
    assert TablesSource.validate(good) == []
    assert TablesSource.validate({**good, "mode": "timestamp"})[0][0] == "timestamp.column.name"
