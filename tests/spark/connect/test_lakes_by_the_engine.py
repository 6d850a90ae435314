"""The engine's writer with Delta Lake behind it: converters, keys, tombstones, a new column, and a second attempt.

Rows are as our Spark source has them; no Spark session is needed.
"""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ottla.base.ids import TopicPartition
from ottla.connect.engine import sink_writer
from ottla.connect.engine.run import new_run
from ottla.connect.engine.sink_reader import positions_of_target
from ottla.connect.engine.sink_writer import write_rows
from ottla.testing import Broker
from tests.spark.connect.test_sink_kills import SinkScene

deltalake = pytest.importorskip("deltalake")


def struct(**fields: tuple[str, Any]) -> bytes:
    """A struct as JsonConverter writes it, with its schema."""
    named = [{"field": name, "type": kind, "optional": name != "id"} for name, (kind, _) in fields.items()]
    payload = {name: value for name, (_, value) in fields.items()}
    return json.dumps({"schema": {"type": "struct", "fields": named, "optional": False}, "payload": payload}).encode()


def test_changes_become_the_rows_of_a_table(ottla_broker: Broker, ottla_topic: str, tmp_path: Path) -> None:
    sink_writer.kept.forget()
    scene = SinkScene(ottla_broker, ottla_topic, tmp_path)
    scene.worker |= {"key.converter": "JsonConverter", "value.converter": "JsonConverter"}
    config = {
        "connector.class": "ottla.connect.DeltaSinkConnector",
        "topics": ottla_topic,
        "table.path": str(tmp_path / "orders"),
        "insert.mode": "upsert",
        "delete.enabled": "true",
    }
    run = new_run("lake", "sink", config, scene.worker)

    def put(first: int, *rows: tuple[int, bytes | None]) -> None:
        made = scene.rows(first, first + len(rows) - 1, [value for _, value in rows])
        keys = pa.array([struct(id=("int64", number)) for number, _ in rows], pa.binary())
        write_rows(run, iter([made.set_column(0, "key", keys)]))

    def found() -> list[Any]:
        rows: list[Any] = deltalake.DeltaTable(str(tmp_path / "orders")).to_pyarrow_table().to_pylist()
        return sorted(rows, key=lambda row: row["id"])

    put(0, *((number, struct(id=("int64", number), note=("string", f"n{number}"))) for number in range(5)))
    sink_writer.kept.forget()[0].close()
    wider = struct(id=("int64", 1), note=("string", "z"), count=("int32", 7))
    more = [(3, None), (4, None), (1, wider), (2, None)]
    put(5, *more)
    sink_writer.kept.forget()[0].close()
    put(5, *more)  # a second attempt, which finds that it is there
    assert found() == [{"id": 0, "note": "n0", "count": None}, {"id": 1, "note": "z", "count": 7}]
    assert deltalake.DeltaTable(str(tmp_path / "orders")).history(1)[0]["operation"] == "MERGE"
    assert positions_of_target(run) == {TopicPartition(ottla_topic, 0): 9}
