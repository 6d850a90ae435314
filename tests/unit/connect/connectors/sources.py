"""Sources and sinks by hand, without Kafka."""

from collections.abc import Mapping
from logging import getLogger
from pathlib import Path
from typing import Any

from ottla.base.ids import TopicPartition
from ottla.connect.connector import Refusal, SinkContext, Source, SourceContext
from ottla.connect.data.columns import Column
from ottla.connect.data.records import Records, records_of
from ottla.connect.data.rows import rows_of
from ottla.connect.plugins import find_connector


class SourceRun:
    """A source that is started, stopped and started again; its offsets are kept as the offsets topic would."""

    def __init__(self, allowed: Path, /, **config: str) -> None:
        self.config = {key.replace("__", "."): value for key, value in config.items()}
        self.worker = {"file.allowed.paths": str(allowed)}
        self.offsets: dict[str, dict[str, Any]] = {}
        self.max_bytes = 1 << 20

    def started(self) -> Source:
        kind = find_connector(self.config["connector.class"]).load()
        assert issubclass(kind, Source)
        context = SourceContext(
            "connector", getLogger("test"), self._offset, lambda: 1_000, self.max_bytes, self.worker
        )
        source = kind(self.config, context)
        source.start()
        return source

    def _offset(self, partition: Mapping[str, Any]) -> dict[str, Any] | None:
        return self.offsets.get(repr(sorted(partition.items())))

    def take(self, source: Source, polls: int = 1, timeout_s: float = 0.0) -> list[Any]:
        """The values of so many polls."""
        found: list[Any] = []
        for _ in range(polls):
            for one in source.poll(timeout_s):
                found += values_of(one.records)
                self.offsets[repr(sorted(one.partition.items()))] = dict(one.offset)
        return found


def values_of(records: Records) -> list[Any]:
    column = records.value
    return rows_of(column) if isinstance(column, Column) else list(column.values)


def sink(allowed: Path, /, refused: list[Refusal] | None = None, **config: str) -> Any:
    """A sink that is started. What it refuses is added to `refused`, as with `errors.tolerance=all`."""
    given = {key.replace("__", "."): value for key, value in config.items()}
    kind = find_connector(given["connector.class"]).load()
    more = {} if refused is None else {"refuse": refused.extend}
    context = SinkContext("connector", getLogger("test"), lambda: 1_000, {"file.allowed.paths": str(allowed)}, **more)  # type: ignore[arg-type]
    made = kind(given, context)  # type: ignore[arg-type]
    made.start()
    return made


def sink_records(topic: str, value: Column, first: int, partition: int = 0) -> Records:
    import pyarrow as pa

    from ottla.connect.data.columns import nothing

    count = len(value)
    made = records_of(topic, nothing(count), value, partitions=[partition] * count)
    return made.but(offset=pa.array(range(first, first + count), pa.int64()))


def at(topic: str, partition: int = 0) -> TopicPartition:
    return TopicPartition(topic, partition)
