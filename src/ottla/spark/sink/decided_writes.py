"""Writes that are decided batch by batch: those of `writeStream`, and those within `foreachBatch`.

Spark makes a writer anew for every batch, but keeps the Python processes that commit. So a committer is kept in them,
with its connections, as long as the same start of a query comes back: a quicker way to what the log says, and no more.
With several queries there are several such processes, and each batch is committed by whichever is idle.
"""

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from ottla.spark.options import OptionError
from ottla.spark.sink.committer import Committer
from ottla.spark.sink.names import SinkNames
from ottla.spark.sink.rows import Routing
from ottla.spark.sink.sink_options import Delivery, SinkOptions
from ottla.spark.sink.task_writer import Task, TaskResult, stage_task, write_task

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types

_QUERY_ID: Final = "sql.streaming.queryId"
_BATCH_ID: Final = "streaming.sql.batchId"
_JOB_TAGS: Final = "spark.job.tags"
_SESSION: Final = re.compile(r"spark-session-([^,]+)-execution-root-id-\d+")
"""A start of a query has a session to itself, which Spark writes into the tags of all its jobs."""
_JOB_GROUP: Final = "spark.jobGroup.id"
"""The group of all jobs of a start, until a `foreachBatch` calls `setJobGroup`."""
_MOST_COMMITTERS: Final = 16


class Written(WriterCommitMessage):
    """A task's result on its way to the driver. `task` is None if there is nothing to decide on."""

    def __init__(self, task: Task | None, result: TaskResult) -> None:
        self.task = task
        self.result = result


def write_decided(
    options: SinkOptions, routing: Routing, batches: "Iterable[pa.RecordBatch]", *, name: str | None = None
) -> Written:
    """`name` tells apart several writes of one batch of a query: each is decided for itself."""
    task = _this_task(name, options.names)
    if options.delivery is Delivery.SINGLE_TRANSACTION:
        result = stage_task(
            task.number,
            options.settings,
            routing,
            batches,
            inline_bytes=options.inline_bytes,
            topic=options.names.staging_of(task.query_id),
        )
    else:
        result = write_task(task, options.settings, routing, batches, inline_bytes=options.inline_bytes)
    return Written(task, result)


def commit_decided(options: SinkOptions, routing: Routing, messages: Sequence[Any]) -> None:
    written = _written(messages)
    if written:
        task = written[0].task
        with _committing(options, routing, task) as committer:
            committer.commit(task.batch_id, task.run_id, [message.result for message in written])


def abort_decided(options: SinkOptions, routing: Routing, messages: Sequence[Any]) -> None:
    written = _written(messages)
    if written:
        task = written[0].task
        with _committing(options, routing, task) as committer:
            committer.abort(task.batch_id, [message.result for message in written])


def _written(messages: Sequence[Any]) -> list[Any]:
    return [message for message in messages if message is not None and message.task is not None]


def _this_task(name: str | None, names: SinkNames) -> Task:
    context = TaskContext.get()
    assert context is not None, "Spark calls write in a task"
    query_id, batch_id = context.getLocalProperty(_QUERY_ID), context.getLocalProperty(_BATCH_ID)
    if query_id is None or batch_id is None:
        raise OptionError(
            f"option delivery is {Delivery.EXACTLY_ONCE.value}, which needs a streaming query of micro-batches: "
            "use writeStream or foreachBatch, or another delivery"
        )
    run_id = start_of_query(context.getLocalProperty(_JOB_TAGS), context.getLocalProperty(_JOB_GROUP))
    query_id = query_id if name is None else f"{query_id}.{name}"
    return Task(query_id, run_id, int(batch_id), context.partitionId(), context.attemptNumber(), names)


def start_of_query(job_tags: str | None, job_group: str | None) -> str:
    """What tells one start of a query from another, of the properties that Spark gives a task."""
    found = _SESSION.search(job_tags or "")
    return found[1] if found is not None else job_group or ""


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
            try:
                self._committer.catch_up(self._task.batch_id, run_id)
            except BaseException:
                self._committer.close()
                raise
            return self._committer
        if known is not None:
            known[1].close()
        while len(_committers) >= _MOST_COMMITTERS:
            _committers.pop(next(iter(_committers)))[1].close()
        options = self._options
        self._committer = Committer(
            options.settings,
            query_id,
            self._routing,
            fails_on_loss=options.fails_on_loss,
            checks_rows=options.checks_rows,
            names=options.names,
        )
        return self._committer

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if error is not None:
            self._committer.close()
        else:
            _committers[self._task.query_id] = self._task.run_id, self._committer
