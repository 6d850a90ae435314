"""Changes of a MariaDB, read from its binary log: our connector, to whole records, beside mysql-replication, to dicts.

    python -m bench.binlog [ROWS]

Needs Debian's `mariadb-server`, and mysql-replication from PyPI. Each reads the same changes, in one process, from a
server on this machine: rows inserted by thousands, and single rows inserted, updated and deleted.
"""

import sys
import time

from pymysqlreplication import BinLogStreamReader  # type: ignore[import-not-found,import-untyped]  # only for this
from pymysqlreplication.row_event import (  # type: ignore[import-not-found,import-untyped]
    DeleteRowsEvent,
    UpdateRowsEvent,
    WriteRowsEvent,
)
from tests.clients.connect.read_source import Log, Run
from tests.interop.connect.mariadb_server import MariaDbServer

TABLE = """CREATE TABLE orders (
    id bigint PRIMARY KEY, customer int NOT NULL, status varchar(20), amount decimal(10,2), placed datetime(6),
    note text, paid tinyint, weight double)"""
ROW = "{0}, {0} % 1000, 'status-{0}', {0} / 100, '2024-05-06 07:08:09.123456', 'a note of some words', 1, 0.5"


def fill(server: MariaDbServer, rows: int) -> int:
    """Writes the changes, and says how many there are."""
    with server.connect(autocommit=False) as connection, connection.cursor() as cursor:
        for start in range(0, rows, 1000):
            listed = ", ".join(f"({ROW.format(number)})" for number in range(start, min(rows, start + 1000)))
            cursor.execute(f"INSERT INTO orders VALUES {listed}")
            connection.commit()
        single = rows // 20
        for number in range(rows, rows + single):
            cursor.execute(f"INSERT INTO orders VALUES ({ROW.format(number)})")
            connection.commit()
            cursor.execute(f"UPDATE orders SET status = 'changed' WHERE id = {number}")
            connection.commit()
            cursor.execute(f"DELETE FROM orders WHERE id = {number}")
            connection.commit()
    return rows + 3 * single


def theirs(server: MariaDbServer, file: str, position: int, changes: int) -> float:
    settings = {"host": "127.0.0.1", "port": server.port, "user": "root", "passwd": "secret"}
    began_s = time.process_time()
    stream = BinLogStreamReader(
        connection_settings=settings,
        server_id=77,
        log_file=file,
        log_pos=position,
        resume_stream=True,
        only_events=[WriteRowsEvent, UpdateRowsEvent, DeleteRowsEvent],
    )
    found = 0
    for event in stream:
        found += len(event.rows)
    taken_s = time.process_time() - began_s
    stream.close()
    assert found == changes, f"{found} of {changes}"
    return changes / taken_s


def ours(server: MariaDbServer, offset: dict[str, object], changes: int) -> float:
    log = Log()
    log.offsets['{"server": "shop"}'] = offset
    run = Run(server.config(tombstones_on_delete="false"), log)
    found = 0
    began_s = time.process_time()
    run.source.start()
    while found < changes:
        found += sum(len(batch.records) for batch in run.source.poll(1.0))
    taken_s = time.process_time() - began_s
    run.source.stop()
    assert found == changes, f"{found} of {changes}"
    return changes / taken_s


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    with MariaDbServer(durable=False) as server:
        server.run(TABLE)
        ((file, position, *_),) = server.run("SHOW MASTER STATUS")
        ((gtids,),) = server.run("SELECT @@gtid_binlog_pos")
        changes = fill(server, rows)
        print(f"{changes} changes, {rows} of them by thousands", flush=True)
        for _ in range(2):
            mine = ours(server, {"file": file, "pos": position, "gtids": gtids}, changes)
            other = theirs(server, file, position, changes)
            print(
                f"ours {mine:,.0f} rows/s, mysql-replication {other:,.0f} rows/s: {mine / other:.1f} times", flush=True
            )


if __name__ == "__main__":
    main()
