"""What Spark calls for `df.write`: `write` in every task, `commit` or `abort` on the driver.

Within `foreachBatch`, `delivery` = exactly-once makes a write part of the query's batch: a replay finds it done.
Several writes of one batch are distinguished by their topic, or by the option `writeName`.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter

from ottla.spark.sink.decided_writes import Written, abort_decided, commit_decided, write_decided
from ottla.spark.sink.rows import Routing
from ottla.spark.sink.single_transaction import SingleWriter
from ottla.spark.sink.sink_options import Delivery, SinkOptions
from ottla.spark.sink.task_writer import TaskResult, send_task, stage_task
from ottla.spark.worker_process import begin_task

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types


class BatchWriter(DataSourceArrowWriter):
    def __init__(self, options: SinkOptions, columns: Sequence[str]) -> None:
        self._options = options
        self._routing = Routing(columns, options.topic)

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> Written:
        begin_task("sink")
        options = self._options
        if self._options.encoding is not None:
            from ottla.spark.schemas.encoding import encoded

            iterator = encoded(self._options.encoding, iterator)
        if options.delivery is Delivery.AT_LEAST_ONCE:
            send_task(options.settings, self._routing, iterator)
            return Written(None, TaskResult())
        if options.delivery is Delivery.EXACTLY_ONCE:
            return write_decided(options, self._routing, iterator, name=options.write_name)
        context = TaskContext.get()
        assert context is not None, "Spark calls write in a task"
        index = context.partitionId()
        return Written(
            None,
            stage_task(
                index,
                options.settings,
                self._routing,
                iterator,
                inline_bytes=options.inline_bytes,
                topic=options.names.staging_of(None),
            ),
        )

    def commit(self, messages: Sequence[Any]) -> None:
        begin_task("commit")
        commit_decided(self._options, self._routing, messages)
        results = [message.result for message in messages if message is not None and message.task is None]
        if any(result.inline is not None or result.staged for result in results):
            writer = SingleWriter(self._options.settings, self._options.names)
            try:
                writer.write(self._routing, results)
            finally:
                writer.close()

    def abort(self, messages: Sequence[Any]) -> None:
        """Staged rows were seen by nobody, and go with the staging topic's retention."""
        abort_decided(self._options, self._routing, messages)
