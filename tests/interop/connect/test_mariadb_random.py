"""Random transactions over accounts, while the server and the reader are killed: each change once, in commit order.

Every account has a version, which each change of it counts up; the sum of all balances never changes. So the records
tell by themselves (`tests.clients.connect.test_postgres_random.hold`).
"""

import random
import threading
import time
from typing import Any

import pymysql
import pytest

from ottla.connect.errors import Retriable
from tests.clients.connect.read_source import Log, Run
from tests.interop.connect.mariadb_server import MariaDbServer

pytestmark = pytest.mark.interop

ACCOUNTS = 400
EACH = 1000
TRANSACTIONS = 250
KILLS = 8


class Bank(threading.Thread):
    """Writes transactions from a seed until it is told to stop; a server that is gone is waited for."""

    def __init__(self, server: MariaDbServer, seed: int) -> None:
        super().__init__(daemon=True)
        self.server = server
        self.random = random.Random(seed)
        self.next_id = 1_000_000 * (seed + 1)
        self.done = 0
        self.ends = threading.Event()

    def run(self) -> None:
        while not self.ends.is_set():
            try:
                with self.server.connect(autocommit=False) as connection, connection.cursor() as cursor:
                    while not self.ends.is_set():
                        self._transaction(cursor)
                        self.done += 1
                        time.sleep(self.random.random() / 100)
            except (pymysql.err.MySQLError, OSError):
                time.sleep(0.05)

    def _new_id(self) -> int:
        self.next_id += 1
        return self.next_id

    def _transaction(self, cursor: Any) -> None:
        random = self.random
        cursor.execute("BEGIN")
        cursor.execute("SELECT id FROM account ORDER BY rand() LIMIT 40 FOR UPDATE")
        ids = [row[0] for row in cursor.fetchall()]
        for _ in range(random.choice([1, 1, 2, 5, 30])):
            kind = random.randrange(12)
            one, other = random.sample(ids, 2)
            amount = random.randrange(-50, 50)
            if kind < 7:
                change = "UPDATE account SET balance = balance + %s, version = version + 1 WHERE id = %s"
                cursor.execute(change, (amount, one))
                cursor.execute(change, (-amount, other))
            elif kind == 7:  # several rows in one event
                rows = [(self._new_id(), number) for number in range(random.randrange(2, 20))]
                listed = ", ".join(f"({row_id}, {balance}, 1)" for row_id, balance in rows)
                cursor.execute(f"INSERT INTO account (id, balance, version) VALUES {listed}")
                taken = sum(balance for _, balance in rows)
                cursor.execute(
                    "UPDATE account SET balance = balance - %s, version = version + 1 WHERE id = %s", (taken, one)
                )
            elif kind == 8 and len(ids) > 30:
                cursor.execute("SELECT balance FROM account WHERE id = %s", (one,))
                ((balance,),) = cursor.fetchall()
                cursor.execute("DELETE FROM account WHERE id = %s", (one,))
                ids.remove(one)
                cursor.execute(
                    "UPDATE account SET balance = balance + %s, version = version + 1 WHERE id = %s", (balance, other)
                )
            elif kind == 9:  # another key: a delete and an insert, for the reader
                cursor.execute("UPDATE account SET id = %s, version = 1 WHERE id = %s", (self._new_id(), one))
                ids.remove(one)
            elif kind == 10:
                cursor.execute("SAVEPOINT here")
                cursor.execute("UPDATE account SET balance = balance + 7, version = version + 1 WHERE id = %s", (one,))
                cursor.execute("ROLLBACK TO here")
            else:
                cursor.execute("UPDATE account SET note = repeat('x', 30), version = version + 1 WHERE id = %s", (one,))
        cursor.execute("ROLLBACK" if random.random() < 0.1 else "COMMIT")


def hold(records: list[dict[str, Any]], total: int) -> dict[int, tuple[int, int]]:
    """Walks the records as a consumer would, and gives the balances and versions at their end."""
    state: dict[int, tuple[int, int]] = {}
    ended: set[int] = set()
    is_whole, gtid = False, None
    for record in records:
        if record["topic"] != "shop.shop.account":
            continue
        key, value = record["key"]["id"], record["value"]
        if value is None:
            assert key in ended, f"a tombstone of {key} comes before its delete, or after a newer record"
            continue
        source = value["source"]
        if is_whole and source["gtid"] != gtid:
            assert sum(balance for balance, _ in state.values()) == total, f"half of transaction {gtid} is there"
        gtid = source["gtid"]
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


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_each_change_is_there_once_in_commit_order_while_server_and_reader_are_killed(seed: int) -> None:
    chance = random.Random(seed * 1000)
    with MariaDbServer() as server:
        server.run(
            "CREATE TABLE account (id bigint PRIMARY KEY, balance bigint NOT NULL, version int NOT NULL, note text)",
            f"INSERT INTO account (id, balance, version) SELECT seq, {EACH}, 1 FROM seq_1_to_{ACCOUNTS}",
        )
        config = server.config(ottla_snapshot_chunk_rows="37")
        log = Log()
        bank = Bank(server, seed)
        bank.start()
        try:
            read_while_things_break(server, config, log, bank, chance)
        finally:
            bank.ends.set()
            bank.join(30)
        end = {row[0]: row[1:] for row in server.run("SELECT id, balance, version FROM account")}
        ((gtids,),) = server.run("SELECT @@gtid_binlog_pos")
        with Run(config, log) as run:
            run.until(
                lambda: bool(
                    run.source._changes.position.gtids == gtids and run.source._changes.position.snapshot is None
                )
            )
            run.poll()
    state = hold(log.records, ACCOUNTS * EACH)
    assert state == end
    assert len(log.records) > ACCOUNTS


def read_while_things_break(
    server: MariaDbServer, config: dict[str, str], log: Log, bank: Bank, chance: random.Random
) -> None:
    kills, run = 0, None
    deadline_s = time.monotonic() + 300
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
                run.poll(0.05)
        except Retriable:
            if run is not None:
                run.source.stop()
            run = None
            time.sleep(0.05)
    if run is not None:
        run.source.stop()
