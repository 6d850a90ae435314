"""Writes tests/unit/connect/mysql/golden.json: events of a MariaDB's binary log, and the rows that they are of.

    python -m tests.interop.connect.make_golden_binlog

The events are in base64, as the server sends them; the rows are what the connector makes of them, and were held against
Debezium's by `test_debezium_mariadb` and against the server's own answers by `test_mariadb_source`.
"""

import base64
import json
from pathlib import Path
from typing import Any

from ottla.connect.connectors.mysql.connection import BinlogStream
from tests.clients.connect.read_source import Log, Run
from tests.interop.connect.mariadb_server import MariaDbServer
from tests.interop.connect.mariadb_types import COLUMNS, FAULTS
from tests.interop.connect.test_debezium_mariadb import create, inserts
from tests.unit.connect.mysql.shown_values import shown

PAGE = Path(__file__).parents[2] / "unit" / "connect" / "mysql" / "golden.json"
# What is long and says nothing more is left out.
SHORT = {name: found for name, found in (COLUMNS | FAULTS).items() if name not in ("c_mediumtext", "c_char_long")}


def main() -> None:
    events: list[bytes] = []
    read = BinlogStream.read

    def recorded(stream: BinlogStream) -> bytes | None:
        event = read(stream)
        if event is not None:
            events.append(event)
        return event

    with MariaDbServer(durable=False) as server:
        server.run(create("types", SHORT), "CREATE TABLE t (id int PRIMARY KEY, a varchar(9))")
        log = Log()
        BinlogStream.read = recorded  # type: ignore[method-assign]
        with Run(server.config(snapshot_mode="no_data"), log) as run:
            start = run.source._changes.position.as_offset()
            server.run(
                *inserts("types", SHORT, 0, nulls=True),
                "INSERT INTO t VALUES (1, 'one'), (2, NULL), (3, 'three')",
                "BEGIN",
                "UPDATE t SET a = 'x' WHERE id < 3",
                "UPDATE t SET id = 9 WHERE id = 3",
                "DELETE FROM t WHERE id = 1",
                "COMMIT",
                "ALTER TABLE t ADD COLUMN b int unsigned FIRST",
                "INSERT INTO t VALUES (4000000000, 4, 'four')",
                "TRUNCATE TABLE t",
                "FLUSH BINARY LOGS",
                "INSERT INTO t VALUES (5, 5, 'five')",
            )
            run.until(lambda: any(one["key"] == {"id": 5} for one in log.records))
        catalogue = {
            name: [list(map(str_or_none, row)) for row in server.run(COLUMNS_SQL.format(name))]
            for name in ("types", "t")
        }
        collations = run_collations(server)
    rows = [
        [one["key"], None if one["value"] is None else [one["value"][part] for part in ("op", "before", "after")]]
        for one in log.records
    ]
    made = {
        "version": "MariaDB 10.11",
        "start": start,
        "end": log.offset({"server": "shop"}),
        "catalogue": catalogue,
        "collations": collations,
        "events": [base64.b64encode(event).decode() for event in events],
        "rows": shown_rows(rows),
    }
    PAGE.write_text(json.dumps(made, ensure_ascii=False, indent=0) + "\n")


COLUMNS_SQL = """
SELECT column_name, data_type, column_type, is_nullable, column_default, character_maximum_length, numeric_precision,
       numeric_scale, datetime_precision, character_set_name, extra
FROM information_schema.columns WHERE table_schema = 'shop' AND table_name = '{}' ORDER BY ordinal_position
"""


def str_or_none(value: Any) -> str | None:
    return None if value is None else str(value)


def run_collations(server: MariaDbServer) -> dict[str, str]:
    found = server.run(
        "SELECT id, character_set_name FROM information_schema.collation_character_set_applicability "
        "WHERE character_set_name IN ('utf8mb4', 'utf8mb3', 'latin1', 'ucs2', 'ascii', 'binary') AND id IS NOT NULL"
    )
    return {str(number): charset for number, charset in found}


def shown_rows(rows: list[Any]) -> list[Any]:
    return [[shown(key), None if value is None else [shown(one) for one in value]] for key, value in rows]


if __name__ == "__main__":
    main()
