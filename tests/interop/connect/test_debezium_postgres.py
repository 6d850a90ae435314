"""Debezium 3.6 and ours on the same database: the same records, but for times, runs and what the page lists.

Both have a slot of their own on one publication. They take the same snapshot, see the same transactions, and their
records are compared as Kafka's JsonConverter writes them, with schemas.
"""

import base64
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.connect.converters.by_name import make_converter
from tests.clients.connect.postgres_server import PostgresServer
from tests.clients.connect.read_source import Log, Run
from tests.interop.connect.debezium import Debezium, unpacked
from tests.interop.connect.postgres_types import COLUMNS, DEBEZIUM_HAS_NULL, FAULTS, PREPARE

pytestmark = pytest.mark.interop

CARRIER = make_converter("JsonConverter", {"replace.null.with.default": "false"})
LARGE = "(SELECT string_agg(md5(i::text || random()::text), '') FROM generate_series(1, 200) i)"


@pytest.fixture(params=[16, 18])
def server(request: pytest.FixtureRequest) -> Iterator[PostgresServer]:
    with PostgresServer(request.param, durable=False) as server:
        server.run(*PREPARE)
        yield server


def ours_as_json(run: Run) -> dict[str, list[dict[str, Any]]]:
    """Records of each topic, in order."""
    found: dict[str, list[tuple[int, int, dict[str, Any]]]] = {}
    for poll, records in run.batches:
        keys = CARRIER.to_bytes(records.topic, records.key).to_pylist()
        values = CARRIER.to_bytes(records.topic, records.value).to_pylist()
        for row, (key, value) in enumerate(zip(keys, values, strict=True)):
            shown = {
                "key": None if key is None else json.loads(key),
                "value": None if value is None else json.loads(value),
                "headers": [name for name, _, _ in records.headers_of(row)],
            }
            found.setdefault(records.topic, []).append((poll, records.position[row].as_py(), shown))
    return {topic: [one[2] for one in sorted(rows, key=lambda one: one[:2])] for topic, rows in found.items()}


def theirs_as_json(records: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for one in records:
        shown = {
            "key": unpacked(one["key"]),
            "value": unpacked(one["value"]),
            "headers": [name for name, _ in one["headers"]],
        }
        found.setdefault(one["topic"], []).append(shown)
    return found


def masked(record: dict[str, Any]) -> dict[str, Any]:
    """Without times, and for rows of a snapshot without what differs by when it was taken."""
    value = record["value"]
    if value is not None:
        payload = value["payload"]
        if "status" in payload:
            for one in payload["data_collections"] or ():  # Java's name of an object
                if "LogicalDecodingMessageId" in one["data_collection"]:
                    one["data_collection"] = "message"
            if payload["data_collections"]:
                payload["data_collections"].sort(key=lambda one: one["data_collection"])
            return record
        source = payload["source"]
        for name in ("ts_ms", "ts_us", "ts_ns"):
            payload.pop(name, None)
        if payload["op"] == "r":
            for name in ("ts_ms", "ts_us", "ts_ns", "txId", "lsn", "sequence"):
                source.pop(name)
            if source["snapshot"] != "incremental":
                source.pop("snapshot")
        if payload["op"] == "m" and source["txId"] is None:
            for name in ("ts_ms", "ts_us", "ts_ns"):
                source.pop(name)
        source.pop("sequence", None)  # the commit before the first is another
    return record


def differences(ours: Any, theirs: Any, path: str = "") -> list[str]:
    """Where two things differ, and how."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        found: list[str] = []
        for name in [*ours, *(name for name in theirs if name not in ours)]:
            if name not in ours or name not in theirs:
                found.append(f"{path}.{name}: only {'ours' if name in ours else 'theirs'}")
            else:
                found += differences(ours[name], theirs[name], f"{path}.{name}")
        return found
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        named = [one.get("field", place) if isinstance(one, dict) else place for place, one in enumerate(ours)]
        return [
            line
            for name, mine, other in zip(named, ours, theirs, strict=True)
            for line in differences(mine, other, f"{path}[{name}]")
        ]
    return [] if ours == theirs else [f"{path}: {str(ours)[:300]} and {str(theirs)[:300]}"]


def all_differences(run: Run, debezium: Debezium, without: str | None = None) -> list[str]:
    """`without` are words that leave a record out of the comparison."""
    ours, theirs = ours_as_json(run), theirs_as_json(debezium.records)
    if without is not None:
        for found in (ours, theirs):
            for topic, records in found.items():
                found[topic] = [one for one in records if without not in json.dumps(one)]
    found = [f"topics {sorted(ours)} and {sorted(theirs)}"] if ours.keys() != theirs.keys() else []
    for topic in ours.keys() & theirs.keys():
        if len(ours[topic]) != len(theirs[topic]):
            found.append(f"{topic}: {len(ours[topic])} records and {len(theirs[topic])}")
        for place, (mine, other) in enumerate(zip(ours[topic], theirs[topic], strict=False)):
            found += differences(masked(mine), masked(other), f"{topic}#{place}")
    return found


class Both:
    """Debezium and ours beside each other."""

    def __init__(self, server: PostgresServer, directory: Path, **more: str) -> None:
        self.server = server
        extra = {name.replace("_", "."): value for name, value in more.items()}
        self.debezium = Debezium(directory, server.config() | extra)
        self.run = Run(server.config() | extra | {"slot.name": "ours"}, Log())

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

    def wait_until_streaming(self, slots: int = 2) -> None:
        deadline_s = time.monotonic() + 120
        query = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'"
        while self.server.run(query) != [(slots,)]:
            assert time.monotonic() < deadline_s, self.debezium.log()
            self.run.poll(0.1)


def create(name: str, columns: dict[str, tuple[str, tuple[str, ...]]], constraint: str = "") -> str:
    listed = ", ".join(f"{column} {kind} {constraint if values else ''}" for column, (kind, values) in columns.items())
    return f"CREATE TABLE {name} (pk int PRIMARY KEY, {listed})"


def inserts(name: str, columns: dict[str, tuple[str, tuple[str, ...]]], first: int, *, nulls: bool) -> list[str]:
    made: list[str] = []
    for row in range(max(len(values) for _, values in columns.values()) + nulls):
        listed = []
        for kind, values in columns.values():
            value = values[row] if row < len(values) else "NULL" if nulls or not values else values[0]
            listed.append(f"({value})::{kind}")
        made.append(f"INSERT INTO {name} VALUES ({first + row}, {', '.join(listed)})")
    return made


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"decimal.handling.mode": "string", "time.precision.mode": "isostring", "binary.handling.mode": "base64",
         "interval.handling.mode": "string"},
        {"decimal.handling.mode": "double", "time.precision.mode": "connect", "binary.handling.mode": "hex"},
        {"time.precision.mode": "nanoseconds"},
        {"time.precision.mode": "microseconds", "binary.handling.mode": "base64-url-safe"},
        {"time.precision.mode": "adaptive_time_microseconds", "schema.name.adjustment.mode": "avro"},
    ],
    ids=["plain", "strings", "doubles", "nanoseconds", "microseconds", "avro"],
)  # fmt: skip
def test_all_types_are_the_same_in_snapshots_and_changes(
    server: PostgresServer, tmp_path: Path, options: dict[str, str]
) -> None:
    columns = {name: found for name, found in COLUMNS.items() if name not in FAULTS}
    far = {"c_timestamp", "c_date"} if "nanoseconds" in options.values() else set()
    columns = {name: found for name, found in columns.items() if name not in far}
    strict = {name: found for name, found in columns.items() if name not in DEBEZIUM_HAS_NULL}
    server.run(create("types", columns), create("strict", strict, "NOT NULL"))
    first = inserts("types", columns, 0, nulls=True) + inserts("strict", strict, 0, nulls=False)
    then = inserts("types", columns, 100, nulls=True) + inserts("strict", strict, 100, nulls=False)
    server.run(*first)
    with Both(server, tmp_path, **options) as both:
        both.wait_for(len(first))
        both.wait_until_streaming()
        server.run(*then)
        both.wait_for(len(first) + len(then))
    assert all_differences(both.run, both.debezium) == []


def test_all_kinds_of_changes_are_the_same(server: PostgresServer, tmp_path: Path) -> None:
    faults = {*FAULTS, "c_sparsevec", "c_vector", "c_halfvec"}  # Debezium stops at a delete that has them NOT NULL
    strict = {name: found for name, found in COLUMNS.items() if name not in faults}
    (insert,) = inserts("strict", {name: (kind, values[:1]) for name, (kind, values) in strict.items()}, 1, nulls=False)
    server.run(
        create("strict", strict, "NOT NULL"),
        """CREATE TABLE defaults (
            pk serial PRIMARY KEY, a int DEFAULT 5, b int NOT NULL DEFAULT 7, c text DEFAULT 'xy',
            d text NOT NULL DEFAULT 'dd',
            e timestamp DEFAULT now(), f timestamp NOT NULL DEFAULT '2020-01-01 01:02:03.5', g boolean DEFAULT true,
            h numeric(6,2) NOT NULL DEFAULT 1.5, i mood DEFAULT 'ok', j uuid DEFAULT gen_random_uuid(),
            k date NOT NULL DEFAULT current_date, l jsonb DEFAULT '{"a":1}', m bytea DEFAULT '\\xff',
            n varchar(5) DEFAULT NULL,
            o timestamptz DEFAULT '2020-01-01 00:00:00+02', p interval DEFAULT '1 day', q float8 DEFAULT 1.25,
            r int8 DEFAULT 9223372036854775807, s bit(3) DEFAULT B'101', t numeric DEFAULT 2.50, u int[] DEFAULT '{1}',
            v int GENERATED ALWAYS AS IDENTITY, w text COLLATE "C" DEFAULT 'col', x time DEFAULT '10:00',
            y positive DEFAULT 3, z int2 DEFAULT -1, aa money DEFAULT 3, bb real DEFAULT -1.5)""",
        """CREATE TABLE toast (
            pk int PRIMARY KEY, txt text, txt2 text NOT NULL, byt bytea, js jsonb, arr text[], arri int[],
            arrb bigint[],
            vc varchar, num numeric, uu uuid[], fl float8[], tv tsvector, jsn json, barr bytea[], n int)""",
        "CREATE TABLE nokey (a int, b text)",
        "CREATE TABLE uniq (a int NOT NULL, b text NOT NULL, c int, UNIQUE (a, b))",
        "CREATE TABLE fullid (pk int PRIMARY KEY, a int, b text)",
        "ALTER TABLE fullid REPLICA IDENTITY FULL",
        'CREATE SCHEMA "We ird"',
        'CREATE TABLE "We ird"."Ta-ble.x" ("Pk ä" int PRIMARY KEY, "b-c" text)',
        "CREATE TABLE part (id int, r int, PRIMARY KEY (id, r)) PARTITION BY RANGE (r)",
        "CREATE TABLE part1 PARTITION OF part FOR VALUES FROM (0) TO (10)",
        "CREATE TABLE compkey (b int, a text, c int, PRIMARY KEY (c, a))",
        "INSERT INTO fullid VALUES (0, 0, 'there')",
    )
    changes = [
        insert,
        "UPDATE strict SET pk = 2",
        "DELETE FROM strict",
        "INSERT INTO defaults DEFAULT VALUES",
        "DELETE FROM defaults",
        f"""INSERT INTO toast SELECT 1, {LARGE}, {LARGE}, convert_to({LARGE}, 'UTF8'), to_jsonb({LARGE}),
            array[{LARGE}],
            array(SELECT (random() * 1e9)::int FROM generate_series(1, 5000)),
            array(SELECT (random() * 1e9)::int8 FROM generate_series(1, 5000)), {LARGE}, 1.5,
            array(SELECT gen_random_uuid() FROM generate_series(1, 2000)),
            array(SELECT random() FROM generate_series(1, 5000)), 'a:1', to_json({LARGE}),
            array[convert_to({LARGE}, 'UTF8')], 1""",
        "UPDATE toast SET n = 2",
        "INSERT INTO nokey VALUES (1, 'x')",
        "ALTER TABLE nokey REPLICA IDENTITY FULL",
        "UPDATE nokey SET b = 'y'",
        "DELETE FROM nokey",
        "INSERT INTO uniq VALUES (1, 'x', 2)",
        "INSERT INTO fullid VALUES (1, 2, 'b')",
        "UPDATE fullid SET a = 3",
        "UPDATE fullid SET pk = pk + 5",
        "DELETE FROM fullid",
        'INSERT INTO "We ird"."Ta-ble.x" VALUES (1, \'q\')',
        "INSERT INTO part VALUES (1, 1)",
        "INSERT INTO compkey VALUES (1, 'a', 3)",
        "UPDATE compkey SET a = 'b'",
        "DELETE FROM compkey",
        "BEGIN; INSERT INTO compkey VALUES (10, 't', 1); INSERT INTO compkey VALUES (11, 't', 2);"
        "INSERT INTO nokey VALUES (3, 't'); COMMIT",
        "TRUNCATE compkey, nokey",
        "SELECT pg_logical_emit_message(false, 'outside', 'hello')",
        "SELECT pg_logical_emit_message(true, 'inside', 'x')",
        "ALTER TABLE compkey ADD COLUMN nn int NOT NULL DEFAULT 4",
        "INSERT INTO compkey VALUES (12, 'z', 5)",
        "INSERT INTO compkey VALUES (99, 'end', 99)",
    ]
    with Both(server, tmp_path, skipped_operations="none") as both:
        both.wait_for(1)
        both.wait_until_streaming()
        server.run(*changes)
        both.debezium.wait_until(lambda one: one["topic"] == "shop.public.compkey" and b'"c":99' in content(one["key"]))
        both.run.until_count(len(both.debezium.records))
    assert all_differences(both.run, both.debezium) == []


def test_transactions_are_the_same(server: PostgresServer, tmp_path: Path) -> None:
    server.run(
        "CREATE TABLE a (id int PRIMARY KEY, x int)",
        "CREATE TABLE b (id int PRIMARY KEY, x int)",
        "CREATE TABLE c (id int PRIMARY KEY, x int)",
        "INSERT INTO a VALUES (0, 0)",
    )
    changes = [
        "BEGIN; INSERT INTO a VALUES (1, 1); INSERT INTO b VALUES (1, 1); UPDATE a SET id = 5 WHERE id = 1;"
        "UPDATE b SET x = 2; DELETE FROM b; SELECT pg_logical_emit_message(true, 'inside', 'x'); COMMIT",
        "INSERT INTO c VALUES (1, 1)",
        "SELECT pg_logical_emit_message(false, 'outside', 'x')",
        "SELECT pg_logical_emit_message(true, 'alone', 'x')",
        "TRUNCATE a",
        "CREATE TABLE d (id int PRIMARY KEY)",
        "INSERT INTO b SELECT i, i FROM generate_series(10, 50) i",
        "INSERT INTO a VALUES (99, 99)",
    ]
    options = {"provide_transaction_metadata": "true", "table_exclude_list": "public.c"}
    with Both(server, tmp_path, **options) as both:
        both.wait_for(1)
        both.wait_until_streaming()
        server.run(*changes)
        ((xid,),) = server.run("SELECT xmin::text FROM a WHERE id = 99")
        both.debezium.wait_until(
            lambda one: (
                one["topic"] == "shop.transaction"
                and b'"END"' in content(one["value"])
                and f'"{xid}:'.encode() in content(one["key"])
            )
        )
        both.run.until_count(len(both.debezium.records))
    assert all_differences(both.run, both.debezium) == []


def test_snapshots_by_signal_are_the_same(server: PostgresServer, tmp_path: Path) -> None:
    server.run(
        "CREATE TABLE signals (id varchar(80) PRIMARY KEY, type varchar(32) NOT NULL, data varchar(2048))",
        "CREATE TABLE a (id int PRIMARY KEY, x text, n numeric(8, 2))",
        "CREATE TABLE b (id int PRIMARY KEY)",
        "CREATE TABLE keyless (id int)",
        "INSERT INTO a SELECT i, 'x' || i, i / 7.0 FROM generate_series(1, 3000) i",
        "INSERT INTO b VALUES (1), (2)",
        "INSERT INTO keyless VALUES (1)",
    )
    signal = json.dumps(
        {
            "data-collections": ["public.[abk].*"],
            "additional-conditions": [{"data-collection": "public.a", "filter": "id > 10 OR x = 'x5'"}],
        }
    )
    options = {
        "signal_data_collection": "public.signals",
        "table_include_list": "public.a,public.b,public.keyless",
        "snapshot_mode": "no_data",
    }
    with Both(server, tmp_path, **options) as both:
        both.wait_until_streaming()
        server.run(f"INSERT INTO signals VALUES ('one', 'execute-snapshot', '{signal.replace(chr(39), chr(39) * 2)}')")

        def are_read(records: list[dict[str, Any]], topics: list[str]) -> bool:
            return all(any(one["topic"] == topic for one in records) for topic in topics)

        both.run.until(
            lambda: (
                are_read(both.debezium.records, ["shop.public.b"]) and are_read(both.run.log.records, ["shop.public.b"])
            ),
            240,
        )
        server.run("INSERT INTO b VALUES (99)")
        both.debezium.wait_until(lambda one: one["topic"] == "shop.public.b" and b'"id":99' in content(one["key"]))
        both.run.until(lambda: sum(one["topic"] == "shop.public.b" for one in both.run.log.records) == 3)
    assert sum(one["topic"] == "shop.public.a" for one in both.debezium.records) == 2991
    # Debezium writes rows into the table around its chunks, and both capture them.
    assert all_differences(both.run, both.debezium, "snapshot-window-") == []


def content(text: str | None) -> bytes:
    return b"" if text is None else base64.b64decode(text)
