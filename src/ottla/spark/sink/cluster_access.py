"""What the sink asks of a cluster beyond an admin's calls: ends of other processes' transactions, and raw batches.

A transaction may be ended by anyone who knows its id, producer id and epoch. That is what lets tasks write and the
driver commit. Ending it again is answered like the first time, in both protocols of transactions, so a request whose
answer was lost is sent again without harm.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from ottla.base.ids import TopicPartition
from ottla.base.ports import Buffer
from ottla.client.admin.asking import Asking
from ottla.client.admin.results import Outcome
from ottla.client.admin.routing import by_coordinator, by_leader, leaders
from ottla.client.blocking.admin import Admin
from ottla.client.cluster.coordinators import CoordinatorKind
from ottla.client.errors import (
    KafkaError,
    OffsetOutOfRange,
    RetriableError,
    ThrottlingQuotaExceeded,
    UnknownTopicOrPartition,
    error_for,
)
from ottla.client.promise import spawn
from ottla.config.scopes import Scope
from ottla.config.scopes import settings as settings_of
from ottla.records.batch import complete_batches
from ottla.records.header import BatchHeader
from ottla.spark.sink.decision import TaskTransaction
from ottla.wire.messages import EndTxnRequest, FetchRequest

_LAST_END_TXN_BEFORE_V2: Final = 4
_LAST_FETCH_WITH_TOPIC_NAMES: Final = 12
_READ_COMMITTED: Final = 1
_NO_SESSION: Final = -1


_PATIENCE_MS: Final = "40000"
_reached: set[str] = set()
"""The clusters that this process has reached: Spark makes a writer for each micro-batch."""


class Unreachable(KafkaError):
    """The brokers of option `kafka.bootstrap.servers` did not answer the driver, so nothing was written.

    Check the addresses, that they can be reached from the driver, and `kafka.security.protocol`.
    """


def check_reachable(settings: Mapping[str, str]) -> None:
    """Asks the cluster for its name where the write is planned: tasks would each wait, and Spark try them again.

    Raises `Unreachable` within a minute, or sooner with `kafka.default.api.timeout.ms`.
    """
    servers = settings["bootstrap.servers"]
    if servers in _reached:
        return
    try:
        with ClusterAccess({"default.api.timeout.ms": _PATIENCE_MS, **settings}) as access:
            access.describe_cluster()
    except RetriableError as problem:
        raise Unreachable(f"the brokers of option kafka.bootstrap.servers ({servers}): {problem}") from problem
    _reached.add(servers)


class FetchedBatches(NamedTuple):
    """A piece of a partition's log. only a read-committed fetch gets `aborted`."""

    log_start_offset: int
    high_watermark: int
    last_stable_offset: int
    aborted: frozenset[tuple[int, int]]
    """Producer id and first offset of each aborted transaction that reaches into these batches."""
    records: memoryview
    """The caller's own, to be written to."""

    def batches(self) -> Iterator[tuple[int, BatchHeader]]:
        return complete_batches(self.records)


class ClusterAccess(Admin):
    """An admin that also ends other processes' transactions, and reads logs batch by batch.

    Of a producer's settings it takes those that an admin has too: how to reach the cluster, and for how long to try.
    """

    def __init__(self, settings: Mapping[str, object]) -> None:
        known = settings_of(Scope.ADMIN)
        super().__init__({key: value for key, value in settings.items() if key in known})

    def end_transactions(
        self, transactions: Iterable[TaskTransaction], *, commits: bool
    ) -> Mapping[str, KafkaError | None]:
        """Asks for the same end of all of them at once. Tells by transactional id what stood in the way, or None."""
        by_id = {one.transactional_id: one for one in transactions}
        return self._loop.ask(lambda: spawn(_end_transactions(self._asking, by_id, commits)))

    def has_partition(self, partition: TopicPartition) -> bool:
        """Whether a broker knows it now. One that has not heard of a new topic yet says no."""
        found = self._loop.ask(lambda: spawn(leaders(self._asking, [partition], self._asking.deadline(None))))
        return not isinstance(found[partition], UnknownTopicOrPartition)

    def fetch(
        self, partition: TopicPartition, offset: int, *, committed: bool = False, max_bytes: int = 8 << 20
    ) -> FetchedBatches:
        """What is in the log from an offset on, now. Raises `OffsetOutOfRange` if retention has taken that."""
        return self.begin_fetch(partition, offset, committed=committed, max_bytes=max_bytes)()

    def begin_fetch(
        self, partition: TopicPartition, offset: int, *, committed: bool = False, max_bytes: int = 8 << 20
    ) -> Callable[[], FetchedBatches]:
        """The same for a caller who has other things to do meanwhile. What is returned waits for the answer."""
        self._loop.check()
        with self._loop.lock, self._loop.step:
            fetched = spawn(_fetch(self._asking, partition, offset, committed, max_bytes))
        return lambda: self._loop.ask(lambda: fetched)


async def _end_transactions(
    asking: Asking, transactions: Mapping[str, TaskTransaction], commits: bool
) -> Mapping[str, KafkaError | None]:
    deadline = asking.deadline(None)

    async def end(node_id: int, transaction: TaskTransaction) -> None:
        request = EndTxnRequest(
            transactional_id=transaction.transactional_id,
            producer_id=transaction.producer_id,
            producer_epoch=transaction.producer_epoch,
            committed=commits,
        )
        newest = None if transaction.is_v2 else _LAST_END_TXN_BEFORE_V2
        response = await asking.once(node_id, request, deadline, newest=newest)
        if response.error_code:
            raise error_for(response.error_code)

    async def ask(node_id: int, left: list[str]) -> dict[str, Outcome[None]]:
        answers = await asking.together(end(node_id, transactions[one]) for one in left)
        return dict(zip(left, answers, strict=True))

    attempt = by_coordinator(asking, CoordinatorKind.TRANSACTION, ask, deadline)
    results = await asking.each("end_transactions", transactions, attempt, deadline)
    return {one: results.errors.get(one) for one in transactions}


async def _fetch(
    asking: Asking, partition: TopicPartition, offset: int, committed: bool, max_bytes: int
) -> FetchedBatches:
    deadline = asking.deadline(None)

    async def ask(node_id: int, _: list[TopicPartition]) -> dict[TopicPartition, Outcome[FetchedBatches]]:
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=max_bytes,
            isolation_level=_READ_COMMITTED if committed else 0,
            session_epoch=_NO_SESSION,
            topics=[
                FetchRequest.FetchTopic(
                    topic=partition.topic,
                    partitions=[
                        FetchRequest.FetchPartition(
                            partition=partition.partition, fetch_offset=offset, partition_max_bytes=max_bytes
                        )
                    ],
                )
            ],
        )
        response = await asking.once(node_id, request, deadline, newest=_LAST_FETCH_WITH_TOPIC_NAMES)
        if response.error_code:
            raise error_for(response.error_code)
        if not response.responses:  # as a broker answers when the client has used up its quota
            throttled = (
                f"the broker sent nothing of {partition}: for {response.throttle_time_ms} ms the quota is used up"
            )
            return {partition: ThrottlingQuotaExceeded(throttled)}
        return {partition: _fetched(partition, response.responses[0].partitions[0])}

    return (await asking.each("fetch", [partition], by_leader(asking, ask, deadline), deadline))[partition]


def _fetched(partition: TopicPartition, answer: Any) -> Outcome[FetchedBatches]:
    if answer.error_code == OffsetOutOfRange.code:
        return OffsetOutOfRange(f"the log of {partition} begins at offset {answer.log_start_offset}")
    if answer.error_code:
        return error_for(answer.error_code, f"reading {partition}")
    return FetchedBatches(
        answer.log_start_offset,
        answer.high_watermark,
        answer.last_stable_offset,
        frozenset((one.producer_id, one.first_offset) for one in answer.aborted_transactions or ()),
        _writable(answer.records or b""),
    )


def _writable(records: Buffer) -> memoryview:
    """Large responses have a buffer to themselves; small ones are `bytes`."""
    view = memoryview(records)
    return memoryview(bytearray(view)) if view.readonly else view
