"""What Spark calls for `writeStream`: `write` in every task, `commit` or `abort` on the driver."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamArrowWriter

from ottla.spark.sink.decided_writes import Written, abort_decided, commit_decided, write_decided
from ottla.spark.sink.rows import Routing
from ottla.spark.sink.sink_options import Delivery, SinkOptions
from ottla.spark.sink.task_writer import TaskResult, send_task
from ottla.spark.worker_process import begin_task

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types


class StreamWriter(DataSourceStreamArrowWriter):
    def __init__(self, options: SinkOptions, columns: Sequence[str]) -> None:
        self._options = options
        self._routing = Routing(columns, options.topic)

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> Written:
        begin_task("sink")
        if self._options.encoding is not None:
            from ottla.spark.schemas.encoding import encoded

            iterator = encoded(self._options.encoding, iterator)
        if self._options.delivery is Delivery.AT_LEAST_ONCE:
            send_task(self._options.settings, self._routing, iterator)
            return Written(None, TaskResult())
        return write_decided(self._options, self._routing, iterator)

    def commit(self, messages: Sequence[Any], batchId: int) -> None:  # noqa: N803  # Spark's name
        begin_task("commit")
        commit_decided(self._options, self._routing, messages)

    def abort(self, messages: Sequence[Any], batchId: int) -> None:  # noqa: N803
        abort_decided(self._options, self._routing, messages)
