"""What Spark calls for `writeStream`: `write` in every task, `commit` or `abort` on the driver.

Spark makes a writer anew for every batch, but keeps the Python process that commits. So a committer is kept there, with
its connections, as long as the same start of a query comes back to it; it is only a quicker way to what the log says.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from ottla.spark.options import OptionError
from ottla.spark.sink.committer import Committer
from ottla.spark.sink.rows import Routing
from ottla.spark.sink.sink_options import Delivery, SinkOptions
from ottla.spark.sink.task_writer import Task, TaskResult, send_task, stage_task, write_task

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types

_QUERY_ID: Final = "sql.streaming.queryId"
_BATCH_ID: Final = "streaming.sql.batchId"
_RUN_ID: Final = "spark.jobGroup.id"
"""Spark gives all jobs of one start of a query one group, named by the start's id."""
_MOST_COMMITTERS: Final = 16


class Written(WriterCommitMessage):
    """A task's result on its way to the driver."""

    def __init__(self, task: Task | None, result: TaskResult) -> None:
        self.task = task
        self.result = result


class StreamWriter(DataSourceStreamArrowWriter):
    def __init__(self, options: SinkOptions, columns: Sequence[str]) -> None:
        self._options = options
        self._routing = Routing(columns, options.topic)

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> Written:
        options = self._options
        if options.delivery is Delivery.AT_LEAST_ONCE:
            send_task(options.settings, self._routing, iterator)
            return Written(None, TaskResult())
        task = _this_task()
        if options.delivery is Delivery.SINGLE_TRANSACTION:
            result = stage_task(
                task.number, options.settings, self._routing, iterator, inline_bytes=options.inline_bytes
            )
        else:
            result = write_task(task, options.settings, self._routing, iterator, inline_bytes=options.inline_bytes)
        return Written(task, result)

    def commit(self, messages: Sequence[Any], batchId: int) -> None:  # noqa: N803  # Spark's name
        written = [message for message in messages if message is not None and message.task is not None]
        if written:
            with _committing(self._options, self._routing, written[0].task) as committer:
                committer.commit(batchId, written[0].task.run_id, [message.result for message in written])

    def abort(self, messages: Sequence[Any], batchId: int) -> None:  # noqa: N803
        written = [message for message in messages if message is not None and message.task is not None]
        if written:
            with _committing(self._options, self._routing, written[0].task) as committer:
                committer.abort(batchId, [message.result for message in written])


def _this_task() -> Task:
    context = TaskContext.get()
    assert context is not None, "Spark calls write in a task"
    query_id, batch_id = context.getLocalProperty(_QUERY_ID), context.getLocalProperty(_BATCH_ID)
    if query_id is None or batch_id is None:
        raise OptionError(
            f"option delivery is {Delivery.EXACTLY_ONCE.value}, which needs micro-batches: Spark does not say which "
            f"query and batch this is. Use a trigger of micro-batches, or {Delivery.AT_LEAST_ONCE.value}"
        )
    run_id = context.getLocalProperty(_RUN_ID) or ""
    return Task(query_id, run_id, int(batch_id), context.partitionId(), context.attemptNumber())


_committers: dict[str, tuple[str, Committer]] = {}
"""By query, with the start of it that each is for."""


class _committing:  # noqa: N801  # used like a function
    """The committer of a query, kept if all went well. One that failed is closed: the next reads the log anew."""

    def __init__(self, options: SinkOptions, routing: Routing, task: Task) -> None:
        self._options, self._routing, self._task = options, routing, task

    def __enter__(self) -> Committer:
        query_id, run_id = self._task.query_id, self._task.run_id
        known = _committers.pop(query_id, None)
        if known is not None and known[0] == run_id:
            self._committer = known[1]
            return self._committer
        if known is not None:
            known[1].close()
        while len(_committers) >= _MOST_COMMITTERS:
            _committers.pop(next(iter(_committers)))[1].close()
        options = self._options
        self._committer = Committer(options.settings, query_id, self._routing, fails_on_loss=options.fails_on_loss)
        return self._committer

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if error is not None:
            self._committer.close()
        else:
            _committers[self._task.query_id] = self._task.run_id, self._committer
