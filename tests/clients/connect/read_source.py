"""A source polled by hand, and a log in memory that stands for its topics and the transaction around them."""

import json
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from ottla.connect.connector import SourceContext
from ottla.connect.data.columns import Column
from ottla.connect.data.records import Records
from ottla.connect.data.rows import rows_of
from ottla.connect.errors import Retriable
from ottla.connect.plugins import find_connector

WAIT_S = 60.0


class Log:
    """What a transaction wrote: records and the offset behind them, both or neither."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []
        self.offsets: dict[str, dict[str, Any]] = {}

    def offset(self, partition: Mapping[str, Any]) -> dict[str, Any] | None:
        return self.offsets.get(json.dumps(partition, sort_keys=True))


class Run:
    """One run of the connector, as the engine has it: what is polled is written with its offset, then `committed`."""

    def __init__(self, config: Mapping[str, str], log: Log, max_bytes: int = 16 << 20) -> None:
        self.log = log
        context = SourceContext(
            config["name"], logging.getLogger("source"), log.offset, lambda: time.time_ns() // 1_000_000, max_bytes
        )
        kind: Any = find_connector(config["connector.class"]).load()
        self._made = lambda: kind(config, context)
        self.source = self._made()
        self.unsaid: list[tuple[Any, Any]] = []
        self.batches: list[tuple[int, Records]] = []
        """All batches, each with the number of its poll."""
        self._polls = 0

    def __enter__(self) -> "Run":
        # The server may not have noticed yet that the run before is gone: the engine tries again, and so do we.
        deadline_s = time.monotonic() + WAIT_S
        while True:
            try:
                self.source.start()
                return self
            except Retriable:
                self.source.stop()
                if time.monotonic() > deadline_s:
                    raise
                time.sleep(0.1)
                self.source = self._made()

    def __exit__(self, *_: object) -> None:
        self.source.stop()

    def poll(self, timeout_s: float = 0.3, *, say: bool = True) -> int:
        """Polls once and commits; without `say` the source does not hear of it."""
        polled = self.source.poll(timeout_s)
        self._polls += 1
        self.batches += [(self._polls, batch.records) for batch in polled]
        rows = [row for batch in polled for row in rows_of_records(batch.records)]
        # In the order in which they are given, and each topic's order by position only to show it.
        self.log.records += rows
        for batch in polled:
            json.dumps(batch.offset)
            self.log.offsets[json.dumps(batch.partition, sort_keys=True)] = dict(batch.offset)
            self.unsaid.append((batch.partition, batch.offset))
        if say:
            self.say()
        return len(rows)

    def say(self) -> None:
        """The source hears of what was committed."""
        if self.unsaid:
            self.source.committed(self.unsaid)
            self.unsaid = []

    def until(self, has_happened: Callable[[], bool], timeout_s: float = WAIT_S) -> None:
        deadline_s = time.monotonic() + timeout_s
        while not has_happened():
            assert time.monotonic() < deadline_s, f"{len(self.log.records)} records"
            self.poll()

    def until_count(self, count: int) -> list[dict[str, Any]]:
        self.until(lambda: len(self.log.records) >= count)
        return self.log.records


def rows_of_records(records: Records) -> list[dict[str, Any]]:
    keys, values = _rows(records.key), _rows(records.value)
    return [
        {
            "topic": records.topic,
            "key": keys[row],
            "value": values[row],
            "key_schema": records.key.schema,
            "value_schema": records.value.schema,
            "headers": [(key, value) for key, _, value in records.headers_of(row)],
            "position": records.position[row].as_py(),
        }
        for row in range(len(records))
    ]


def _rows(column: Any) -> list[Any]:
    return rows_of(column) if isinstance(column, Column) else list(column.values)
