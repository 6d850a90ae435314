"""The connector on a real MariaDB: what it gives, how it resumes, what ALTER TABLE does, what it says when it
cannot."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from ottla.connect.connectors.mysql.source import MariaDbSource
from ottla.connect.errors import ConnectError, Retriable
from ottla.connect.options import InvalidOption
from tests.clients.connect.read_source import Log, Run
from tests.interop.connect.mariadb_server import MariaDbServer
from tests.interop.connect.mariadb_types import COLUMNS, FAULTS
from tests.interop.connect.test_debezium_mariadb import create, inserts

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def shared() -> Iterator[MariaDbServer]:
    with MariaDbServer(durable=False) as server:
        yield server


@pytest.fixture
def server(shared: MariaDbServer) -> Iterator[MariaDbServer]:
    yield shared
    shared.run("SET GLOBAL binlog_row_metadata = FULL", "DROP DATABASE shop", "CREATE DATABASE shop", database="mysql")


def afters(log: Log) -> list[Any]:
    return [one["value"]["after"] for one in log.records if one["value"] is not None]


def ids(log: Log) -> list[int]:
    return [one["id"] for one in afters(log) if one is not None]


def offset(log: Log) -> dict[str, Any]:
    (found,) = log.offsets.values()
    return found


def fails(config: dict[str, str], kind: type[ConnectError] = ConnectError) -> str:
    """What a start says that must fail."""
    run = Run(config, Log())
    with pytest.raises(kind) as caught:
        run.source.start()
    run.source.stop()
    assert "secret" not in str(caught.value)
    return str(caught.value)


def stops(run: Run, kind: type[ConnectError] = ConnectError) -> str:
    """What a run says that must fail while it is polled."""

    def poll() -> None:
        deadline_s = time.monotonic() + 60
        while time.monotonic() < deadline_s:
            run.poll(0.1)

    with pytest.raises(kind) as caught:
        poll()
    run.source.stop()
    return str(caught.value)


# --- resuming ---


def test_a_huge_transaction_leaves_in_pieces_and_resumes_in_the_middle(server: MariaDbServer) -> None:
    server.run("CREATE TABLE t (id int PRIMARY KEY, pad text)")
    config = server.config(snapshot_mode="no_data")
    log = Log()
    with Run(config, log, max_bytes=20_000) as run:
        server.run("INSERT INTO t SELECT seq, repeat('x', 100) FROM seq_1_to_5000")
        largest = 0
        while len(log.records) < 2000:
            largest = max(largest, run.poll())
        assert largest < 500, "a poll had more than its bytes"
        assert offset(log)["event"] > 2
        gtids = offset(log)["gtids"]
    with Run(config, log) as run:
        run.until_count(5000)
        assert run.poll() == 0
    assert ids(log) == list(range(1, 5001))
    assert "event" not in offset(log)
    assert offset(log)["gtids"] != gtids


def test_a_poll_that_was_not_written_is_read_again(server: MariaDbServer) -> None:
    server.run("CREATE TABLE t (id int PRIMARY KEY)")
    config = server.config(snapshot_mode="no_data")
    log = Log()
    with Run(config, log) as run:
        server.run("INSERT INTO t VALUES (1)")
        run.until_count(1)
        server.run("INSERT INTO t VALUES (2)")
        deadline_s = time.monotonic() + 30
        while not run.source.poll(0.1):
            assert time.monotonic() < deadline_s
    with Run(config, log) as run:
        run.until_count(2)
    assert ids(log) == [1, 2]


def test_a_server_that_is_killed_is_resumed_without_loss(server: MariaDbServer) -> None:
    with MariaDbServer() as own:
        own.run("CREATE TABLE t (id int PRIMARY KEY)")
        config = own.config(snapshot_mode="no_data")
        log = Log()
        with Run(config, log) as run:
            own.run("INSERT INTO t VALUES (1)")
            run.until_count(1)
            own.kill()
            stops(run, Retriable)
        own.start()
        own.run("INSERT INTO t VALUES (2)")
        with Run(config, log) as run:
            run.until_count(2)
            assert run.poll() == 0
    assert ids(log) == [1, 2]


def test_an_offset_goes_on_where_only_other_tables_change(
    server: MariaDbServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.run("CREATE TABLE t (id int PRIMARY KEY)", "CREATE TABLE noise (a int)")
    log = Log()
    with Run(server.config(snapshot_mode="no_data", table_include_list="shop.t"), log) as run:
        server.run("INSERT INTO t VALUES (1)")
        run.until_count(1)
        before = offset(log)
        server.run("INSERT INTO noise VALUES (1)", "FLUSH BINARY LOGS", "INSERT INTO noise VALUES (2)")
        run.until(lambda: offset(log)["file"] != before["file"])
        monkeypatch.setattr("ottla.connect.connectors.mysql.source._OFFSET_S", 0.0)
        server.run("INSERT INTO noise VALUES (3)")
        ((gtids,),) = server.run("SELECT @@gtid_binlog_pos")
        run.until(lambda: offset(log)["gtids"] == gtids)
    assert ids(log) == [1]


# --- snapshot ---


def test_a_snapshot_resumes_in_the_middle_of_a_table(server: MariaDbServer) -> None:
    server.run(
        "CREATE TABLE a (id int PRIMARY KEY)",
        "INSERT INTO a SELECT seq FROM seq_1_to_100",
        "CREATE TABLE b (x varchar(9), y varbinary(9), id int, PRIMARY KEY (x, y, id))",
        "INSERT INTO b SELECT char(65 + seq % 3), concat(x'00ff27', seq % 2), seq FROM seq_101_to_200",
        "CREATE TABLE c (id int)",
        "INSERT INTO c VALUES (1000), (1001)",
    )
    config = server.config(ottla_snapshot_chunk_rows="30")
    log = Log()
    for wanted in (32, 62, 132, 202):
        with Run(config, log) as run:
            run.until_count(wanted)
            assert len(log.records) == wanted
    with Run(config, log) as run:
        server.run("INSERT INTO a VALUES (300)", "INSERT INTO c VALUES (1002)")
        run.until_count(204)
        assert run.poll() == 0
    assert sorted(ids(log)) == [*range(1, 201), 300, 1000, 1001, 1002]
    marks = [one["value"]["source"]["snapshot"] for one in log.records if one["value"]["op"] == "r"]
    assert (marks[0], marks[-1], len(marks)) == ("first", "last", 202)


def test_changes_before_a_chunk_is_written_win_over_it(server: MariaDbServer) -> None:
    server.run("CREATE TABLE t (id int PRIMARY KEY, a int)", "INSERT INTO t SELECT seq, 0 FROM seq_1_to_6")
    log = Log()
    run = Run(server.config(), log)
    with run:
        run.source._chunk = run.source._read_chunk()
        server.run("UPDATE t SET a = 1 WHERE id = 2", "DELETE FROM t WHERE id = 3", "UPDATE t SET id = 9 WHERE id = 4")
        # As if the chunk had been read before the changes were to be seen.
        run.source._chunk.place = run.source._server.status().place
        run.until(lambda: any(one["value"] and one["value"]["op"] == "r" for one in log.records))
        run.poll()
    reads = [one["key"]["id"] for one in log.records if one["value"] and one["value"]["op"] == "r"]
    assert reads == [1, 5, 6]
    changed = {
        (one["key"]["id"], one["value"]["op"]) for one in log.records if one["value"] and one["value"]["op"] != "r"
    }
    assert changed == {(2, "u"), (3, "d"), (4, "d"), (9, "c")}


def test_a_transaction_that_is_in_the_log_and_not_to_be_seen_yet_keeps_a_chunk_waiting(server: MariaDbServer) -> None:
    server.run("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    run = Run(server.config(), Log())
    with run:
        far = run.source._changes.position.place
        run.source._touched.begin("shop.t", (far[0], far[1] + 1_000_000))
        assert run.source._read_chunk() is None


def test_changes_of_a_table_without_a_key_come_once(server: MariaDbServer) -> None:
    """The table is read at a place behind the one at which the stream begins."""
    server.run("CREATE TABLE t (id int)", "INSERT INTO t VALUES (1)")
    log = Log()
    run = Run(server.config(), log)
    with run:
        server.run("INSERT INTO t VALUES (2)", "UPDATE t SET id = 3 WHERE id = 1")  # the stream has them, the table too
        run.until_count(2)
        server.run("INSERT INTO t VALUES (4)")
        run.until_count(3)
        assert run.poll() == 0
    assert sorted(ids(log)) == [2, 3, 4]
    assert [one["value"]["op"] for one in log.records] == ["r", "r", "c"]


def test_a_key_that_orders_and_compares_differently_is_read_whole(server: MariaDbServer) -> None:
    server.run("CREATE TABLE t (e enum('z', 'y', 'x') PRIMARY KEY)", "INSERT INTO t VALUES ('x'), ('y'), ('z')")
    log = Log()
    with Run(server.config(ottla_snapshot_chunk_rows="1"), log) as run:
        run.until_count(3)
        run.poll()
    assert sorted(one["key"]["e"] for one in log.records) == ["x", "y", "z"]


# --- types that Debezium cannot read ---


def test_a_snapshot_and_the_log_have_the_same_values(server: MariaDbServer) -> None:
    """Also those that Debezium's connector cannot read, or not exactly."""
    columns = COLUMNS | FAULTS
    server.run(create("t", columns))
    first, then = inserts("t", columns, 0, nulls=True), inserts("t", columns, 100, nulls=True)
    server.run(*first)
    log = Log()
    with Run(server.config(), log) as run:
        run.until_count(len(first))
        server.run(*then)
        run.until_count(2 * len(first))
    rows = afters(log)
    for read, changed in zip(rows[: len(first)], rows[len(first) :], strict=True):
        assert {**changed, "pk": read["pk"]} == read
    shown = {name: [row[name] for row in rows[: len(first)]] for name in FAULTS}
    assert shown["c_float"][0] == 16777216.0
    assert shown["c_uuid"][:2] == ["123e4567-e89b-12d3-a456-426655440000", "00000000-0000-0000-0000-000000000000"]
    assert shown["c_enum"][0] == "c,d"
    assert shown["c_inet6"][:3] == ["::1", "2001:db8::ff00:42:8329", "::ffff:1.2.3.4"]
    assert shown["c_inet4"][0] == "1.2.3.4"
    assert shown["c_compressed"][:3] == [b"abc" * 100, b"x", b""]
    assert shown["c_compressed_text"][:3] == ["ä" * 300, "x", ""]


def test_a_date_that_is_none_is_null_and_zero_where_it_must_be_something(server: MariaDbServer) -> None:
    server.run(
        "CREATE TABLE t (id int PRIMARY KEY, d date, dt datetime, ts timestamp NULL, rd date NOT NULL, "
        "rts timestamp NOT NULL)",
        "SET SESSION sql_mode = ''",
    )
    insert = "INSERT INTO t VALUES ({}, '0000-00-00', '2020-00-00 00:00:00', '0000-00-00', '0000-00-00', '0000-00-00')"

    def put(number: int) -> None:
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SET SESSION sql_mode = ''")
            cursor.execute(insert.format(number))

    put(1)
    log = Log()
    with Run(server.config(), log) as run:
        run.until_count(1)
        put(2)
        run.until_count(2)
    for row in afters(log):
        assert {**row, "id": 0} == {"id": 0, "d": None, "dt": None, "ts": None, "rd": 0, "rts": "1970-01-01T00:00:00Z"}


def test_compressed_events_are_read(server: MariaDbServer) -> None:
    server.run("CREATE TABLE t (id int PRIMARY KEY, pad text)", "SET GLOBAL log_bin_compress = 1")
    log = Log()
    try:
        with Run(server.config(snapshot_mode="no_data"), log) as run:
            server.run(
                "INSERT INTO t SELECT seq, repeat('x', 500) FROM seq_1_to_20", "UPDATE t SET pad = repeat('y', 600)"
            )
            run.until_count(40)
    finally:
        server.run("SET GLOBAL log_bin_compress = 0")
    assert ids(log) == [*range(1, 21), *range(1, 21)]
    assert afters(log)[-1]["pad"] == "y" * 600


# --- tables that change ---


def test_a_connector_that_is_behind_follows_every_version_of_a_table(server: MariaDbServer) -> None:
    server.run("CREATE TABLE t (id int PRIMARY KEY, a int, b text)")
    config = server.config(snapshot_mode="no_data")
    log = Log()
    with Run(config, log) as run:
        server.run("INSERT INTO t VALUES (1, 1, 'one')")
        run.until_count(1)
    server.run(
        "INSERT INTO t VALUES (2, 2, 'two')",
        "ALTER TABLE t CHANGE a b2 int, CHANGE b a text",
        "INSERT INTO t VALUES (3, 3, 'three')",
        "ALTER TABLE t DROP COLUMN b2, ADD COLUMN e enum('p', 'q'), ADD COLUMN u int unsigned FIRST",
        "INSERT INTO t VALUES (4000000000, 4, 'four', 'q')",
        "ALTER TABLE t MODIFY e enum('q', 'p')",
        "DROP TABLE t",
    )
    with Run(config, log) as run:
        run.until_count(4)
    assert afters(log) == [
        {"id": 1, "a": 1, "b": "one"},
        {"id": 2, "a": 2, "b": "two"},
        {"id": 3, "b2": 3, "a": "three"},
        {"u": 4000000000, "id": 4, "a": "four", "e": "q"},
    ]
    assert [one["key"] for one in log.records] == [{"id": 1}, {"id": 2}, {"id": 3}, {"id": 4}]


def test_without_names_in_the_log_the_catalogue_has_them_while_it_can(server: MariaDbServer) -> None:
    server.run("SET GLOBAL binlog_row_metadata = NO_LOG", "CREATE TABLE t (id int PRIMARY KEY, a int, u int unsigned)")
    log = Log()
    config = server.config(snapshot_mode="no_data")
    with Run(config, log) as run:
        server.run("INSERT INTO t VALUES (1, 1, 4000000000)")
        run.until_count(1)
        server.run("ALTER TABLE t CHANGE a b int")
        server.run("INSERT INTO t VALUES (2, 2, 5)")
        run.until_count(2)
    assert afters(log) == [{"id": 1, "a": 1, "u": 4000000000}, {"id": 2, "b": 2, "u": 5}]
    server.run("INSERT INTO t VALUES (3, 3, 6)", "ALTER TABLE t ADD COLUMN c int")
    run = Run(config, log)
    run.source.start()
    said = stops(run)
    assert "shop.t" in said
    assert "binlog_row_metadata = FULL" in said
    # With when_needed the tables are read again.
    with Run(config | {"snapshot.mode": "when_needed"}, log) as run:
        run.until_count(5)
        server.run("INSERT INTO t VALUES (4, 4, 7, 8)")
        run.until_count(6)
    assert ids(log) == [1, 2, 1, 2, 3, 4]


# --- what it says ---


def test_a_wrong_password_a_server_that_is_not_there_and_settings_that_are_wrong(server: MariaDbServer) -> None:
    config = server.config()
    said = fails(config | {"database.password": "wrong"})
    assert "refuses the user root" in said
    assert "database.password" in said
    assert "database.hostname" in fails(config | {"database.port": "1"}, Retriable)
    server.run("SET GLOBAL binlog_format = 'STATEMENT'")
    try:
        assert "binlog_format is STATEMENT and must be ROW" in fails(config)
    finally:
        server.run("SET GLOBAL binlog_format = 'ROW'")
    server.run("SET GLOBAL binlog_row_image = 'MINIMAL'")
    try:
        assert "binlog_row_image is MINIMAL and must be FULL" in fails(config)
    finally:
        server.run("SET GLOBAL binlog_row_image = 'FULL'")
    assert MariaDbSource.validate(config) == []
    assert [name for name, _ in MariaDbSource.validate(config | {"database.password": "x"})] == ["database.password"]


def test_a_user_without_rights_is_told_which(server: MariaDbServer) -> None:
    server.run("CREATE OR REPLACE USER poor@'127.0.0.1' IDENTIFIED BY 'secret'")
    said = fails(server.config(database_user="poor"))
    assert "REPLICATION SLAVE" in said
    assert "poor" in said


def test_a_session_that_logs_statements_is_refused_where_it_does(server: MariaDbServer) -> None:
    server.run("CREATE TABLE t (id int PRIMARY KEY)")
    run = Run(server.config(snapshot_mode="no_data"), Log())
    run.source.start()
    server.run("SET SESSION binlog_format = 'STATEMENT'", "INSERT INTO t VALUES (1)")
    assert "binlog_format to ROW" in stops(run)
    run.source.stop()


def test_a_server_without_a_log_and_a_purged_log_are_named(server: MariaDbServer) -> None:
    with MariaDbServer(durable=False) as own:
        own.run("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)", "CREATE TABLE noise (a int)")
        log = Log()
        config = own.config(table_include_list="shop.t")
        with Run(config, log) as run:
            run.until_count(1)
        own.run("INSERT INTO t VALUES (2)", "FLUSH BINARY LOGS", "INSERT INTO t VALUES (3)", "FLUSH BINARY LOGS")
        ((last, *_),) = own.run("SHOW MASTER STATUS")
        deadline_s = time.monotonic() + 60
        while len(own.run("SHOW BINARY LOGS")) > 1:  # the server may still read the old one for the run before
            assert time.monotonic() < deadline_s
            own.run("INSERT INTO noise VALUES (1)", f"PURGE BINARY LOGS TO '{last}'")
            time.sleep(0.1)
        run = Run(config, log)
        run.source.start()
        said = stops(run)
        assert "does not have the binary log any more" in said
        assert "when_needed" in said
        with Run(config | {"snapshot.mode": "when_needed"}, log) as run:
            run.until_count(4)
        assert ids(log) == [1, 1, 2, 3]
        own.stop()
        own.start(log_bin=None, binlog_format=None, binlog_row_image=None, binlog_row_metadata=None)
        assert "log_bin is OFF" in fails(own.config())


def test_an_option_that_is_not_here_is_refused_by_name(server: MariaDbServer) -> None:
    for name, value in (
        ("signal.data.collection", "x"),
        ("include.schema.changes", "true"),
        ("gtid.source.includes", "x"),
    ):
        with pytest.raises(InvalidOption, match=name.replace(".", r"\.")):
            Run(server.config() | {name: value}, Log())
