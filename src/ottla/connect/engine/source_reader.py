"""The reading half of a source connector, in the query's planner process (docs/decisions/0024).

Theory of operation. A thread has the source: it polls, transforms, converts, and adds to the batch that is being
gathered, up to `context.max_bytes`. Spark asks for the next batch (`read`, inside its `latestOffset`) as soon as the
one before is committed, and waits there until something is gathered: so an idle connector costs nothing, new data
begins a batch at once, and what comes while Spark is busy becomes one batch.

That Spark asks on means that all it was given before is committed. The source hears of it from its thread
(`Source.committed`), between two polls.

A batch is rows, and before them one row without a topic: the control row. It says how the batch moves the source's
offsets, which the writer puts into the same transaction.

With `ottla.connect.direct` the thread writes each batch itself, by the same protocol, and Spark has no rows to carry:
it keeps the process, and starts it again.
"""

import json
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from time import monotonic
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types
from pyspark.sql.datasource import SimpleDataSourceStreamReader

from ottla.client.blocking.producer import Producer
from ottla.connect.connector import Offset, Partition, Source, SourceRecords
from ottla.connect.engine.conversion import HEADERS_TYPE, ROWS, SourceConversion
from ottla.connect.engine.failures import packs_failures
from ottla.connect.engine.offsets_log import OffsetsLog, OffsetStep, canonical, compact, create_offsets_topic
from ottla.connect.engine.run import Run, log_to_stderr
from ottla.connect.engine.tolerance import Tolerance
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
        self.offsets: dict[str, tuple[Partition, Offset]] = {}

    def __bool__(self) -> bool:
        return bool(self.offsets)

    def add(self, polled: SourceRecords, rows: list[Any]) -> None:
        self.rows += rows
        self.size += sum(batch.nbytes for batch in rows)
        self.offsets[canonical(polled.partition)] = polled.partition, polled.offset


class SourceReader(SimpleDataSourceStreamReader):
    """What Spark calls. One thread of its own polls the source."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self._changed = threading.Condition()
        self._gathered = _Gathered()
        self._committed: list[tuple[Partition, Offset]] = []
        self._under_way: list[tuple[Partition, Offset]] = []
        self._failure: Exception | None = None
        self._ends = False
        self._thread: threading.Thread | None = None
        self._log: OffsetsLog | None = None
        self._access: ClusterAccess | None = None
        self._caught_up_s = 0.0
        self._batch = 0
        self._topics: set[str] = set()
        self._written: dict[str, Offset] = {}
        """Where the source's partitions are after the batches that Spark was given."""
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
        create_offsets_topic(self._access, run.offsets_topic, run.worker)
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
            polled = source.poll(_POLL_S)
            if not polled:
                self.empty_polls += 1
                continue
            converted = [(one, conversion.rows(one.records)) for one in polled]
            if self.run.is_direct:
                source.committed(self._write(converted))
                continue
            with self._changed:
                for one, rows in converted:
                    self._gathered.add(one, rows)
                self._changed.notify_all()

    def _write(self, converted: list[tuple[SourceRecords, list[Any]]]) -> list[tuple[Partition, Offset]]:
        """Without Spark: the batch is written here, by the same protocol."""
        from ottla.connect.engine.source_writer import write_batch

        taken = _Gathered()
        for one, rows in converted:
            taken.add(one, rows)
        self._batch += 1
        write_batch(self.run, self._control(self._batch, taken), taken.rows)
        return list(taken.offsets.values())

    # --- what Spark asks ---

    @packs_failures
    def read(self, start: dict[str, int]) -> tuple[Iterator[Any], dict[str, int]]:
        with self._changed:
            if self._under_way:
                self._committed += self._under_way
                self._under_way = []
                self._changed.notify_all()
            deadline_s = monotonic() + _WAIT_S
            while not self._gathered and self._failure is None and (left_s := deadline_s - monotonic()) > 0:
                self._changed.wait(min(left_s, _POLL_S))
                self._leave_if_java_left()
            if not self._gathered:
                if self._failure is not None:
                    raise self._failure
                return iter(()), start
            taken, self._gathered = self._gathered, _Gathered()
            self._changed.notify_all()
        self._under_way = list(taken.offsets.values())
        batch = start["batch"] + 1
        return iter([self._control(batch, taken).row(), *taken.rows]), {"batch": batch}

    def _control(self, batch: int, taken: _Gathered) -> Control:
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


def fence(run: Run) -> None:
    """Ends what older starts of the connector have open, and lets them write no more. Waits until that is done."""
    with Producer({**run.producer_settings(), "transactional.id": run.transactional_id}) as producer:
        producer.init_transactions()


__all__ = ["HEADERS_TYPE", "Control", "SourceReader", "fence"]
