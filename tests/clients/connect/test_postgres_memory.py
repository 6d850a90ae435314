"""A transaction that is larger than memory should be: it leaves in pieces, and the reader stays as small as it was."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients.connect.postgres_server import PostgresServer

ROWS = 300_000
PROGRAM = """
import json, resource, sys
from tests.clients.connect.read_source import Log, Run

config, wanted = json.loads(sys.argv[1]), int(sys.argv[2])
with Run(config, Log(), max_bytes=4 << 20) as run:
    counted = polls = most = 0
    while counted < wanted:
        batches = run.source.poll(1.0)
        size = sum(len(one.records) for one in batches)
        counted, polls, most = counted + size, polls + bool(size), max(most, size)
        if batches:
            offset = batches[-1].offset
            run.source.committed([(batches[-1].partition, offset)])
        if polls == 5:
            start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    end = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"records": counted, "most": most, "start": start, "end": end, "offset": offset}))
"""


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["no_data", "initial"])
def test_a_transaction_of_300_mb_does_not_grow_the_reader(tmp_path: Path, mode: str) -> None:
    with PostgresServer(16, durable=False) as server:
        server.run(
            "CREATE TABLE t (id int PRIMARY KEY, note text)", "CREATE PUBLICATION dbz_publication FOR ALL TABLES"
        )
        server.run("SELECT pg_create_logical_replication_slot('debezium', 'pgoutput')")
        server.run(f"INSERT INTO t SELECT i, repeat('x', 1000) FROM generate_series(1, {ROWS}) i")
        config = server.config(snapshot_mode=mode)
        # With a snapshot, its first chunk waits for the whole transaction, which changes each of its keys.
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, json.dumps(config), str(ROWS)],
            capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["records"] >= ROWS
    assert said["most"] < ROWS // 20
    assert said["end"] - said["start"] < 60_000, said  # kilobytes
