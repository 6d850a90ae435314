"""The reading half of a sink connector: our Spark source, from where the target says that it is.

In the query's planner process the sink is started once, to ask it for its positions, and stopped again: a wrong
password fails the connector at once, not with the first record. Partitions that the target does not know begin where
the group `connect-NAME` is, and those that neither knows at `auto.offset.reset`, as in Kafka Connect the beginning.

Spark asks for the next batch when the one before is put: so what stands before its question is how far the sink is
(`_SinkProgress`). Records are counted by their offsets.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from ottla.base.ids import TopicPartition
from ottla.connect.connector import Sink
from ottla.connect.engine.failures import packs_failures
from ottla.connect.engine.progress import Told
from ottla.connect.engine.run import Run, log_to_stderr
from ottla.connect.errors import ConnectError, Retriable
from ottla.connect.options import InvalidOption
from ottla.spark.data_source import OttlaDataSource
from ottla.spark.options import Options, Use
from ottla.spark.source.lookups import Lookups
from ottla.spark.source.offsets_json import EARLIEST, LATEST, Offsets, from_json
from ottla.spark.source.rows import column_names
from ottla.spark.source.source_options import Boundary, SourceOptions, read_source_options
from ottla.spark.source.stream_reader import StreamReader
from ottla.spark.source.task import RowReading
from ottla.spark.worker_process import begin_task

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadLimit

_IDLE_WAIT_MS: Final = "5000"
_BATCH_BYTES: Final = str(64 << 20)
_MOST_SEEN: Final = 1_000


def source_options(run: Run) -> dict[str, str]:
    """The options of our Spark source."""
    config = run.config
    given = {
        "idleWaitMs": _IDLE_WAIT_MS,
        "maxBytesPerTrigger": _BATCH_BYTES,
        "includeHeaders": "true",
        "kafka.group.id": run.group,
        **{f"kafka.{key}": value for key, value in run.consumer_settings().items() if key not in _DECIDED},
    }
    topics, pattern = config.get("topics", "").strip(), config.get("topics.regex", "").strip()
    if bool(topics) == bool(pattern):
        raise InvalidOption("Must configure one of topics or topics.regex")
    return given | ({"subscribe": topics} if topics else {"subscribePattern": pattern})


_DECIDED: Final = ("auto.offset.reset", "enable.auto.commit", "key.deserializer", "value.deserializer")


def rows_ddl(run: Run) -> str:
    return OttlaDataSource(source_options(run)).schema()


class SinkReader(DataSourceStreamReader):
    """Our Spark source, which learns where to begin when the query does."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self._reader: StreamReader | None = None
        self._topics: set[str] = set()
        self._progress: _SinkProgress | None = None

    @packs_failures
    def initialOffset(self) -> Any:  # noqa: N802  # Spark's name
        begin_task("connector")
        log_to_stderr()
        options = self._options()
        self._reader = self._made(options._replace(starting=self._starting(options)))
        offset = self._reader.initialOffset()
        self._progress = _SinkProgress(Told(self.run), from_json(offset), self._ends)
        self.run.mark_running()
        return offset

    def _options(self) -> SourceOptions:
        return read_source_options(Options(source_options(self.run), Use.STREAM_READ), Use.STREAM_READ)

    def _made(self, options: SourceOptions) -> StreamReader:
        return StreamReader(options, RowReading(column_names(includes_headers=True, columns=None), pa.binary()))

    def _starting(self, options: SourceOptions) -> Boundary:
        lookups = Lookups(options)
        try:
            there = lookups.partitions()
            if missing := lookups.missing(there):
                raise Retriable(f"topics={','.join(missing)}: not there yet; create what is missing, or mend the name")
            known = positions_of_target(self.run) or {}
            asked = [one for one in there if one not in known]
            committed = lookups.consumer.committed(asked) if asked else {}
            begins, ends = lookups.earliest(there), lookups.latest(there)
        finally:
            lookups.close()
        self._ends = ends
        reset = self.run.consumer_settings().get("auto.offset.reset", "earliest").strip().lower()
        otherwise = LATEST if reset == "latest" else EARLIEST
        offsets = {}
        for one in there:
            group = committed.get(one)
            offset = known.get(one, otherwise if group is None else group.offset)
            if one in known and offset > ends[one]:
                raise ConnectError(
                    f"the target has {one} up to offset {offset}, and the topic ends at {ends[one]}: it was "
                    "deleted and made anew. Remove the target's positions, or give the connector another name"
                )
            if 0 <= offset < begins[one]:
                self.run.log().warning(
                    "connector %s: the records of %s from offset %s to %s are gone; it begins at %s",
                    *(self.run.name, one, offset, begins[one] - 1, begins[one]),
                )
                offset = begins[one]
            offsets[one] = offset
        return Boundary("startingOffsets", offsets=offsets)

    def getDefaultReadLimit(self) -> "ReadLimit":  # noqa: N802
        return self._now().getDefaultReadLimit()

    @packs_failures
    def latestOffset(self, start: Any, limit: Any) -> Any:  # noqa: N802
        reader, progress = self._now(), self._progress
        assert progress is not None, "Spark asks where it begins first"
        begins = from_json(start)
        progress.on_put(begins)
        asked_s = monotonic()
        found = reader.latestOffset(start, limit)
        progress.on_looked(begins, from_json(reader.reportLatestOffset() or {}), monotonic() - asked_s)
        return found

    def reportLatestOffset(self) -> Any:  # noqa: N802
        return self._now().reportLatestOffset()

    @packs_failures
    def partitions(self, start: Any, end: Any) -> Sequence[InputPartition]:
        begins, ends = from_json(start), from_json(end)
        topics = self._topics | {one.topic for one, offset in ends.items() if begins.get(one, 0) < offset}
        if topics != self._topics:
            self._topics = topics
            self.run.note_topics(topics)
        if self._progress is not None:
            self._progress.on_taken(begins, ends)
        return self._now().partitions(start, end)

    @packs_failures
    def read(self, partition: InputPartition) -> Iterator[Any]:
        return self._now().read(partition)

    def commit(self, end: Any) -> None:
        self._now().commit(end)

    def stop(self) -> None:
        if self._reader is not None:
            self._reader.stop()

    def _now(self) -> StreamReader:
        if self._reader is None:
            self._reader = self._made(self._options())
        return self._reader

    def __getstate__(self) -> dict[str, Any]:
        return {"run": self.run, "_reader": None, "_topics": set(), "_progress": None}


class _SinkProgress:
    """What a sink has put, and what is before it. `goal` are the ends of its topics when it started."""

    def __init__(self, told: Told, begins: Offsets, goal: Offsets) -> None:
        self._told = told
        self._put = begins
        self._goal = goal
        self._taken_s: float | None = None
        self._seen: deque[tuple[float, int]] = deque(maxlen=_MOST_SEEN)
        """When all ends together were first seen to be there, oldest first: what is put is as old as that."""
        told.partitions = len(begins)

    def on_taken(self, begins: Offsets, ends: Offsets) -> None:
        """A batch goes to its task."""
        count = _between(begins, ends)
        self._taken_s = monotonic()
        self._told.read += count
        self._told.under_way = count
        self._told.tell()

    def on_put(self, positions: Offsets) -> None:
        """All before these is put."""
        told = self._told
        count = _between(self._put, positions)
        if self._taken_s is not None and count:
            told.wrote(count, monotonic() - self._taken_s)
        self._taken_s, self._put, told.under_way = None, positions, 0
        told.partitions = len(positions)
        told.is_at_end = all(positions.get(one, 0) >= offset for one, offset in self._goal.items())
        told.tell()

    def on_looked(self, positions: Offsets, ends: Offsets, took_s: float) -> None:
        told, now_s, together = self._told, monotonic(), sum(ends.values())
        if not self._seen or together > self._seen[-1][1]:
            self._seen.append((now_s, together))
        told.lag_records = _between(positions, ends)
        done = together - told.lag_records
        while len(self._seen) > 1 and self._seen[0][1] <= done:
            self._seen.popleft()
        told.lag_s = now_s - self._seen[0][0] if told.lag_records else 0.0
        told.polled(0, took_s)
        told.tell()


def _between(begins: Offsets, ends: Offsets) -> int:
    """How many offsets; a partition that was not known begins at 0."""
    return sum(max(end - begins.get(one, 0), 0) for one, end in ends.items())


def open_sink(run: Run, **of_put: Any) -> Sink:
    """The connector's sink, started."""
    made = run.connector()
    assert issubclass(made, Sink), "a sink runs as a sink"
    sink = made(run.config, run.sink_context(**of_put))
    try:
        sink.start()
    except BaseException:
        sink.stop()
        raise
    return sink


def positions_of_target(run: Run) -> Mapping[TopicPartition, int] | None:
    sink = open_sink(run)
    try:
        return sink.positions()
    finally:
        sink.stop()
