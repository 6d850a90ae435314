"""Random transactions over accounts, while the database and the reader are killed: each change once, in commit order.

The database is killed with SIGKILL; the reader, once at points in its own code, and once as a process with SIGKILL. A
second slot, which only the test reads, is the witness of the order of commits.

Every account has a version, which each change of it counts up; the sum of all balances never changes. So the records
tell by themselves: the versions of an account follow each other without a gap or a repeat, after each transaction the
sum is what it was, and at the end the balances are those of the database.
"""

import json
import random
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import psycopg
import pytest

from ottla.connect.connectors.postgres import pgoutput
from ottla.connect.errors import Retriable
from tests.clients.connect.postgres_server import PostgresServer
from tests.clients.connect.read_source import Log, Run
from tests.clients.connect.reader_process import committed

ACCOUNTS = 400
EACH = 1000
TRANSACTIONS = 250
KILLS = 8


class Bank(threading.Thread):
    """Writes transactions from a seed until it is told to stop; a database that is gone is waited for."""

    def __init__(self, server: PostgresServer, seed: int) -> None:
        super().__init__(daemon=True)
        self.server = server
        self.random = random.Random(seed)
        self.done = 0
        self.ends = threading.Event()

    def run(self) -> None:
        while not self.ends.is_set():
            try:
                with self.server.connect(autocommit=False) as connection:
                    while not self.ends.is_set():
                        self._transaction(connection)
                        self.done += 1
                        time.sleep(self.random.random() / 100)
            except psycopg.Error:
                time.sleep(0.05)

    def _transaction(self, connection: psycopg.Connection[Any]) -> None:
        random = self.random
        run = connection.execute
        ids = [row[0] for row in run("SELECT id FROM account ORDER BY random() LIMIT 40 FOR UPDATE")]
        for _ in range(random.choice([1, 1, 2, 5, 30])):
            kind = random.randrange(12)
            one, other = random.sample(ids, 2)
            amount = random.randrange(-50, 50)
            if kind < 7:
                change = "UPDATE account SET balance = balance + %s, version = version + 1 WHERE id = %s"
                run(change, (amount, one))
                run(change, (-amount, other))
            elif kind == 7:  # several rows with one LSN
                with connection.cursor().copy("COPY account (balance, version, note) FROM STDIN") as copy:
                    for number in range(random.randrange(2, 20)):
                        copy.write_row((number, 1, "copied"))
                copied = "(SELECT coalesce(sum(balance), 0) FROM account WHERE note = 'copied')"
                run(f"UPDATE account SET balance = balance - {copied}, version = version + 1 WHERE id = %s", (one,))
                run("UPDATE account SET note = 'counted', version = version + 1 WHERE note = 'copied'")
            elif kind == 8 and len(ids) > 30:
                (balance,) = run("DELETE FROM account WHERE id = %s RETURNING balance", (one,)).fetchone() or (None,)
                ids.remove(one)
                run("UPDATE account SET balance = balance + %s, version = version + 1 WHERE id = %s", (balance, other))
            elif kind == 9:  # another key: a delete and an insert, for the reader
                run("UPDATE account SET id = nextval('account_id_seq'), version = 1 WHERE id = %s RETURNING id", (one,))
                ids.remove(one)
            elif kind == 10:
                run("SAVEPOINT here")
                run("UPDATE account SET balance = balance + 7, version = version + 1 WHERE id = %s", (one,))
                run("ROLLBACK TO here")
            else:
                run("UPDATE account SET note = repeat('x', 30), version = version + 1 WHERE id = %s", (one,))
        if random.random() < 0.1:
            connection.rollback()
        else:
            connection.commit()


def hold(records: list[dict[str, Any]], total: int) -> dict[int, tuple[int, int]]:
    """Walks the records as a consumer would, and gives the balances and versions at their end."""
    state: dict[int, tuple[int, int]] = {}
    ended: set[int] = set()
    is_whole, xid = False, None
    for record in records:
        if record["topic"] != "shop.public.account":
            continue
        key, value = record["key"]["id"], record["value"]
        if value is None:
            assert key in ended, f"a tombstone of {key} comes before its delete, or after a newer record"
            continue
        source = value["source"]
        if is_whole and source["txId"] != xid:
            assert sum(balance for balance, _ in state.values()) == total, f"half of transaction {xid} is there"
        xid = source["txId"]
        if value["op"] == "r":
            assert key not in ended, f"account {key} is read by the snapshot after its delete"
            read = value["after"]["balance"], value["after"]["version"]
            assert state.get(key, read) == read, f"the snapshot has an older account {key} than a change before it"
            state[key] = read
            is_whole = source["snapshot"] == "last"
            continue
        assert value["op"] in "cud"
        if value["op"] == "d":
            # Its account may be behind the chunks that are read yet.
            state.pop(key, None)
            ended.add(key)
            continue
        balance, version = value["after"]["balance"], value["after"]["version"]
        assert key not in ended, f"a change of account {key} comes after its delete"
        if value["op"] == "c":
            assert key not in state, f"account {key} is created twice"
            assert version == 1
        elif key in state:
            assert version == state[key][1] + 1, f"account {key} goes from version {state[key][1]} to {version}"
        state[key] = balance, version
    return state


PREPARE = (
    "CREATE TABLE account (id bigserial PRIMARY KEY, balance bigint NOT NULL, version int NOT NULL, note text)",
    f"INSERT INTO account (balance, version) SELECT {EACH}, 1 FROM generate_series(1, {ACCOUNTS})",
    "CREATE PUBLICATION dbz_publication FOR ALL TABLES",
    "SELECT pg_create_logical_replication_slot('witness', 'pgoutput')",
)


def hold_commit_order(server: PostgresServer, records: list[dict[str, Any]]) -> None:
    """Transactions are in the topic one behind the other, in the order in which they were committed, and none is left
    out."""
    messages = server.run(
        "SELECT data FROM pg_logical_slot_peek_binary_changes('witness', NULL, NULL, 'proto_version', '1', "
        "'publication_names', 'dbz_publication')"
    )
    expected: list[int] = []
    begun = 0
    for (message,) in messages:
        if message[0] == pgoutput.BEGIN:
            begun = pgoutput.begin_of(bytes(message)).xid
        elif message[0] in (pgoutput.INSERT, pgoutput.UPDATE, pgoutput.DELETE) and expected[-1:] != [begun]:
            expected.append(begun)
    found: list[int] = []
    for one in records:
        if one["topic"] == "shop.public.account" and one["value"] and one["value"]["op"] != "r":
            xid = one["value"]["source"]["txId"]
            if found[-1:] != [xid]:
                found.append(xid)
    assert len(found) > 20
    # The connector's slot was made a little after the witness's.
    assert found == expected[expected.index(found[0]) :]


@pytest.mark.slow
def test_each_change_is_there_once_in_commit_order_while_both_processes_are_killed(tmp_path: Path) -> None:
    chance = random.Random(7)
    log, config = tmp_path / "log", tmp_path / "config"
    log.touch()
    with PostgresServer(16) as server:
        server.run(*PREPARE)
        more = {"ottla_snapshot_chunk_rows": "37", "snapshot_max_threads": "3", "provide_transaction_metadata": "true"}
        config.write_text(json.dumps(server.config(**more)))

        def reader() -> "subprocess.Popen[bytes]":
            arguments = [str(config), str(log), chance.choice(["500", "5000", "1000000"])]
            return subprocess.Popen([sys.executable, "-m", "tests.clients.connect.reader_process", *arguments])

        bank, process = Bank(server, 7), reader()
        bank.start()
        try:
            for _ in range(4):
                grown(log, log.stat().st_size + chance.randrange(1, 60_000))
                if chance.random() < 0.5:
                    server.kill()
                    server.start()
                process.kill()
                process.wait()
                process = reader()
            grown(log, log.stat().st_size + 1)
            bank.ends.set()
            bank.join(30)
            end = {row[0]: row[1:] for row in server.run("SELECT id, balance, version FROM account")}
            ((lsn,),) = server.run("SELECT pg_logical_emit_message(true, 'end', '')::text")
            deadline_s = time.monotonic() + 120
            while not any(one["topic"] == "shop.message" for one in committed(log)[0]):
                assert time.monotonic() < deadline_s
                time.sleep(0.2)
        finally:
            bank.ends.set()
            bank.join(30)
            process.kill()
            process.wait()
        records, _ = committed(log)
        assert hold(records, ACCOUNTS * EACH) == end, f"at LSN {lsn}"
        hold_commit_order(server, records)
        hold_counts(records)


def grown(log: Path, size: int) -> None:
    deadline_s = time.monotonic() + 120
    while log.stat().st_size < size:
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


def hold_counts(records: list[dict[str, Any]]) -> None:
    """Each transaction begins and ends once, and its changes are numbered without a gap."""
    marks = [one["value"] for one in records if one["topic"] == "shop.transaction"]
    for status in ("BEGIN", "END"):
        xids = [one["id"].partition(":")[0] for one in marks if one["status"] == status]
        assert len(xids) == len(set(xids))
    ends = {one["id"].partition(":")[0]: one["event_count"] for one in marks if one["status"] == "END"}
    orders: dict[str, list[int]] = {}
    for one in records:
        if one["topic"] == "shop.public.account" and one["value"] and one["value"]["op"] != "r":
            block = one["value"]["transaction"]
            orders.setdefault(block["id"].partition(":")[0], []).append(block["total_order"])
    assert len(orders) > 20
    for xid, found in orders.items():
        assert sorted(found) == [*range(1, ends[xid] + 1)], xid


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_each_change_is_there_once_in_commit_order_while_database_and_reader_are_killed(seed: int) -> None:
    chance = random.Random(seed * 1000)
    with PostgresServer(random.Random(seed).choice([16, 18])) as server:
        server.run(*PREPARE)
        config = server.config(ottla_snapshot_chunk_rows="37", snapshot_max_threads=str(seed))
        log = Log()
        bank = Bank(server, seed)
        bank.start()
        try:
            read_while_things_break(server, config, log, bank, chance)
        finally:
            bank.ends.set()
            bank.join(30)
        (lsn,) = server.run("SELECT pg_current_wal_insert_lsn()::text")[0]
        end = {row[0]: row[1:] for row in server.run("SELECT id, balance, version FROM account")}
        with Run(config, log) as run:
            deadline_s = time.monotonic() + 60
            idle = 0
            while idle < 3:
                assert time.monotonic() < deadline_s
                idle = 0 if run.poll(0.3) else idle + 1
        hold_commit_order(server, log.records)
    state = hold(log.records, ACCOUNTS * EACH)
    assert state == end, f"at LSN {lsn}"
    assert sum(record["topic"] == "shop.public.account" for record in log.records) > ACCOUNTS


def read_while_things_break(
    server: PostgresServer, config: dict[str, str], log: Log, bank: Bank, chance: random.Random
) -> None:
    kills, run = 0, None
    deadline_s = time.monotonic() + 240
    while bank.done < TRANSACTIONS or kills < KILLS:
        assert time.monotonic() < deadline_s, f"{bank.done} transactions, {kills} kills"
        try:
            if run is None:
                run = Run(config, log, max_bytes=chance.choice([500, 5_000, 1 << 20]))
                run.source.start()
            dice = chance.random()
            if dice < 0.04:
                run.source.poll(0.1)  # killed before it is written
                run.source.stop()
                run, kills = None, kills + 1
            elif dice < 0.08:
                run.poll(0.1, say=False)  # killed before the source hears that it is written
                run.source.stop()
                run, kills = None, kills + 1
            elif dice < 0.10:
                server.kill()
                server.start()
                kills += 1
            else:
                run.poll(0.05, say=chance.random() < 0.7)
        except Retriable:
            if run is not None:
                run.source.stop()
            run = None
            time.sleep(0.05)
    if run is not None:
        run.source.stop()
