"""What a task does with its rows: it hands few of them to the driver, and writes many in a transaction of its own.

Theory of operation. A task cannot know whether its rows will count: it may be tried again, run twice, or be part of a
batch that fails. So it never commits. Rows up to `inline_bytes` go to the driver within the task's result, and the
driver writes them together with its decision. More rows are written in a transaction that the task flushes and leaves
open; the result names it, and where its rows are. The driver commits it, or aborts it, or a task that is killed leaves
it to the driver's next look for leftovers.

Its transactional id is made of query, task and attempt, and used again in every batch: a coordinator remembers ids for
a week. Beginning fences the attempt of the same name in an older batch.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from random import randrange
from time import monotonic
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.client.blocking.producer import Producer
from ottla.client.errors import (
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    InvalidTxnState,
    KafkaError,
    ProducerFenced,
    TransactionAbortable,
)
from ottla.spark.sink import staging
from ottla.spark.sink.cluster_access import ClusterAccess
from ottla.spark.sink.decision import Piece, TaskTransaction
from ottla.spark.sink.decision_log import last_decision
from ottla.spark.sink.digest import DigestedRows, RowsDigest
from ottla.spark.sink.names import SinkNames
from ottla.spark.sink.row_sender import RowSender, check_partition, chunks, split_off_inline
from ottla.spark.sink.rows import Routing
from ottla.spark.sink.staging import StagedPiece

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types

    from ottla.client.producer.arrow_rows import ArrowDelivery

_MOST_RUNS_SEEN: Final = 100
_STAGING: Final = SinkNames().staging
INLINE_BYTES: Final = 64 << 10
_DEFAULTS: Final = {"batch.size": 512 << 10, "transaction.timeout.ms": 600_000}
"""Rows come many at a time. A batch may run for minutes between its first task and its decision."""


_ENDED: Final = (
    ProducerFenced,
    InvalidProducerEpoch,
    InvalidTxnState,
    InvalidProducerIdMapping,
    TransactionAbortable,
)
"""What a producer hears whose transaction was ended by somebody else, the coordinator for example."""


class TaskTookTooLong(KafkaError):
    """A task wrote for longer than a transaction may last, so the coordinator has aborted what it wrote.

    Raise `kafka.transaction.timeout.ms` (the brokers allow up to their `transaction.max.timeout.ms`), or have more and
    smaller tasks: `repartition`, or `maxOffsetsPerTrigger` at the source.
    """


class TaskResult(NamedTuple):
    """What a task tells the driver. Either way empty if it had no rows."""

    inline: "pa.Table | None" = None
    transaction: TaskTransaction | None = None
    staged: tuple[StagedPiece, ...] = ()
    digest: RowsDigest = RowsDigest()
    """Of all its rows, also if they are passed over because their batch is decided already."""


class Task(NamedTuple):
    """Which attempt of which task, in which batch of which start of a query."""

    query_id: str
    run_id: str
    batch_id: int
    number: int
    attempt: int
    names: SinkNames = SinkNames()

    @property
    def transactional_id(self) -> str:
        return f"{self.names.task_prefix(self.query_id)}{self.number}.{self.attempt}"


def write_task(
    task: Task,
    settings: Mapping[str, object],
    routing: Routing,
    batches: Iterable["pa.RecordBatch"],
    *,
    inline_bytes: int = INLINE_BYTES,
) -> TaskResult:
    """Writes a task's rows, or hands them over. If the batch is decided already it reads them, and no more: the
    driver then looks whether they are those that were decided on.
    """
    rows = DigestedRows(routing, batches)
    inline, rest = split_off_inline(rows, inline_bytes)
    if rest is None:
        return TaskResult(inline, digest=rows.digest)
    if _is_decided(task, settings):
        deque(rest, maxlen=0)
        return TaskResult(digest=rows.digest)
    given = {**_DEFAULTS, **settings, "transactional.id": task.transactional_id}
    producer = Producer(given)
    try:
        timeout_ms = int(str(given["transaction.timeout.ms"]))
        transaction = _write_in_transaction(producer, task, routing, rest, timeout_ms)
    finally:
        producer.close(0)  # with time, it would abort what is to stay open
    assert transaction.row_count == rows.digest.row_count, "every row that came was written"
    return TaskResult(transaction=transaction, digest=rows.digest)


def stage_task(
    task_index: int,
    settings: Mapping[str, object],
    routing: Routing,
    batches: Iterable["pa.RecordBatch"],
    *,
    inline_bytes: int = INLINE_BYTES,
    topic: str = _STAGING,
) -> TaskResult:
    """Hands a task's rows over, or writes them to the staging topic, for the driver to copy."""
    rows = DigestedRows(routing, batches)
    inline, rest = split_off_inline(rows, inline_bytes)
    if rest is None:
        return TaskResult(inline, digest=rows.digest)
    with ClusterAccess(settings) as access:
        staging.create_topic(access, topic)
    staged_in = task_index % staging.PARTITIONS
    staged: list[StagedPiece] = []
    under_way: deque[tuple[str, int, ArrowDelivery]] = deque()
    with Producer({**_DEFAULTS, **settings}) as producer:
        for chunk in chunks(rest):
            for routed in routing.routes(chunk):
                count = check_partition(producer, routed)
                keyless = randrange(count)
                for partition, part in staging.place(routed, count, keyless):
                    delivery = producer.send_arrow(topic, part, partition=staged_in)
                    under_way.append((routed.topic, partition, delivery))
            while under_way and under_way[0][2].done():
                staged += _staged(topic, *under_way.popleft())
        while under_way:
            staged += _staged(topic, *under_way.popleft())
    return TaskResult(staged=tuple(staged), digest=rows.digest)


def _staged(staging_topic: str, topic: str, partition: int, delivery: "ArrowDelivery") -> list[StagedPiece]:
    delivery.result()
    return [
        StagedPiece(Piece(staging_topic, staged_in, first, first + count - 1, count), topic, partition)
        for staged_in, first, count in delivery.written()
    ]


def send_task(settings: Mapping[str, object], routing: Routing, batches: Iterable["pa.RecordBatch"]) -> None:
    """Writes a task's rows without a transaction: at least once, and again if the task is tried again."""
    with Producer({**_DEFAULTS, **settings}) as producer:
        sender = RowSender(producer, routing)
        for rows in chunks(batches):
            sender.send(rows)
        sender.finish()


def _write_in_transaction(
    producer: Producer, task: Task, routing: Routing, batches: Iterable["pa.RecordBatch"], timeout_ms: int
) -> TaskTransaction:
    """Writes and flushes the rows, and leaves the transaction open. It is aborted if that fails."""
    producer.begin()
    began_s = monotonic()
    try:
        sender = RowSender(producer, routing)
        for rows in chunks(batches):
            sender.send(rows)
        pieces = sender.finish()
        return TaskTransaction(task.transactional_id, *producer.transaction_identity(), pieces)
    except BaseException as problem:
        with suppress(KafkaError):  # what went wrong first is what the user has to know; the driver looks for leftovers
            producer.abort()
        timeout_s = timeout_ms / 1000
        if isinstance(problem, _ENDED) and (took_s := monotonic() - began_s) >= timeout_s:
            raise TaskTookTooLong(
                f"task {task.number} wrote for {took_s:.0f} s, and kafka.transaction.timeout.ms is {timeout_s:.0f} s"
            ) from problem
        raise


_runs_seen: dict[tuple[str, str], int] = {}
"""The batch that was decided last, by query and start of it. Only a start's first batch can be decided before."""


def _is_decided(task: Task, settings: Mapping[str, object]) -> bool:
    """Beginning a transaction under the name of a decided one would abort it."""
    run = task.query_id, task.run_id
    if run not in _runs_seen:
        with ClusterAccess(settings) as access:
            is_there = access.has_partition(task.names.decisions_of(task.query_id))
            last = last_decision(access, task.names, task.query_id) if is_there else None
        if len(_runs_seen) >= _MOST_RUNS_SEEN:
            _runs_seen.clear()
        _runs_seen[run] = -1 if last is None else last.decision.batch_id
    return _runs_seen[run] >= task.batch_id
