"""Snapshots that signals ask for, while the connector streams: on a PostgreSQL of their own."""

import json
import logging
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.clients.connect.postgres_server import PostgresServer
from tests.clients.connect.read_source import Log, Run

SIGNALS = "CREATE TABLE signals (id varchar(42) PRIMARY KEY, type varchar(32) NOT NULL, data varchar(2048))"


@pytest.fixture(scope="module")
def database() -> Iterator[PostgresServer]:
    with PostgresServer(16, durable=False) as server:
        yield server


@pytest.fixture
def server(database: PostgresServer) -> Iterator[PostgresServer]:
    database.run("DROP SCHEMA public CASCADE", "CREATE SCHEMA public", SIGNALS)
    database.run(
        "CREATE TABLE t (id int PRIMARY KEY, x int)", "INSERT INTO t SELECT i, 0 FROM generate_series(1, 100) i"
    )
    yield database
    database.run(
        "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots",
        "DROP PUBLICATION IF EXISTS dbz_publication",
    )


def config(server: PostgresServer, **more: str) -> dict[str, str]:
    options = {
        "snapshot_mode": "no_data",
        "signal_data_collection": "public.signals",
        "ottla_snapshot_chunk_rows": "10",
        "table_include_list": r"public\.(t|u|new|keyless)",
    }
    return server.config(**(options | more))


def signal(server: PostgresServer, id: str, type: str, **data: Any) -> None:
    text = json.dumps({name.replace("_", "-"): value for name, value in data.items()})
    with server.connect() as connection:
        connection.execute("INSERT INTO signals VALUES (%s, %s, %s)", (id, type, text))


def reads(log: Log, topic: str = "shop.public.t") -> list[int]:
    """The keys of rows that were read, each of which says that a signal asked for it."""
    found = [one for one in log.records if one["topic"] == topic and one["value"] and one["value"]["op"] == "r"]
    assert {one["value"]["source"]["snapshot"] for one in found} <= {"incremental"}
    return [one["key"]["id"] for one in found]


def is_over(run: Run) -> bool:
    (offset,) = run.log.offsets.values() or [{}]
    return "ottla_incremental" not in offset


def run_until_read(run: Run, count: int, topic: str = "shop.public.t") -> None:
    run.until(lambda: len(reads(run.log, topic)) >= count and is_over(run))


def test_a_signal_reads_a_table_and_is_a_record_of_its_own(server: PostgresServer) -> None:
    with Run(config(server), Log()) as run:
        run.poll()
        signal(server, "one", "execute-snapshot", data_collections=["public.t"])
        run_until_read(run, 100)
    assert reads(run.log) == [*range(1, 101)]
    assert [one["key"] for one in run.log.records if one["topic"] == "shop.public.signals"] == [{"id": "one"}]


def test_conditions_choose_rows_and_patterns_choose_tables(server: PostgresServer) -> None:
    server.run("CREATE TABLE u (id int PRIMARY KEY, note text)", "INSERT INTO u VALUES (1, '50%'), (2, 'no')")
    server.run("CREATE TABLE keyless (id int)", "INSERT INTO keyless VALUES (1)")
    conditions = [
        {"data-collection": "public.t", "filter": "id > 20 AND id <= 45"},
        {"data-collection": "public.u", "filter": "note LIKE '%\\%%'"},
    ]
    with Run(config(server), Log()) as run:
        run.poll()
        signal(
            server, "one", "execute-snapshot", data_collections=[r"public\.[tuk].*"], additional_conditions=conditions
        )
        run_until_read(run, 25)
    assert reads(run.log) == [*range(21, 46)]
    assert reads(run.log, "shop.public.u") == [1]
    assert reads(run.log, "shop.public.keyless") == []


@pytest.mark.parametrize("threads", ["1", "3"])
def test_rows_that_change_while_they_are_read_are_not_older_than_their_changes(
    server: PostgresServer, threads: str
) -> None:
    with Run(config(server, snapshot_max_threads=threads), Log()) as run:
        run.poll()
        signal(server, "one", "execute-snapshot", data_collections=["public.t"])
        polls = 0
        while not (reads(run.log) and is_over(run)):
            polls += 1
            assert polls < 500
            server.run(f"UPDATE t SET x = {polls} WHERE id % 7 = {polls % 7}", "DELETE FROM t WHERE id = 50")
            run.poll(0.05)
        expected = dict(server.run("SELECT id, x FROM t"))
        run.poll()
    state: dict[int, int] = {}
    for one in run.log.records:
        if one["topic"] == "shop.public.t" and one["value"] is not None:
            after = one["value"]["after"]
            if after is None:
                state.pop(one["key"]["id"], None)
            else:
                state[after["id"]] = after["x"]
    assert state == expected
    assert max(Counter(reads(run.log)).values()) == 1


@pytest.mark.parametrize("threads", ["1", "3"])
def test_a_crash_continues_behind_the_last_chunk(server: PostgresServer, threads: str) -> None:
    log = Log()
    with Run(config(server, snapshot_max_threads=threads), log) as run:
        run.poll()
        signal(server, "one", "execute-snapshot", data_collections=["public.t"])
        run.until(lambda: len(reads(log)) >= 30)
    assert len(reads(log)) < 100
    with Run(config(server, snapshot_max_threads=threads), log) as run:
        run.source.poll(0.1)  # killed before it is written
    with Run(config(server, snapshot_max_threads=threads), log) as run:
        run_until_read(run, 100)
    assert reads(log) == [*range(1, 101)]


def test_a_snapshot_is_paused_and_resumed_and_stopped(server: PostgresServer) -> None:
    server.run("CREATE TABLE u (id int PRIMARY KEY)", "INSERT INTO u VALUES (1)")
    log = Log()
    with Run(config(server), log) as run:
        run.poll()
        signal(server, "1", "execute-snapshot", data_collections=["public.t", "public.u"])
        run.until(lambda: len(reads(log)) >= 20)
        signal(server, "2", "pause-snapshot")
        run.until(lambda: any(one["key"] == {"id": "2"} for one in log.records))
        so_far = reads(log)
        assert len(so_far) < 100
    with Run(config(server), log) as run:  # a pause outlives a crash
        server.run("UPDATE t SET x = 1 WHERE id = 100")
        run.until(lambda: any(one["value"] and one["value"]["op"] == "u" for one in log.records))
        for _ in range(3):
            run.poll(0.05)
        assert reads(log) == so_far
        signal(server, "3", "resume-snapshot")
        run.until(lambda: len(reads(log)) > len(so_far))
        signal(server, "4", "stop-snapshot", data_collections=["public.t"])
        run.until(lambda: is_over(run))
    assert reads(log, "shop.public.u") == [1]
    assert len(reads(log)) < 100
    assert reads(log) == [*range(1, len(reads(log)) + 1)]


def test_a_new_table_is_published_and_read_with_all_that_was_in_it(server: PostgresServer) -> None:
    log = Log()
    with Run(config(server, publication_autocreate_mode="filtered"), log) as run:
        run.poll()
        server.run("CREATE TABLE new (id int PRIMARY KEY)", "INSERT INTO new VALUES (1), (2)")
        # It began before the table is published, and ends after: its row must be read, since it does not come.
        with server.connect(autocommit=False) as slow:
            slow.execute("INSERT INTO new VALUES (3)")
            signal(server, "one", "execute-snapshot", data_collections=["public.new"])
            run.until(lambda: bool(run.log.offsets) and not is_over(run))
            for _ in range(3):
                run.poll(0.05)
            assert reads(log, "shop.public.new") == []
            slow.commit()
        run.until(lambda: is_over(run))
        server.run("INSERT INTO new VALUES (4)")
        run.until(lambda: any(one["key"] == {"id": 4} for one in log.records))
    assert {one["key"]["id"] for one in log.records if one["topic"] == "shop.public.new"} == {1, 2, 3, 4}


@pytest.mark.parametrize(
    ("type", "data", "said"),
    [
        ("execute-snapshot", "{", "not JSON"),
        ("execute-snapshot", "{}", "data-collections is missing"),
        ("execute-snapshot", '{"data-collections": ["public.other"]}', "no captured table"),
        ("execute-snapshot", '{"data-collections": ["public.t"], "type": "blocking"}', "blocking"),
        (
            "execute-snapshot",
            '{"data-collections": ["public.t"], '
            '"additional-conditions": [{"data-collection": "public.t", "filter": "y"}]}',
            "filter for public.t",
        ),
        (
            "execute-snapshot",
            '{"data-collections": ["public.t"], "additional-condition": "true) AND %s = 0; DROP TABLE t; --"}',
            "filter for public.t",
        ),
        ("stop-snapshot", "{}", "no incremental snapshot"),
        ("dance", "", "dance"),
    ],
)
def test_a_signal_that_cannot_be_understood_is_passed_over(
    server: PostgresServer, caplog: pytest.LogCaptureFixture, type: str, data: str, said: str
) -> None:
    with caplog.at_level(logging.WARNING), Run(config(server), Log()) as run:
        run.poll()
        with server.connect() as connection:
            connection.execute("INSERT INTO signals VALUES ('one', %s, %s)", (type, data))
        server.run("INSERT INTO t VALUES (500, 5)")
        run.until(lambda: any(one["key"] == {"id": 500} for one in run.log.records))
    assert said in caplog.text
    assert reads(run.log) == []
    assert is_over(run)
