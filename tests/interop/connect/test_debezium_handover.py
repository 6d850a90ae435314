"""A connector of Debezium's is taken over with its slot and offset, and given back: each change once."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.clients.connect.postgres_server import PostgresServer
from tests.clients.connect.read_source import Log, Run
from tests.interop.connect.debezium import Debezium, unpacked

pytestmark = pytest.mark.interop

PARTITION = json.dumps({"server": "shop"})


def numbers(records: list[dict[str, Any]]) -> list[int]:
    """What Debezium's records have."""
    return [unpacked(one["value"])["payload"]["after"]["id"] for one in records]


def insert(server: PostgresServer, first: int, count: int, each: int) -> list[int]:
    """So many rows, `each` in a transaction; those of one statement have LSNs of their own."""
    for start in range(first, first + count, each):
        rows = ", ".join(f"({number})" for number in range(start, start + each))
        server.run(f"INSERT INTO t VALUES {rows}")
    return list(range(first, first + count))


def test_debezium_to_ours_and_back(tmp_path: Path) -> None:
    with PostgresServer(durable=False) as server:
        server.run("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (0), (1)")
        config = server.config()
        with Debezium(tmp_path / "first", config) as debezium:
            debezium.wait_for(2)
            there = insert(server, 2, 30, 3)
            records = debezium.wait_for(32)
        assert sorted(numbers(records)) == [0, 1, *there]

        # Debezium stops in the middle of a transaction, as far as its offset knows: after the 31st of 32 records.
        last = records[30]["offset"]
        log = Log()
        log.offsets[PARTITION] = last
        more = insert(server, 32, 10, 5)
        with Run(config, log) as run:
            run.until_count(11)
            run.poll()
            assert [one["value"]["after"]["id"] for one in log.records] == [31, *more]

        behind = insert(server, 42, 10, 2)
        with Debezium(tmp_path / "second", config, offset=log.offsets[PARTITION]) as debezium:
            records = debezium.wait_for(10)
            server.run("INSERT INTO t VALUES (100)")
            records = debezium.wait_for(11)
        assert numbers(records) == [*behind, 100]


def test_an_offset_in_the_middle_of_our_transaction_is_understood_by_debezium(tmp_path: Path) -> None:
    with PostgresServer(durable=False) as server:
        server.run("CREATE TABLE t (id int PRIMARY KEY)")
        config = server.config(snapshot_mode="no_data")
        log = Log()
        with Run(config, log, max_bytes=1) as run:
            insert(server, 0, 6, 6)
            run.until_count(4)  # a record a poll
        assert log.offsets[PARTITION]["ottla_changes"] == 4
        with Debezium(tmp_path, config, offset=log.offsets[PARTITION]) as debezium:
            assert numbers(debezium.wait_for(2)) == [4, 5]


def test_a_snapshot_that_debezium_did_not_finish_is_taken_anew(tmp_path: Path) -> None:
    with PostgresServer(durable=False) as server:
        server.run("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (0), (1)")
        with Debezium(tmp_path, server.config()) as debezium:
            records = debezium.wait_for(2)
        log = Log()
        log.offsets[PARTITION] = records[0]["offset"]
        assert records[0]["offset"]["snapshot_completed"] is False
        with Run(server.config(), log) as run:
            run.until_count(2)
        assert [(one["value"]["op"], one["value"]["after"]["id"]) for one in log.records] == [("r", 0), ("r", 1)]
