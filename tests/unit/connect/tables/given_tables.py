"""Records for tables, and a sink on a database: as the engine would use it."""

import logging
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from ottla.base.ids import TopicPartition
from ottla.connect.connector import SinkContext
from ottla.connect.connectors.tables.sink import ConfluentTablesSink, DebeziumTablesSink, TablesSink
from ottla.connect.data.columns import AnyColumn, nothing
from ottla.connect.data.records import Records, records_of
from ottla.connect.data.rows import column_of
from ottla.connect.data.schema import Schema, Type, struct

KEY = struct([("id", Schema(Type.INT32))], name="orders.Key")
ORDER = struct([("id", Schema(Type.INT32)), ("note", Schema(Type.STRING, True))], name="orders.Value")


def context(name: str = "into", worker: dict[str, str] | None = None) -> SinkContext:
    return SinkContext(name, logging.getLogger("tables"), lambda: 0, worker or {})


def started(
    url: str, kind: type[TablesSink] = ConfluentTablesSink, worker: dict[str, str] | None = None, **options: str
) -> TablesSink:
    given = {"name": "into", "connector.class": "x", "topics": "orders", "connection.url": url}
    given |= {name.replace("_", "."): value for name, value in options.items()}
    sink = kind(given, context(worker=worker))
    sink.start()
    sink.positions()
    return sink


def records(
    rows: Sequence[Any],
    *,
    first: int = 0,
    schema: Schema = ORDER,
    keys: Sequence[Any] | None = None,
    topic: str = "orders",
) -> list[Records]:
    """Rows, in which None is a tombstone; `keys` for those whose rows do not say it."""
    said = keys if keys is not None else [row["id"] for row in rows]
    made: list[Records] = []
    for is_gone in (False, True):
        chosen = [place for place, row in enumerate(rows) if (row is None) is is_gone]
        if not chosen:
            continue
        key = column_of(KEY, [{"id": said[place]} for place in chosen])
        value: AnyColumn = nothing(len(chosen)) if is_gone else column_of(schema, [rows[place] for place in chosen])
        one = records_of(topic, key, value, partitions=[0] * len(chosen))
        places = pa.array([first + place for place in chosen], pa.int64())
        made.append(one.but(position=places, offset=places))
    return made


def put(sink: TablesSink, batches: Sequence[Records], end: int, topic: str = "orders") -> None:
    sink.put(batches, {TopicPartition(topic, 0): end})


__all__ = ["KEY", "ORDER", "ConfluentTablesSink", "DebeziumTablesSink", "context", "put", "records", "started"]
