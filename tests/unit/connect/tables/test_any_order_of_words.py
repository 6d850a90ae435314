"""Whatever comes in whatever batches, the table is what one record after the other gives."""

import sqlite3
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ottla.connect.data.schema import Schema, Type, struct
from tests.unit.connect.tables.given_tables import put, records, started

NARROW = struct([("id", Schema(Type.INT32)), ("a", Schema(Type.STRING, True))])
OTHER = struct([("id", Schema(Type.INT32)), ("b", Schema(Type.INT64, True))])
WIDE = struct([("id", Schema(Type.INT32)), ("a", Schema(Type.STRING, True)), ("b", Schema(Type.INT64, True))])


def one_after_the_other(words: list[tuple[int, Schema | None, dict[str, Any] | None]]) -> list[tuple[Any, ...]]:
    rows: dict[int, dict[str, Any]] = {}
    for key, _, value in words:
        if value is None:
            rows.pop(key, None)
        else:
            rows[key] = rows.get(key, {"id": key, "a": None, "b": None}) | value
    return sorted((row["id"], row["a"], row["b"]) for row in rows.values())


@pytest.mark.parametrize("seed", range(60))
def test_the_table_is_what_one_record_after_the_other_gives(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    url = f"jdbc:sqlite:{tmp_path / 'shop.db'}"
    options = {"insert_mode": "upsert", "pk_mode": "record_key", "delete_enabled": "true"}
    connection = sqlite3.connect(tmp_path / "shop.db", isolation_level=None)
    connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, a TEXT, b INTEGER)")
    sink = started(url, worker={"file.allowed.paths": str(tmp_path)}, **options)
    words: list[tuple[int, Schema | None, dict[str, Any] | None]] = []
    end = 0
    for _ in range(random.randrange(1, 6)):
        said: list[tuple[int, Schema | None, dict[str, Any] | None]] = []
        for _ in range(random.randrange(1, 12)):
            key = random.randrange(4)
            schema = random.choice([None, NARROW, OTHER, WIDE]) if seed % 3 else random.choice([None, WIDE])
            value = None
            if schema is not None:
                value = {"id": key}
                value |= {
                    field.name: random.choice([None, 5 if field.name == "b" else "x"]) for field in schema.fields[1:]
                }
            said.append((key, schema, value))
        batches: list[Any] = []
        for schema in (None, NARROW, OTHER, WIDE):
            for place, (key, kind, value) in enumerate(said):
                if kind is schema:
                    batches += records([value], keys=[key], schema=schema or WIDE, first=end + place)
        random.shuffle(batches)
        end += len(said)
        put(sink, batches, end)
        words += said
        found = connection.execute("SELECT id, a, b FROM orders ORDER BY id").fetchall()
        assert found == one_after_the_other(words)
    sink.stop()
    connection.close()
