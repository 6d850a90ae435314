"""The writing half of a source connector, in a task: a batch and its offsets in one transaction (decision 24).

Theory of operation. Spark gives a batch to any Python process that is idle. The process that wrote the batch before has
a producer that nobody has fenced since, so nobody has written since: it goes on. Any other takes over: it fences with
InitProducerId, which ends what was open, and then asks the offsets topic where the connector is:

    where this batch begins     it is written
    where this batch ends       it was written already, and the answer was lost: nothing is done
    anywhere else               another start has written: this one ends, and begins anew from there

So a batch is written once, whoever tries, and however often.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from ottla.client.admin.topics import NewTopic
from ottla.client.blocking.producer import Producer
from ottla.client.errors import UnknownTopicOrPartition
from ottla.connect.connector import Partition
from ottla.connect.engine.failures import packs_failures
from ottla.connect.engine.kept import Kept
from ottla.connect.engine.offsets_log import OffsetsLog, OffsetStep, Stored, compact, is_done
from ottla.connect.engine.run import Run, log_to_stderr
from ottla.connect.engine.source_reader import Control
from ottla.connect.engine.tolerance import letters_topic
from ottla.connect.engine.topics import create_if_missing
from ottla.connect.errors import ConnectError
from ottla.records.arrow import rows_by_partition
from ottla.spark.sink.cluster_access import ClusterAccess
from ottla.spark.sink.row_sender import chunks
from ottla.spark.worker_process import begin_task

_PRODUCER: Final = {
    "batch.size": 256 << 10,
    "buffer.memory": 64 << 20,
    "linger.ms": 0,
    "max.request.size": 16 << 20,
    "transaction.timeout.ms": 60_000,
}
_TOPIC_PATIENCE_S: Final = 10.0


class Written(WriterCommitMessage):
    """Nothing is left for the driver to do."""


class SourceWriter(DataSourceStreamArrowWriter):
    def __init__(self, run: Run) -> None:
        self.run = run

    @packs_failures
    def write(self, iterator: "Iterator[pa.RecordBatch]") -> Written:
        begin_task("connector's batch")
        log_to_stderr()
        batches = (batch for batch in iterator if batch.num_rows)
        first = next(batches, None)
        if first is None:  # Spark's task for a batch of no rows
            return Written()
        control = Control.of(first.column("value")[0].as_py())
        write_batch(self.run, control, _and(first.slice(1), batches))
        return Written()

    def commit(self, messages: Sequence[Any], batchId: int) -> None:  # noqa: N803  # Spark's name
        """The task has committed."""

    def abort(self, messages: Sequence[Any], batchId: int) -> None:  # noqa: N803
        """What a task leaves open the next start ends."""


def _and(first: Any, others: Iterable[Any]) -> Iterator[Any]:
    yield first
    yield from others


def write_batch(run: Run, control: Control, rows: Iterable[Any]) -> None:
    """Writes a batch once, whoever tries, and however often. Raises `TakenOver`, or what the cluster says."""
    writer = kept_writer(run, control)
    try:
        if writer is None:
            writer = BatchWriter(run)
            if writer.takes_over(control):
                writer.batch = control.batch
                keep_writer(writer)
                return
        writer.write(control, rows)
    except BaseException:
        if writer is not None:
            writer.close()
        raise
    keep_writer(writer)


kept: "Kept[BatchWriter]" = Kept()


def kept_writer(run: Run, control: Control) -> "BatchWriter | None":
    """The one that wrote the batch before this one, if it was this process."""
    writer = kept.take(run.name)
    if writer is not None and not writer.continues(run, control):
        writer.close()
        writer = None
    return writer


def keep_writer(writer: "BatchWriter") -> None:
    kept.give(writer.run.name, writer)


class BatchWriter:
    """A producer of the connector's transactional id, and the last batch that it wrote."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.batch = 0
        self._topics: set[str] = set()
        self._letters = letters_topic(run.config)
        self._producer = Producer({**_PRODUCER, **run.producer_settings(), "transactional.id": run.transactional_id})

    def continues(self, run: Run, control: Control) -> bool:
        return self.run.id == run.id and self.batch == control.batch - 1

    def takes_over(self, control: Control) -> bool:
        """Fences everybody else. Whether the batch is written already. Raises `TakenOver`."""
        self._producer.init_transactions()
        with ClusterAccess({**self.run.producer_settings(), **self.run.worker_settings()}) as access:
            log = OffsetsLog(access, self.run.offsets_topic, self.run.name, control.positions)
            log.catch_up()
            return is_done(log, control.steps)

    def takes_over_from(self, partition: Partition) -> Stored | None:
        """Fences everybody else. What the offsets topic says then."""
        self._producer.init_transactions()
        with ClusterAccess({**self.run.producer_settings(), **self.run.worker_settings()}) as access:
            log = OffsetsLog(access, self.run.offsets_topic, self.run.name)
            log.catch_up()
            return log.get(partition)

    def write(self, control: Control, rows: Iterable[Any]) -> None:
        with self._producer.transaction():
            self._send(rows)
            self._send_offsets(control.steps)
        self.batch = control.batch

    def _send(self, rows: Iterable[Any]) -> None:
        for table in chunks(rows):
            for batch in table.to_batches():
                if batch.num_rows:
                    self._send_batch(batch)

    def _send_batch(self, batch: Any) -> None:
        topics = batch.column("topic")
        for topic in topics.unique().to_pylist():
            of_topic = batch.filter(pc.equal(topics, topic))
            self._make_sure_of(topic)
            columns = of_topic.select(["timestamp", "key", "value", "headers"])
            placed = of_topic.column("partition")
            if placed.null_count == len(placed):
                self._producer.send_arrow(topic, columns)
                continue
            numbers = placed.fill_null(-1)
            for partition, part in rows_by_partition(columns, memoryview(numbers.buffers()[1])[numbers.offset * 4 :]):
                self._producer.send_arrow(topic, part, partition=None if partition < 0 else partition)

    def _send_offsets(self, steps: Sequence[OffsetStep]) -> None:
        for step in steps:
            self._producer.send(self.run.offsets_topic, compact(step.after), key=step.key)

    def _make_sure_of(self, topic: str) -> None:
        """That the topic is there: made as `topic.creation.default.…` says (KIP-158), else left to the brokers."""
        if topic in self._topics:
            return
        if (wanted := self._wanted(topic)) is not None:
            with ClusterAccess({**self.run.producer_settings(), **self.run.worker_settings()}) as access:
                create_if_missing(access, wanted)
        try:
            self._producer.partitions_for(topic, _TOPIC_PATIENCE_S)
        except UnknownTopicOrPartition:
            raise ConnectError(
                f"topic {topic} does not exist and the brokers do not create it: create it, or set "
                "topic.creation.default.partitions and topic.creation.default.replication.factor"
            ) from None
        self._topics.add(topic)

    def _wanted(self, topic: str) -> NewTopic | None:
        config = self.run.config
        if self._letters is not None and topic == self._letters.name:
            return self._letters
        prefix = "topic.creation.default."
        factor, partitions = config.get(f"{prefix}replication.factor"), config.get(f"{prefix}partitions")
        if factor is None and partitions is None:
            return None
        others = {
            key.removeprefix(prefix): value
            for key, value in config.items()
            if key.startswith(prefix) and key not in (f"{prefix}replication.factor", f"{prefix}partitions")
        }
        if (self.run.worker.get("topic.creation.enable") or "true").strip().lower() == "false":
            return None
        return NewTopic(topic, _number(partitions), _number(factor), config=others)

    def close(self) -> None:
        self._producer.close(0)


def _number(text: str | None) -> int | None:
    return None if text is None or int(text) == -1 else int(text)
