"""The writing half of a sink connector, in one task: rows to records, and `put` with the positions behind them.

Theory of operation. All rows of a batch come to one task, a partition's rows in order. They are put some megabytes at a
time, each time with the positions behind them, in a transaction of the target: a crash repeats nothing that is there.
Spark gives a batch to any Python process that is idle. One that wrote the batch before has a started sink, and goes on.
Any other starts one and asks the target for its positions: rows before them are there already, and are passed over.

A target that keeps no positions gets rows again after a crash, from where the group is: at least once.

Dead letters are flushed before the put: after a crash between the two they are there twice, the rows once.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]
from pyspark.sql.datasource import DataSourceStreamArrowWriter

from ottla.base.ids import TopicPartition
from ottla.client.blocking.producer import Producer
from ottla.connect.connector import Place, Refusal, Sink
from ottla.connect.data.records import Records
from ottla.connect.engine.conversion import SinkConversion, raw_origin
from ottla.connect.engine.failures import packs_failures
from ottla.connect.engine.kept import Kept
from ottla.connect.engine.run import Run, log_to_stderr
from ottla.connect.engine.sink_reader import open_sink
from ottla.connect.engine.source_writer import Written
from ottla.connect.engine.tolerance import DeadLetter, RecordRefused, Tolerance, letters_topic
from ottla.connect.engine.topics import create_if_missing
from ottla.connect.errors import DataError
from ottla.spark.sink.cluster_access import ClusterAccess
from ottla.spark.sink.row_sender import chunks
from ottla.spark.worker_process import begin_task

_PUT_BYTES: Final = 16 << 20


class SinkWriter(DataSourceStreamArrowWriter):
    def __init__(self, run: Run) -> None:
        self.run = run

    @packs_failures
    def write(self, iterator: "Iterator[pa.RecordBatch]") -> Written:
        begin_task("connector's batch")
        log_to_stderr()
        write_rows(self.run, (batch for batch in iterator if batch.num_rows))
        return Written()

    def commit(self, messages: Sequence[Any], batchId: int) -> None:  # noqa: N803  # Spark's name
        """The target has committed; the group is committed when Spark asks for the next batch."""

    def abort(self, messages: Sequence[Any], batchId: int) -> None:  # noqa: N803
        """The target has what was put, with its positions."""


def write_rows(run: Run, batches: Iterator[Any]) -> None:
    writer = kept.take(run.name)
    if writer is not None and writer.run.id != run.id:
        writer.close()
        writer = None
    try:
        for table in chunks(batches, _PUT_BYTES):
            if writer is not None and not writer.continues(table):
                writer.close()
                writer = None
            if writer is None:
                writer = RowsWriter(run)
            writer.put(table)
    except BaseException:
        if writer is not None:
            writer.close()
        raise
    if writer is not None:
        kept.give(run.name, writer)


kept: "Kept[RowsWriter]" = Kept()


class RowsWriter:
    """A started sink, and the positions that its target has."""

    def __init__(self, run: Run) -> None:
        self.run = run
        tolerance = Tolerance(run.name, run.config, run.log())
        self._conversion = SinkConversion(run.config, run.worker, tolerance)
        self._letters: Producer | None = None
        self._table: Any = None
        """The rows of the put under way; a record's position is its row."""
        self._places: list[Place] | None = None
        self._own: dict[TopicPartition, int] = {}
        """Behind what this writer has put: where a batch for it may begin."""
        try:
            self._sink: Sink = open_sink(run, places=self._places_of, refuse=self._refuse)
        except BaseException:
            self._conversion.close()
            raise
        try:
            self._known: dict[TopicPartition, int] = dict(self._sink.positions() or {})
        except BaseException:
            self.close()
            raise

    def continues(self, table: Any) -> bool:
        """Whether nobody can have put anything since: every partition goes on where this writer left it.

        Between two batches there may be offsets without records; then the target is asked anew, which is never wrong.
        """
        return all(self._own.get(one, -1) == first for one, (first, _) in _spans(table).items())

    def put(self, table: Any) -> None:
        table = self._new_rows(table)
        if not table.num_rows:
            return
        behind = {one: last + 1 for one, (_, last) in _spans(table).items()}
        records = self.converted(table)
        self._table, self._places = table, None
        self._sink.put(records, behind)
        self._table = self._places = None
        self._own |= behind
        self._known |= behind

    def converted(self, table: Any) -> list[Records]:
        """The records of rows; the dead letters of those that are refused are durable."""
        records = self._conversion.records(table)
        self._send(self._conversion.tolerance.take_letters())
        return records

    def _places_of(self, records: Records) -> list[Place]:
        if self._places is None:
            columns = [self._table.column(name).to_pylist() for name in ("topic", "partition", "offset")]
            self._places = [Place(*one) for one in zip(*columns, strict=True)]
        places = self._places
        return [places[position] for position in records.position.to_pylist()]

    def _refuse(self, refusals: Sequence[Refusal]) -> None:
        """What the sink refuses; its dead letters are flushed before the put ends."""
        table, tolerance = self._table, self._conversion.tolerance
        for position, reason in refusals:
            came_from = raw_origin(table, position)
            place = f"the record at offset {came_from.offset} of {came_from.topic}-{came_from.partition}"
            error = DataError(f"{place}: {reason}")
            refused = RecordRefused(error, position, "TASK_PUT", type(self._sink).__name__)
            tolerance.refuse(refused, lambda row: raw_origin(table, row))
        self._send(tolerance.take_letters())

    def _new_rows(self, table: Any) -> Any:
        """Without those that the target has."""
        for one, (first, _) in _spans(table).items():
            known = self._known.get(one, -1)
            if first < known:
                is_there = pc.and_(
                    pc.and_(pc.equal(table["topic"], one.topic), pc.equal(table["partition"], one.partition)),
                    pc.less(table["offset"], known),
                )
                table = table.filter(pc.invert(is_there))
        return table

    def _send(self, letters: Sequence[DeadLetter]) -> None:
        if not letters:
            return
        if self._letters is None:
            wanted = letters_topic(self.run.config)
            assert wanted is not None, "dead letters have a topic"
            with ClusterAccess({**self.run.producer_settings(), **self.run.worker_settings()}) as access:
                create_if_missing(access, wanted)
            self._letters = Producer(self.run.producer_settings())
        futures = [self._letters.send(one.topic, one.value, key=one.key, headers=list(one.headers)) for one in letters]
        self._letters.flush()
        for future in futures:
            future.result()

    def close(self) -> None:
        try:
            self._sink.stop()
        finally:
            self._conversion.close()
            if self._letters is not None:
                self._letters.close(0)


def _spans(table: Any) -> Mapping[TopicPartition, tuple[int, int]]:
    """First and last offset of each partition that has rows."""
    if not table.num_rows:
        return {}
    found = table.select(["topic", "partition", "offset"]).group_by(["topic", "partition"])
    return {
        TopicPartition(row["topic"], row["partition"]): (row["offset_min"], row["offset_max"])
        for row in found.aggregate([("offset", "min"), ("offset", "max")]).to_pylist()
    }
