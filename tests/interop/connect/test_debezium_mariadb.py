"""Debezium 3.5 and ours on the same MariaDB: the same records, but for times, runs and what the page lists.

Both read the same binary log. They take the same snapshot, see the same transactions, and their records are compared as
Kafka's JsonConverter writes them, with schemas.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clients.connect.read_source import Log, Run
from tests.interop.connect.debezium import Debezium
from tests.interop.connect.mariadb_server import MariaDbServer
from tests.interop.connect.mariadb_types import COLUMNS
from tests.interop.connect.test_debezium_postgres import content, differences, ours_as_json, theirs_as_json

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def shared() -> Iterator[MariaDbServer]:
    with MariaDbServer(durable=False) as server:
        yield server


@pytest.fixture
def server(shared: MariaDbServer) -> Iterator[MariaDbServer]:
    yield shared
    shared.run("DROP DATABASE shop", "CREATE DATABASE shop", database="mysql")


def masked(record: dict[str, Any]) -> dict[str, Any]:
    """Without times, and for rows of a snapshot without what differs by when it was taken."""
    value = record["value"]
    if value is not None:
        payload = value["payload"]
        source = payload["source"]
        for name in ("ts_ms", "ts_us", "ts_ns"):
            payload.pop(name, None)
        if payload["op"] == "r":
            for name in ("ts_ms", "ts_us", "ts_ns", "snapshot", "file", "pos"):
                source.pop(name)
            for name, one in (payload["after"] or {}).items():
                if name.startswith("c_timestamp") and one is not None:  # Debezium: all digits in changes, not here
                    payload["after"][name] = re.sub(r"\.?0*Z$", "Z", one) if "." in one else one
    return record


def all_differences(run: Run, debezium: Debezium) -> list[str]:
    ours, theirs = ours_as_json(run), theirs_as_json(debezium.records)
    found = [f"topics {sorted(ours)} and {sorted(theirs)}"] if ours.keys() != theirs.keys() else []
    for topic in ours.keys() & theirs.keys():
        if len(ours[topic]) != len(theirs[topic]):
            found.append(f"{topic}: {len(ours[topic])} records and {len(theirs[topic])}")
        for place, (mine, other) in enumerate(zip(ours[topic], theirs[topic], strict=False)):
            found += differences(masked(mine), masked(other), f"{topic}#{place}")
    return found


def with_history(config: dict[str, str], directory: Path) -> dict[str, str]:
    """What Debezium needs, and we take without needing it."""
    directory.mkdir(parents=True, exist_ok=True)
    return config | {
        "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
        "schema.history.internal.file.filename": str(directory / "history"),
        "include.schema.changes": "false",
    }


class Both:
    """Debezium and ours beside each other."""

    def __init__(self, server: MariaDbServer, directory: Path, **more: str) -> None:
        self.server = server
        config = with_history(server.config(), directory) | {
            name.replace("_", "."): value for name, value in more.items()
        }
        self.debezium = Debezium(directory, config)
        self.run = Run(config | {"database.server.id": "5402"}, Log())

    def __enter__(self) -> "Both":
        self.debezium.__enter__()
        self.run.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.run.__exit__()
        self.debezium.__exit__(*error)

    def wait_for(self, count: int) -> None:
        self.run.until_count(count)
        self.run.until(lambda: len(self.debezium.records) >= count or self.debezium.has_ended, 240)
        self.debezium.wait_for(count)


def create(name: str, columns: dict[str, tuple[str, tuple[str, ...]]], constraint: str = "") -> str:
    def more(kind: str, values: tuple[str, ...]) -> str:
        if not values:
            return ""
        return constraint or ("NULL" if kind.startswith("timestamp") else "")

    listed = ", ".join(f"{column} {kind} {more(kind, values)}" for column, (kind, values) in columns.items())
    return f"CREATE TABLE {name} (pk int PRIMARY KEY, {listed})"


def inserts(name: str, columns: dict[str, tuple[str, tuple[str, ...]]], first: int, *, nulls: bool) -> list[str]:
    given = {column: values for column, (_, values) in columns.items() if values}
    made: list[str] = []
    for row in range(max(map(len, given.values())) + nulls):
        listed = [values[row] if row < len(values) else "NULL" if nulls else values[0] for values in given.values()]
        made.append(f"INSERT INTO {name} (pk, {', '.join(given)}) VALUES ({first + row}, {', '.join(listed)})")
    return made


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"decimal.handling.mode": "string", "binary.handling.mode": "base64"},
        {"decimal.handling.mode": "double", "time.precision.mode": "connect", "binary.handling.mode": "hex"},
        {"time.precision.mode": "nanoseconds", "bigint.unsigned.handling.mode": "precise"},
        {"time.precision.mode": "microseconds", "binary.handling.mode": "base64-url-safe",
         "schema.name.adjustment.mode": "avro"},
    ],
    ids=["plain", "strings", "doubles", "nanoseconds", "microseconds"],
)  # fmt: skip
def test_all_types_are_the_same_in_snapshots_and_changes(
    server: MariaDbServer, tmp_path: Path, options: dict[str, str]
) -> None:
    # Nanoseconds of the year 9999 do not fit, and Debezium's overflow; its Connect times fail beyond a day.
    far = {"nanoseconds": {"c_datetime"}, "connect": {"c_time", "c_time3", "c_time6"}}.get(
        options.get("time.precision.mode", ""), set()
    )
    columns = {name: found for name, found in COLUMNS.items() if name not in far}
    server.run(create("types", columns), create("strict", columns, "NOT NULL"))
    first = inserts("types", columns, 0, nulls=True) + inserts("strict", columns, 0, nulls=False)
    then = inserts("types", columns, 100, nulls=True) + inserts("strict", columns, 100, nulls=False)
    then += ["UPDATE types SET c_int = 9", "DELETE FROM strict"]
    server.run(*first)
    types = len(inserts("types", columns, 0, nulls=True))
    more = 2 * types + 2 * 2 * (len(first) - types)
    with Both(server, tmp_path, **options) as both:
        both.wait_for(len(first))
        both.debezium.wait_for(len(first))
        server.run(*then)
        both.wait_for(len(first) + len(then) - 2 + more)
    assert all_differences(both.run, both.debezium) == []


def test_all_kinds_of_changes_are_the_same(server: MariaDbServer, tmp_path: Path) -> None:
    server.run(
        """CREATE TABLE defaults (
            pk int PRIMARY KEY AUTO_INCREMENT, a int DEFAULT 5, b int NOT NULL DEFAULT 7, c text DEFAULT 'xy',
            d varchar(10) NOT NULL DEFAULT 'dd', e datetime DEFAULT now(),
            f datetime NOT NULL DEFAULT '2020-01-01 01:02:03',
            g boolean DEFAULT true, h decimal(6,2) NOT NULL DEFAULT 1.5, i enum('sad', 'ok') DEFAULT 'ok',
            k date NOT NULL DEFAULT '2021-02-03', l timestamp NOT NULL DEFAULT current_timestamp,
            m bit(3) DEFAULT b'101',
            n varchar(5) DEFAULT NULL, o bit DEFAULT b'1', q double DEFAULT 1.25, r bigint DEFAULT 9223372036854775807,
            s bigint unsigned DEFAULT 5, t decimal(5) DEFAULT -3,
            u timestamp NULL DEFAULT current_timestamp ON UPDATE current_timestamp,
            v timestamp(6) NOT NULL DEFAULT '2020-01-01 00:00:00.5', w char(4) DEFAULT '',
            x time DEFAULT '10:00', y year DEFAULT 2000,
            z set('p', 'q') DEFAULT 'p,q', aa float DEFAULT -1.5,
            bb smallint NOT NULL DEFAULT -1, cc datetime(6) DEFAULT '2020-01-01 00:00:00.123456')""",
        "CREATE TABLE nokey (a int, b text)",
        "CREATE TABLE uniq (a int NOT NULL, b varchar(9) NOT NULL, c int, UNIQUE (a, b))",
        "CREATE TABLE plain (pk int PRIMARY KEY, a int, b text)",
        "CREATE TABLE `We ird.x` (`Pk ä` int PRIMARY KEY, `b-c` text)",
        "CREATE TABLE compkey (b int, a varchar(9), c int, PRIMARY KEY (c, a))",
        "CREATE TABLE myisam (pk int PRIMARY KEY, a int) ENGINE = MyISAM",
        "INSERT INTO plain VALUES (0, 0, 'there')",
        "INSERT INTO nokey VALUES (0, 'there')",
    )
    changes = [
        "INSERT INTO defaults () VALUES ()",
        "UPDATE defaults SET a = 6",
        "DELETE FROM defaults",
        "INSERT INTO nokey VALUES (1, 'x')",
        "UPDATE nokey SET b = 'y'",
        "DELETE FROM nokey",
        "INSERT INTO uniq VALUES (1, 'x', 2)",
        "INSERT INTO plain VALUES (1, 2, 'b')",
        "UPDATE plain SET a = 3",
        "UPDATE plain SET pk = pk + 5",
        "REPLACE INTO plain VALUES (6, 7, 'c')",
        "INSERT INTO plain VALUES (6, 1, 'd') ON DUPLICATE KEY UPDATE a = 100",
        "DELETE FROM plain",
        "INSERT INTO `We ird.x` VALUES (1, 'q')",
        "INSERT INTO compkey VALUES (1, 'a', 3)",
        "UPDATE compkey SET a = 'b'",
        "DELETE FROM compkey",
        "INSERT INTO myisam VALUES (1, 1), (2, 2)",
        "BEGIN",
        "INSERT INTO compkey VALUES (10, 't', 1)",
        "INSERT INTO compkey VALUES (11, 't', 2)",
        "SAVEPOINT here",
        "INSERT INTO compkey VALUES (12, 't', 3)",
        "ROLLBACK TO here",
        "INSERT INTO nokey VALUES (3, 't')",
        "COMMIT",
        "TRUNCATE TABLE compkey",
        "ALTER TABLE compkey ADD COLUMN nn int NOT NULL DEFAULT 4 FIRST",
        "INSERT INTO compkey VALUES (5, 12, 'z', 5)",
        "",
        "ALTER TABLE compkey CHANGE b bee bigint, DROP COLUMN nn",
        "INSERT INTO compkey VALUES (12, 'z', 6)",
        "RENAME TABLE nokey TO other",
        "INSERT INTO other VALUES (5, 'renamed')",
        "ALTER TABLE other ADD PRIMARY KEY (a)",
        "UPDATE other SET b = 'with a key'",
        "FLUSH BINARY LOGS",
        "INSERT INTO compkey VALUES (99, 'end', 99)",
    ]
    with Both(server, tmp_path, skipped_operations="none") as both:
        both.wait_for(2)
        cut = changes.index("")
        server.run(*changes[:cut])
        # The default of a column is in the catalogue alone: while the column is there.
        both.debezium.wait_until(lambda one: one["topic"] == "shop.shop.compkey" and b'"c":5' in content(one["key"]))
        both.run.until_count(len(both.debezium.records))
        server.run(*changes[cut + 1 :])
        both.debezium.wait_until(lambda one: one["topic"] == "shop.shop.compkey" and b'"c":99' in content(one["key"]))
        both.run.until_count(len(both.debezium.records))
        both.run.poll()
    assert all_differences(both.run, both.debezium) == []
