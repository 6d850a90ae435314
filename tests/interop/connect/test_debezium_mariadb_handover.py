"""From Debezium's connector for MariaDB to ours and back, by the offsets, with nothing lost or repeated."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.clients.connect.read_source import Log, Run
from tests.interop.connect.debezium import Debezium, unpacked
from tests.interop.connect.mariadb_server import MariaDbServer
from tests.interop.connect.test_debezium_mariadb import with_history

pytestmark = pytest.mark.interop

PARTITION = json.dumps({"server": "shop"})


def numbers(records: list[dict[str, Any]]) -> list[int]:
    """What Debezium's records have."""
    return [unpacked(one["value"])["payload"]["after"]["id"] for one in records]


def insert(server: MariaDbServer, first: int, count: int, each: int) -> list[int]:
    """So many rows, `each` in a transaction."""
    for start in range(first, first + count, each):
        rows = ", ".join(f"({number})" for number in range(start, start + each))
        server.run(f"INSERT INTO t VALUES {rows}")
    return list(range(first, first + count))


def test_debezium_to_ours_and_back(tmp_path: Path) -> None:
    with MariaDbServer(durable=False) as server:
        server.run("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (0), (1)")
        config = with_history(server.config(), tmp_path)
        with Debezium(tmp_path / "first", config) as debezium:
            debezium.wait_for(2)
            there = insert(server, 2, 30, 3)
            records = debezium.wait_for(32)
        assert sorted(numbers(records)) == [0, 1, *there]

        # Debezium stops in the middle of an event, as far as its offset knows: after the 31st of 32 records.
        last = records[30]["offset"]
        assert (last["event"], last["row"]) == (2, 2)
        log = Log()
        log.offsets[PARTITION] = last
        more = insert(server, 32, 10, 5)
        with Run(config, log) as run:
            run.until_count(11)
            run.poll()
            assert [one["value"]["after"]["id"] for one in log.records] == [31, *more]

        behind = insert(server, 42, 10, 2)
        with Debezium(tmp_path / "second", config, offset=log.offsets[PARTITION]) as debezium:
            debezium.wait_for(10)
            server.run("INSERT INTO t VALUES (100)")
            records = debezium.wait_for(11)
        assert numbers(records) == [*behind, 100]


def test_an_offset_in_the_middle_of_our_transaction_is_understood_by_debezium(tmp_path: Path) -> None:
    with MariaDbServer(durable=False) as server:
        server.run("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (0)")
        config = with_history(server.config(), tmp_path)
        with Debezium(tmp_path / "first", config) as debezium:  # it needs its history of schemas, to begin with
            first = debezium.wait_for(1)[0]["offset"]
        log = Log()
        log.offsets[PARTITION] = first
        with Run(config, log, max_bytes=1) as run:
            server.run("BEGIN", *(f"INSERT INTO t VALUES ({number})" for number in range(1, 7)), "COMMIT")
            run.until_count(4)  # an event a poll
        assert log.offsets[PARTITION]["event"] == 9  # GTID, and four times TABLE_MAP and WRITE_ROWS
        with Debezium(tmp_path / "second", config, offset=log.offsets[PARTITION]) as debezium:
            assert numbers(debezium.wait_for(2)) == [5, 6]


def test_a_snapshot_that_debezium_did_not_finish_is_taken_anew(tmp_path: Path) -> None:
    with MariaDbServer(durable=False) as server:
        server.run("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (0), (1)")
        with Debezium(tmp_path, with_history(server.config(), tmp_path)) as debezium:
            records = debezium.wait_for(2)
        log = Log()
        log.offsets[PARTITION] = records[0]["offset"]
        assert records[0]["offset"]["snapshot"] == "INITIAL"
        with Run(server.config(), log) as run:
            run.until_count(2)
        assert [(one["value"]["op"], one["value"]["after"]["id"]) for one in log.records] == [("r", 0), ("r", 1)]
