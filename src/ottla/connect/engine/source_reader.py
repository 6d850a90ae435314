"""The reading half of a source connector, in the query's planner process (docs/decisions/0024).

Theory of operation. A thread has the source: it polls, transforms, converts, and adds to the batch that is being
gathered, up to `context.max_bytes`. Spark asks for the next batch inside its `latestOffset`, and waits there until
something is gathered: so an idle connector costs nothing, new data is written at once, and what comes while a batch is
being written becomes the next one. There are two ways from there:

    direct (`DirectReader`, the default)    the batch is written right there, in Spark's question, by `write_batch`, and
                                            the next one, for some seconds; Spark hears that there is nothing for it
    rows through Spark (`SourceReader`)     Spark takes the batch as rows to a task, which calls `write_batch`; that it
                                            asks on means that they are committed

Either way Spark keeps the process, sees its failures, and starts it again; and a batch says with a `Control` how it
moves the source's offsets, which go into the same transaction. Spark's rows have it in a row before them that has no
topic. The source hears from its thread what is committed (`Source.committed`), between two polls.
"""

import json
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from time import monotonic, time
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]
from pyspark.sql.datasource import SimpleDataSourceStreamReader

from ottla.client.blocking.producer import Producer
from ottla.connect.connector import Offset, Partition, Source, SourceRecords
from ottla.connect.engine.conversion import HEADERS_TYPE, ROWS, SourceConversion
from ottla.connect.engine.failures import packs_failures
from ottla.connect.engine.offsets_log import OffsetsLog, OffsetStep, canonical, compact, offsets_topic
from ottla.connect.engine.progress import Told, numbers
from ottla.connect.engine.run import Run, log_to_stderr
from ottla.connect.engine.tolerance import Tolerance
from ottla.connect.engine.topics import create_if_missing
from ottla.connect.errors import ConnectError
from ottla.spark.sink.cluster_access import ClusterAccess
from ottla.spark.worker_process import begin_task

_POLL_S: Final = 1.0
_WAIT_S: Final = 5.0
"""How long Spark waits at a time. It asks again; nothing is lost."""
_FRESH_S: Final = 30.0
"""Older knowledge of the offsets topic is brought up to date before the next batch, so that a writer which takes over
has little to read."""


class Control:
    """What the first row of a batch says."""

    def __init__(self, batch: int, positions: Mapping[int, int], steps: Sequence[OffsetStep]) -> None:
        self.batch = batch
        self.positions = positions
        """How far the offsets topic was known when the batch was made."""
        self.steps = list(steps)

    def row(self) -> Any:
        content = compact(
            {
                "batch": self.batch,
                "positions": {str(partition): offset for partition, offset in self.positions.items()},
                "steps": [[s.partition, s.key.decode(), s.known, s.before, s.after] for s in self.steps],
            }
        )
        columns = [[None], [None], [None], [None], [content], [[]]]
        arrays = [pa.array(one, field.type) for one, field in zip(columns, ROWS, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=ROWS)

    @classmethod
    def of(cls, content: bytes) -> "Control":
        said = json.loads(content)
        steps = [OffsetStep(one[0], one[1].encode(), *one[2:]) for one in said["steps"]]
        return cls(said["batch"], {int(key): value for key, value in said["positions"].items()}, steps)


class _Gathered:
    """Rows that the next batch will have, and where the source is behind them."""

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self.size = 0
        self.records = 0
        self.offsets: dict[str, tuple[Partition, Offset]] = {}

    def __bool__(self) -> bool:
        return bool(self.offsets)

    def add(self, polled: SourceRecords, rows: list[Any]) -> None:
        self.rows += rows
        self.size += sum(batch.nbytes for batch in rows)
        self.records += sum(batch.num_rows for batch in rows)
        self.offsets[canonical(polled.partition)] = polled.partition, polled.offset


class SourceReader(SimpleDataSourceStreamReader):
    """What Spark calls. One thread of its own polls the source."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self._changed = threading.Condition()
        self._gathered = _Gathered()
        self._committed: list[tuple[Partition, Offset]] = []
        self._under_way: _Gathered | None = None
        self._taken_s = 0.0
        self._failure: Exception | None = None
        self._ends = False
        self._thread: threading.Thread | None = None
        self._log: OffsetsLog | None = None
        self._access: ClusterAccess | None = None
        self._caught_up_s = 0.0
        self._source_is_at_end: bool | None = False  # Nothing was polled yet.
        self._told = Told(run)
        self._topics: set[str] = set()
        self._written: dict[str, Offset] = {}
        """Where the source's partitions are after the batches that were taken."""
        self._parent = os.getppid()
        self.empty_polls = 0
        """How many polls have brought nothing: whether the source has come to an end of what there is."""

    @packs_failures
    def initialOffset(self) -> dict[str, int]:  # noqa: N802  # Spark's name
        if self._thread is None:
            begin_task("connector")
            log_to_stderr()
            self._begin()
        return {"batch": 0}

    def _begin(self) -> None:
        """Fences older starts, reads where they were, and starts the source."""
        run = self.run
        self._access = ClusterAccess({**run.producer_settings(), **run.worker_settings()})
        create_if_missing(self._access, offsets_topic(run))
        fence(run)
        self._log = OffsetsLog(self._access, run.offsets_topic, run.name)
        self._log.catch_up()
        self._caught_up_s = monotonic()
        started = threading.Event()
        self._thread = threading.Thread(target=self._poll, args=(started,), name="source", daemon=True)
        self._thread.start()
        started.wait()
        if self._failure is not None:
            raise self._failure
        run.mark_running()

    def _offset(self, partition: Partition) -> dict[str, Any] | None:
        assert self._log is not None
        stored = self._log.get(partition)
        return None if stored is None else stored.offset

    # --- the source's thread ---

    def _poll(self, started: threading.Event) -> None:
        source: Source | None = None
        conversion: SourceConversion | None = None
        try:
            conversion = SourceConversion(
                self.run.config, self.run.worker, Tolerance(self.run.name, self.run.config, self.run.log())
            )
            source = self.run.source(self._offset)
            source.start()
            started.set()
            self._poll_until_end(source, conversion)
        except Exception as error:
            with self._changed:
                self._failure = error
                self._changed.notify_all()
        finally:
            started.set()
            if source is not None:
                try:
                    source.stop()
                except Exception:
                    self.run.log().exception("connector %s: its source did not stop", self.run.name)
            if conversion is not None:
                conversion.close()

    def _poll_until_end(self, source: Source, conversion: SourceConversion) -> None:
        most = source.context.max_bytes
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._ends or self._committed or self._gathered.size < most)
                if self._ends:
                    return
                committed, self._committed = self._committed, []
                is_full = self._gathered.size >= most
            if committed:
                source.committed(committed)
            if is_full:
                continue
            asked_s = monotonic()
            polled = source.poll(_POLL_S)
            self._told.polled(sum(len(one.records) for one in polled), monotonic() - asked_s)
            self.empty_polls += not polled
            converted = [(one, conversion.rows(one.records)) for one in polled]
            self._told.skipped = conversion.tolerance.skipped
            self._told.own = numbers(source.metrics())
            is_at_end = source.is_at_end()
            with self._changed:
                for one, rows in converted:
                    self._gathered.add(one, rows)
                self._source_is_at_end = is_at_end
                if converted or is_at_end:
                    self._changed.notify_all()

    # --- what Spark asks ---

    @packs_failures
    def read(self, start: dict[str, int]) -> tuple[Iterator[Any], dict[str, int]]:
        self.is_written()
        taken = self.take(_WAIT_S)
        if taken is None:
            return iter(()), start
        batch = start["batch"] + 1
        return iter([self.control(batch, taken).row(), *taken.rows]), {"batch": batch}

    def take(self, patience_s: float) -> _Gathered | None:
        """What was gathered; waits for it. Raises what the source failed with, behind all that it gave before."""
        deadline_s = monotonic() + patience_s
        with self._changed:
            while not self._gathered and self._failure is None and (left_s := deadline_s - monotonic()) > 0:
                self._tell()
                self._changed.wait(min(left_s, _POLL_S))
                self._leave_if_java_left()
            if not self._gathered:
                if self._failure is not None:
                    raise self._failure
                return None
            taken, self._gathered = self._gathered, _Gathered()
            self._under_way, self._taken_s = taken, monotonic()
            self._changed.notify_all()
            self._tell()
        return taken

    def is_written(self) -> None:
        """What was taken last, if anything was: it is committed."""
        with self._changed:
            written, self._under_way = self._under_way, None
            if written is None:
                return
            self._committed += written.offsets.values()
            self._changed.notify_all()
            self._told.wrote(written.records, monotonic() - self._taken_s)
            self._told.lag_s = _lag_s(written.rows)
            self._tell()

    def _tell(self) -> None:
        told = self._told
        told.under_way = self._gathered.records + (self._under_way.records if self._under_way else 0)
        told.is_at_end = False if self._gathered or self._under_way is not None else self._source_is_at_end
        told.lag_s = told.own.get("lag_seconds", told.lag_s)
        told.tell()

    def progress(self) -> dict[str, int]:
        """For Spark's own reports of the query."""
        return {"batches": self._told.batches, "records": self._told.written}

    def control(self, batch: int, taken: _Gathered) -> Control:
        control = Control(batch, *self._steps(taken))
        self._written |= {name: offset for name, (_, offset) in taken.offsets.items()}
        topics = self._topics.union(*(batch.column("topic").unique().to_pylist() for batch in taken.rows))
        if topics != self._topics:
            self._topics = topics
            self.run.note_topics(topics)
        return control

    def _steps(self, taken: _Gathered) -> tuple[dict[int, int], list[OffsetStep]]:
        assert self._log is not None
        if monotonic() - self._caught_up_s > _FRESH_S:
            self._log.catch_up()
            self._caught_up_s = monotonic()
        steps = []
        for name, (partition, offset) in taken.offsets.items():
            stored = self._log.get(partition)
            known = None if stored is None else stored.offset
            key = compact([self.run.name, partition]) if stored is None else stored.key
            try:
                after = json.loads(compact(offset))
            except (TypeError, ValueError) as error:
                raise ConnectError(f"the source's offset {offset!r} of {partition!r} is no JSON: {error}") from None
            steps.append(OffsetStep(partition, key, known, self._written.get(name, known), after))
        return self._log.positions(), steps

    def readBetweenOffsets(self, start: dict[str, int], end: dict[str, int]) -> Iterator[Any]:  # noqa: N802
        raise AssertionError("a start never replays: it begins with what the offsets topic says")

    def commit(self, end: dict[str, int]) -> None:
        """`read` knows it sooner."""

    def stop(self) -> None:
        with self._changed:
            self._ends = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(2 * _POLL_S)

    def _leave_if_java_left(self) -> None:
        """Java was killed: the source's connection and slot are needed by the start that comes after."""
        if os.getppid() != self._parent:
            os._exit(1)

    def __getstate__(self) -> dict[str, Any]:
        """Spark makes one where it plans, to send it to tasks; that one is never used."""
        return {"run": self.run}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["run"])  # type: ignore[misc]  # as new


class DirectReader:
    """Reads and writes, for a query that has no rows to carry (`data_source.LateReader`)."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.reader = SourceReader(run)
        self._batch = 0

    def initialOffset(self) -> dict[str, int]:  # noqa: N802  # Spark's name
        return self.reader.initialOffset()

    @packs_failures
    def write_for_a_while(self) -> None:
        """Writes what comes, for some seconds."""
        deadline_s = monotonic() + _WAIT_S
        while (left_s := deadline_s - monotonic()) > 0:
            self.write(left_s)

    def write(self, patience_s: float) -> bool:
        """One batch, if one comes in time."""
        from ottla.connect.engine.source_writer import write_batch

        taken = self.reader.take(patience_s)
        if taken is None:
            return False
        self._batch += 1
        write_batch(self.run, self.reader.control(self._batch, taken), taken.rows)
        self.reader.is_written()
        return True

    def progress(self) -> dict[str, int]:
        return self.reader.progress()

    def stop(self) -> None:
        self.reader.stop()


def _lag_s(rows: Sequence[Any]) -> float | None:
    """How old the newest row is now, by the time that its source gave it."""
    times = [newest for batch in rows if (newest := pc.max(batch.column("timestamp")).as_py()) is not None]
    return max(time() - max(times) / 1000, 0.0) if times else None


def fence(run: Run) -> None:
    """Ends what older starts of the connector have open, and lets them write no more. Waits until that is done."""
    with Producer({**run.producer_settings(), "transactional.id": run.transactional_id}) as producer:
        producer.init_transactions()


__all__ = ["HEADERS_TYPE", "Control", "DirectReader", "SourceReader", "fence"]
