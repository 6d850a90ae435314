"""The connector on a real PostgreSQL: what it gives and confirms, how it resumes, and what it says when it cannot."""

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from ottla.connect.connectors.postgres import chunks
from ottla.connect.connectors.postgres.offsets import lsn_of
from ottla.connect.connectors.postgres.source import PostgresSource
from ottla.connect.errors import ConnectError, Retriable
from ottla.connect.options import InvalidOption
from tests.clients.connect.postgres_server import PostgresServer
from tests.clients.connect.read_source import Log, Run


@pytest.fixture(scope="module")
def shared() -> Iterator[PostgresServer]:
    with PostgresServer(durable=False) as server:
        yield server


@pytest.fixture
def server(shared: PostgresServer) -> Iterator[PostgresServer]:
    """The server with an empty database and no slot."""
    yield shared
    shared.run(
        "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active_pid IS NOT NULL",
        "SELECT pg_sleep(0.1)",
        "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots",
        "DROP PUBLICATION IF EXISTS dbz_publication",
        "DROP SCHEMA public CASCADE",
        "CREATE SCHEMA public",
    )


def after(log: Log) -> list[Any]:
    return [one["value"]["after"] for one in log.records if one["value"] is not None]


def ids(log: Log) -> list[int]:
    return [one["id"] for one in after(log) if one is not None]


def confirmed(server: PostgresServer) -> int:
    ((lsn,),) = server.run("SELECT confirmed_flush_lsn::text FROM pg_replication_slots")
    return lsn_of(lsn)


def fails(config: dict[str, str], kind: type[ConnectError] = ConnectError) -> str:
    """What a start says that must fail."""
    run = Run(config, Log())
    with pytest.raises(kind) as caught:
        run.source.start()
    run.source.stop()
    assert type(caught.value) is kind, caught.value
    return str(caught.value)


# --- what is confirmed ---


def test_the_slot_is_confirmed_up_to_what_was_committed_and_no_further(server: PostgresServer) -> None:
    server.run("CREATE TABLE t (id int PRIMARY KEY)")
    log = Log()
    with Run(server.config(snapshot_mode="no_data", status_update_interval_ms="50"), log) as run:
        server.run("INSERT INTO t VALUES (1)")
        deadline_s = time.monotonic() + 30
        while not log.records:
            assert time.monotonic() < deadline_s
            run.poll(say=False)
        written = next(iter(log.offsets.values()))["lsn_commit"]
        server.run("INSERT INTO t VALUES (2)", "CHECKPOINT")
        for _ in range(5):
            run.source.poll(0.1)  # read, but not written
        assert confirmed(server) < written, "the slot moved on before anything was committed"
        run.source.committed(run.unsaid)
        deadline_s = time.monotonic() + 30
        while confirmed(server) != written:
            assert time.monotonic() < deadline_s
            time.sleep(0.05)
        for _ in range(5):
            run.source.poll(0.1)
        assert confirmed(server) == written, "what was polled and not committed was confirmed"


def test_a_quiet_database_does_not_keep_its_wal(server: PostgresServer) -> None:
    server.run("CREATE TABLE t (id int PRIMARY KEY)", "CREATE TABLE noise (a text)")
    config = server.config(snapshot_mode="no_data", table_include_list="public.t", status_update_interval_ms="50")
    with Run(config, Log()) as run:
        for _ in range(3):
            server.run("INSERT INTO noise SELECT repeat('x', 1000) FROM generate_series(1, 1000)")
            ((lsn,),) = server.run("SELECT pg_current_wal_lsn()::text")
            deadline_s = time.monotonic() + 30
            while confirmed(server) < lsn_of(lsn):
                assert time.monotonic() < deadline_s, "the slot does not move on"
                assert run.poll(0.1) == 0


@pytest.mark.parametrize("mode", ["initial", "initial_only", "no_data"])
def test_it_says_when_all_that_was_there_at_its_start_is_handed_out(server: PostgresServer, mode: str) -> None:
    server.run("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t SELECT generate_series(1, 10)")
    log = Log()
    config = server.config(snapshot_mode=mode)
    with Run(config, log) as run:
        assert mode == "no_data" or not run.source.is_at_end()
        run.until(run.source.is_at_end)
        assert len(log.records) == (0 if mode == "no_data" else 10)
        assert mode == "initial_only" or run.source.metrics()["wal_retained_bytes"] >= 0
    if mode == "initial_only":
        return
    server.run("INSERT INTO t SELECT generate_series(11, 5000)")
    before = len(log.records)
    with Run(config, log) as run:
        run.until(run.source.is_at_end)
        assert len(log.records) - before == 4990


def test_a_database_whose_changes_are_elsewhere_is_not_cut_off(server: PostgresServer) -> None:
    """The server ends a connection that does not answer it for 5 seconds; it asks after half of that."""
    server.run("CREATE TABLE t (id int PRIMARY KEY)", "ALTER ROLE postgres SET wal_sender_timeout = '5s'")
    log = Log()
    try:
        with Run(server.config(snapshot_mode="no_data"), log) as run:
            end_s = time.monotonic() + 8
            while time.monotonic() < end_s:
                run.poll(0.2)
            server.run("INSERT INTO t VALUES (1)")
            run.until_count(1)
    finally:
        server.run("ALTER ROLE postgres RESET wal_sender_timeout")


# --- resuming ---


def test_a_huge_transaction_leaves_in_pieces_and_resumes_in_the_middle(server: PostgresServer) -> None:
    server.run("CREATE TABLE t (id int PRIMARY KEY, pad text)")
    config = server.config(snapshot_mode="no_data")
    log = Log()
    with Run(config, log, max_bytes=20_000) as run:
        server.run("INSERT INTO t SELECT i, repeat('x', 100) FROM generate_series(1, 5000) i")
        largest = 0
        while len(log.records) < 2000:
            largest = max(largest, run.poll())
        assert largest < 500, "a poll had more than its bytes"
        assert next(iter(log.offsets.values()))["ottla_changes"] == len(log.records)
    with Run(config, log) as run:
        run.until_count(5000)
        assert run.poll() == 0
    assert ids(log) == list(range(1, 5001))


def test_rows_of_one_copy_have_one_lsn_and_are_resumed_by_their_number(server: PostgresServer) -> None:
    server.run("CREATE TABLE t (id int PRIMARY KEY)")
    config = server.config(snapshot_mode="no_data")
    log = Log()
    with Run(config, log, max_bytes=1) as run:
        with server.connect() as connection, connection.cursor().copy("COPY t FROM STDIN") as copy:
            for number in range(10):
                copy.write_row((number,))
        run.until_count(4)
        assert len({one["value"]["source"]["lsn"] for one in log.records}) == 1
    with Run(config, log) as run:
        run.until_count(10)
        assert run.poll() == 0
    assert ids(log) == list(range(10))


def test_a_snapshot_resumes_in_the_middle_of_a_table(server: PostgresServer) -> None:
    server.run(
        "CREATE TABLE a (id int PRIMARY KEY)",
        "INSERT INTO a SELECT generate_series(1, 100)",
        "CREATE TABLE b (x text, id int, PRIMARY KEY (x, id))",
        "INSERT INTO b SELECT chr(65 + i % 3), i FROM generate_series(101, 200) i",
    )
    config = server.config(ottla_snapshot_chunk_rows="30")
    log = Log()
    for wanted in (30, 60, 130, 200):
        with Run(config, log) as run:
            run.until_count(wanted)
            assert len(log.records) == wanted
    with Run(config, log) as run:
        server.run("INSERT INTO a VALUES (300)")
        run.until_count(201)
    assert sorted(ids(log)) == [*range(1, 201), 300]
    assert [one["value"]["source"]["snapshot"] for one in log.records if one["value"]["op"] == "r"][::199] == [
        "first",
        "last",
    ]


def test_chunks_of_large_rows_are_small(server: PostgresServer) -> None:
    server.run(
        "CREATE TABLE t (id int PRIMARY KEY, pad text)",
        "INSERT INTO t SELECT i, repeat('x', 1000) FROM generate_series(1, 6000) i",
    )
    log = Log()
    with Run(server.config(), log, max_bytes=500_000) as run:
        counts = []
        while len(log.records) < 6000:
            counts.append(run.poll())
    assert max(counts[1:]) < 600, "a chunk has more than the bytes of a poll"
    assert ids(log) == list(range(1, 6001))


def test_changes_between_the_watermarks_win_over_the_chunk(server: PostgresServer) -> None:
    server.run("CREATE TABLE t (id int PRIMARY KEY, a int)", "INSERT INTO t SELECT i, 0 FROM generate_series(1, 6) i")
    log = Log()
    run = Run(server.config(), log)
    with run:
        (chunk,) = run.source._read_chunks()
        server.run("UPDATE t SET a = 1 WHERE id = 2", "DELETE FROM t WHERE id = 3", "UPDATE t SET id = 9 WHERE id = 4")
        # As if the chunk had been read slowly: its high watermark is behind the changes.
        ((lsn,),) = server.run("SELECT pg_current_wal_insert_lsn()::text")
        run.source._chunks.append(replace(chunk, high_lsn=chunks.watermark(lsn_of(lsn))))
        run.until(lambda: run.source._changes.position.snapshot is None)
    read = [one["value"]["after"]["id"] for one in log.records if one["value"] and one["value"]["op"] == "r"]
    assert read == [1, 5, 6]
    state: dict[int, Any] = {}
    for one in log.records:
        key = one["key"]["id"]
        state[key] = one["value"] and one["value"]["after"] and one["value"]["after"]["a"]
    assert {key: value for key, value in state.items() if value is not None} == {1: 0, 2: 1, 5: 0, 6: 0, 9: 0}


def test_a_table_without_a_key_has_each_row_once(server: PostgresServer) -> None:
    server.run("CREATE TABLE t (id int)", "INSERT INTO t VALUES (1), (2), (NULL)")
    log = Log()
    config = server.config()
    run = Run(config, log)
    run.source.start()
    server.run("INSERT INTO t VALUES (3)")  # after the slot was made, before the table is read
    run.until_count(4)
    server.run("INSERT INTO t VALUES (4)")
    run.until_count(5)
    run.source.stop()
    with Run(config, log) as run:
        server.run("INSERT INTO t VALUES (5)")
        run.until_count(6)
        assert run.poll() == 0
    assert sorted(one["id"] or 0 for one in after(log)) == [0, 1, 2, 3, 4, 5]
    assert {one["key"] for one in log.records} == {None}


def test_only_a_snapshot_leaves_no_slot(server: PostgresServer) -> None:
    server.run("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    log = Log()
    for _ in range(2):
        with Run(server.config(snapshot_mode="initial_only"), log) as run:
            run.until_count(1)
            server.run("INSERT INTO t VALUES (2) ON CONFLICT DO NOTHING")
            assert run.poll() == 0
        assert server.run("SELECT count(*) FROM pg_replication_slots") == [(0,)]
    assert ids(log) == [1]


# --- tables that change ---


def test_columns_that_come_and_go_are_in_the_records_from_then_on(server: PostgresServer) -> None:
    server.run("CREATE TABLE t (id int PRIMARY KEY, a text)")
    log = Log()
    with Run(server.config(snapshot_mode="no_data"), log) as run:
        server.run("INSERT INTO t VALUES (1, 'x')")
        run.until_count(1)
        server.run(
            "ALTER TABLE t ADD COLUMN b int",
            "INSERT INTO t VALUES (2, 'y', 7)",
            "ALTER TABLE t DROP COLUMN a",
            "INSERT INTO t VALUES (3, 8)",
            "CREATE TYPE colour AS ENUM ('red', 'blue')",
            "ALTER TABLE t ADD COLUMN c colour",
            "INSERT INTO t VALUES (4, 9, 'blue')",
        )
        run.until_count(4)
    assert after(log) == [
        {"id": 1, "a": "x"},
        {"id": 2, "a": "y", "b": 7},
        {"id": 3, "b": 8},
        {"id": 4, "b": 9, "c": "blue"},
    ]


def test_a_deleted_key_that_comes_again_is_behind_its_tombstone(server: PostgresServer) -> None:
    server.run("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)")
    log = Log()
    with Run(server.config(snapshot_mode="no_data"), log) as run:
        server.run("BEGIN; DELETE FROM t; INSERT INTO t VALUES (1); DELETE FROM t; INSERT INTO t VALUES (1); COMMIT")
        run.until_count(8)
    seen = [one["value"] and one["value"]["op"] for one in log.records if one["key"]["id"] == 1]
    assert seen == ["d", None, "c", "d", None, "c"]


def test_generated_columns_are_left_out_alike_in_snapshot_and_changes(server: PostgresServer) -> None:
    server.run(
        "CREATE TABLE t (id int PRIMARY KEY, b int GENERATED ALWAYS AS (id * 2) STORED)", "INSERT INTO t VALUES (1)"
    )
    log = Log()
    with Run(server.config(), log) as run:
        run.until_count(1)
        server.run("INSERT INTO t VALUES (2)")
        run.until_count(2)
    assert after(log) == [{"id": 1}, {"id": 2}]


# --- what it says when it cannot ---


def test_a_wrong_password_names_the_setting(server: PostgresServer) -> None:
    config = server.config() | {"database.password": "sesame"}
    said = fails(config)
    assert "database.password" in said
    assert "sesame" not in said
    ((setting, problem),) = PostgresSource.validate(config)
    assert setting == "database.password"
    assert "sesame" not in problem


def test_a_database_that_is_not_there_is_named(server: PostgresServer) -> None:
    assert "database.dbname" in fails(server.config() | {"database.dbname": "nowhere"})


def test_a_server_that_does_not_run_is_tried_again() -> None:
    with PostgresServer(durable=False) as server:
        config = server.config()
    assert "database.hostname" in fails(config, Retriable)
    assert PostgresSource.validate(config)[0][0] == "database.hostname"


def test_a_wal_level_that_is_too_low_says_how_to_raise_it() -> None:
    with PostgresServer(durable=False, settings={"wal_level": "replica"}) as server:
        assert "ALTER SYSTEM SET wal_level = 'logical'" in fails(server.config())


def test_a_slot_in_use_is_waited_for(server: PostgresServer) -> None:
    with Run(server.config(), Log()):
        said = fails(server.config(), Retriable)
    assert "slot.name" in said
    assert "in use" in said


def test_a_slot_that_was_lost_fails_unless_a_snapshot_is_allowed(server: PostgresServer) -> None:
    server.run("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    log = Log()
    with Run(server.config(), log) as run:
        run.until_count(1)
    while server.run("SELECT active FROM pg_replication_slots") != [(False,)]:
        time.sleep(0.05)
    server.run("SELECT pg_drop_replication_slot('debezium')", "INSERT INTO t VALUES (2)")
    run = Run(server.config(), log)
    with pytest.raises(ConnectError, match=r"lost.*when_needed"):
        run.source.start()
    run.source.stop()
    with Run(server.config(snapshot_mode="when_needed"), log) as run:
        run.until_count(3)
    assert ids(log) == [1, 1, 2]


def test_a_slot_beyond_its_wal_goes_before_the_disk_is_full(server: PostgresServer) -> None:
    server.run("CREATE TABLE t (id int PRIMARY KEY, pad text)")
    log = Log()
    config = server.config(snapshot_mode="no_data", ottla_wal_retained_max_bytes="1000000")
    with Run(config, log):
        pass
    server.run("INSERT INTO t SELECT i, repeat('x', 1000) FROM generate_series(1, 5000) i")
    assert "ottla.wal.retained.max.bytes" in fails(config)
    assert server.run("SELECT count(*) FROM pg_replication_slots") == [(0,)]


def test_a_delete_whose_identity_lacks_the_key_is_refused_with_the_remedy(server: PostgresServer) -> None:
    server.run(
        "CREATE TABLE t (id int PRIMARY KEY, a int NOT NULL UNIQUE)",
        "ALTER TABLE t REPLICA IDENTITY USING INDEX t_a_key",
        "INSERT INTO t VALUES (1, 2)",
    )
    with Run(server.config(snapshot_mode="no_data"), Log()) as run:
        server.run("DELETE FROM t")
        with pytest.raises(ConnectError, match=r"REPLICA IDENTITY DEFAULT.*message\.key\.columns"):
            run.until_count(1)


def test_a_number_that_a_decimal_cannot_be_names_the_column_and_the_setting(server: PostgresServer) -> None:
    server.run("CREATE TABLE t (id int PRIMARY KEY, n numeric, r numeric NOT NULL)")
    log = Log()
    with Run(server.config(snapshot_mode="no_data"), log) as run:
        server.run("INSERT INTO t VALUES (1, 'NaN', 1)")
        run.until_count(1)
        assert after(log)[0]["n"] is None
        server.run("INSERT INTO t VALUES (2, 1, 'Infinity')")
        with pytest.raises(ConnectError, match=r"column r of public\.t .*decimal\.handling\.mode"):
            run.until_count(2)
    with Run(server.config(snapshot_mode="no_data", decimal_handling_mode="string"), log) as run:
        run.until_count(2)
    assert after(log)[1]["r"] == "Infinity"


def test_a_publication_that_must_be_there_is_asked_for(server: PostgresServer) -> None:
    assert "CREATE PUBLICATION" in fails(server.config(publication_autocreate_mode="disabled"))


def test_a_user_without_the_right_to_replicate_is_told_how_to_get_it(server: PostgresServer) -> None:
    server.run("CREATE PUBLICATION dbz_publication FOR ALL TABLES", "CREATE ROLE weak LOGIN PASSWORD 'secret'")
    try:
        assert "ALTER ROLE weak REPLICATION" in fails(server.config() | {"database.user": "weak"})
    finally:
        server.run("DROP ROLE weak")


def test_a_filtered_publication_has_the_captured_tables(server: PostgresServer) -> None:
    server.run("CREATE TABLE a (id int PRIMARY KEY)", "CREATE TABLE b (id int PRIMARY KEY)")
    config = server.config(
        snapshot_mode="no_data", publication_autocreate_mode="filtered", table_include_list="public.a"
    )
    with Run(config, Log()):
        assert server.run("SELECT tablename FROM pg_publication_tables") == [("a",)]
    with Run(config | {"table.include.list": "public.a,public.b"}, Log()):
        assert server.run("SELECT tablename FROM pg_publication_tables ORDER BY 1") == [("a",), ("b",)]


def test_a_connection_that_breaks_is_retriable(server: PostgresServer) -> None:
    with Run(server.config(snapshot_mode="no_data"), Log()) as run:
        run.poll(0.1)
        server.run("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots")
        with pytest.raises(Retriable):
            run.until(lambda: False, 10)


def test_options_that_are_not_here_are_refused_by_name() -> None:
    with pytest.raises(InvalidOption, match=r"column\.mask\.with\.3\.chars"):
        Run({"name": "shop", "connector.class": "PostgresConnector", "column.mask.with.3.chars": "x"}, Log())


def test_heartbeats_are_written_and_move_the_offset(server: PostgresServer) -> None:
    server.run("CREATE TABLE t (id int PRIMARY KEY)")
    log = Log()
    with Run(server.config(snapshot_mode="no_data", heartbeat_interval_ms="50"), log) as run:
        run.until_count(2)
    assert {one["topic"] for one in log.records} == {"__debezium-heartbeat.shop"}
    assert log.records[0]["key"] == {"serverName": "shop"}


def test_the_server_of_these_tests_refuses_a_wrong_password(server: PostgresServer) -> None:
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(server.conninfo().replace("secret", "wrong"))
