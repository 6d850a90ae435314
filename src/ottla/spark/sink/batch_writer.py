"""What Spark calls for `df.write`: `write` in every task, `commit` or `abort` on the driver."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter

from ottla.spark.sink.rows import Routing
from ottla.spark.sink.single_transaction import SingleWriter
from ottla.spark.sink.sink_options import Delivery, SinkOptions
from ottla.spark.sink.stream_writer import Written
from ottla.spark.sink.task_writer import TaskResult, send_task, stage_task

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types


class BatchWriter(DataSourceArrowWriter):
    def __init__(self, options: SinkOptions, columns: Sequence[str]) -> None:
        self._options = options
        self._routing = Routing(columns, options.topic)

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> Written:
        options = self._options
        if options.delivery is Delivery.AT_LEAST_ONCE:
            send_task(options.settings, self._routing, iterator)
            return Written(None, TaskResult())
        context = TaskContext.get()
        assert context is not None, "Spark calls write in a task"
        index = context.partitionId()
        return Written(
            None,
            stage_task(index, options.settings, self._routing, iterator, inline_bytes=options.inline_bytes),
        )

    def commit(self, messages: Sequence[Any]) -> None:
        results = [message.result for message in messages if message is not None]
        if any(result.inline is not None or result.staged for result in results):
            writer = SingleWriter(self._options.settings)
            try:
                writer.write(self._routing, results)
            finally:
                writer.close()

    def abort(self, messages: Sequence[Any]) -> None:
        """Nothing was written that anybody sees. What is staged goes with the staging topic's retention."""
