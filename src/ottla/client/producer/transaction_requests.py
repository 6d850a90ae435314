"""What a transactional producer asks of coordinators: each request until it succeeds or cannot (KIP-98, 360, 447, 890).

Every call here tries again for as long as errors are retriable; what cannot be repaired is raised. An epoch that the
coordinator calls old means that a newer producer has taken over, whatever it calls it: `ProducerFenced`.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple, Protocol

from ottla.base.ids import TopicPartition
from ottla.client.cluster.cluster import Cluster
from ottla.client.cluster.coordinators import CoordinatorKind, Coordinators
from ottla.client.errors import CommitFailed, KafkaError, ProducerFenced, TransactionAborted, error_for
from ottla.client.producer.partition_queue import Identity
from ottla.client.producer.producer_settings import ProducerSettings
from ottla.client.topic_partition import OffsetAndMetadata
from ottla.wire.apis import ApiKey
from ottla.wire.errors import ErrorCode
from ottla.wire.exchange.open_request import Ask
from ottla.wire.messages import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
)

_LAST_ADD_PARTITIONS_OF_CLIENTS: Final = 3
_LAST_END_TXN_BEFORE_V2: Final = 4
_LAST_TXN_OFFSET_COMMIT_BEFORE_V2: Final = 4
_FIRST_INIT_WITH_EPOCH: Final = 3
_FIRST_COMMIT_WITH_MEMBER: Final = 3
_FIRST_COMMIT_WITH_LEADER_EPOCH: Final = 2
_COORDINATOR_MOVED: Final = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)
_FENCED: Final = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED)
_LEFT_THE_GROUP: Final = (
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.STALE_MEMBER_EPOCH,
)
_CONCURRENT_PAUSE_MS: Final = 20


class GroupMember(Protocol):
    """Who consumed what a transaction has processed: `consumer.group_metadata()` (KIP-447)."""

    @property
    def group_id(self) -> str: ...
    @property
    def generation_id(self) -> int: ...
    @property
    def member_id(self) -> str: ...
    @property
    def group_instance_id(self) -> str | None: ...


class GroupOnly(NamedTuple):
    """A group by its name alone: the coordinator cannot tell whether the partitions are still ours."""

    group_id: str
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None


class TransactionRequests:
    """Of one transactional id."""

    def __init__(self, cluster: Cluster, coordinators: Coordinators, settings: ProducerSettings) -> None:
        assert settings.transactional_id is not None, "no transactions without an id"
        self._cluster = cluster
        self._coordinators = coordinators
        self.transactional_id: str = settings.transactional_id
        self._timeout_ms = settings.transaction_timeout_ms
        self._request_timeout_s = settings.request_timeout_ms / 1000
        self.last_problem: KafkaError | None = None
        """Why the request that is tried again did not succeed yet."""

    async def init(self, identity: Identity) -> Identity:
        """An id and epoch for this producer; the next epoch for one that has an identity (KIP-360)."""

        def request(version: int) -> InitProducerIdRequest:
            asked = InitProducerIdRequest(
                transactional_id=self.transactional_id, transaction_timeout_ms=self._timeout_ms
            )
            if version >= _FIRST_INIT_WITH_EPOCH:
                asked.producer_id, asked.producer_epoch = identity
            return asked

        response = await self._ask(request, ApiKey.INIT_PRODUCER_ID)
        return Identity(response.producer_id, response.producer_epoch)

    async def add_partitions(self, identity: Identity, partitions: Iterable[TopicPartition]) -> None:
        topics = [
            AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=name, partitions=indexes)
            for name, indexes in _by_topic({partition: partition.partition for partition in partitions}).items()
        ]

        def request(version: int) -> AddPartitionsToTxnRequest:
            return AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self.transactional_id,
                v3_and_below_producer_id=identity.producer_id,
                v3_and_below_producer_epoch=identity.producer_epoch,
                v3_and_below_topics=topics,
            )

        await self._ask(request, ApiKey.ADD_PARTITIONS_TO_TXN, newest=_LAST_ADD_PARTITIONS_OF_CLIENTS)

    async def add_offsets(self, identity: Identity, group_id: str, is_over: Callable[[], bool]) -> None:
        """`is_over` tells whether the transaction is given up: then it is not tried again (`TransactionAborted`)."""
        request = AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            group_id=group_id,
        )
        await self._ask(request, ApiKey.ADD_OFFSETS_TO_TXN, is_over=is_over)

    async def commit_offsets(
        self,
        identity: Identity,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        group: GroupMember,
        is_over: Callable[[], bool],
        *,
        is_v2: bool,
    ) -> None:
        def request(version: int) -> TxnOffsetCommitRequest:
            has_epoch = version >= _FIRST_COMMIT_WITH_LEADER_EPOCH
            asked = TxnOffsetCommitRequest(
                transactional_id=self.transactional_id,
                group_id=group.group_id,
                producer_id=identity.producer_id,
                producer_epoch=identity.producer_epoch,
                topics=[
                    TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(name=name, partitions=partitions)
                    for name, partitions in _by_topic(_commits(offsets, has_epoch=has_epoch)).items()
                ],
            )
            if version >= _FIRST_COMMIT_WITH_MEMBER:
                asked.generation_id = group.generation_id
                asked.member_id = group.member_id
                asked.group_instance_id = group.group_instance_id
            return asked

        await self._ask(
            request,
            ApiKey.TXN_OFFSET_COMMIT,
            newest=None if is_v2 else _LAST_TXN_OFFSET_COMMIT_BEFORE_V2,
            kind=CoordinatorKind.GROUP,
            key=group.group_id,
            is_over=is_over,
        )

    async def end(self, identity: Identity, *, commits: bool, is_v2: bool) -> Identity:
        """Commits or aborts. Returns who the producer is after it."""
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            committed=commits,
        )
        response = await self._ask(request, ApiKey.END_TXN, newest=None if is_v2 else _LAST_END_TXN_BEFORE_V2)
        if response.producer_id < 0:
            return identity
        return Identity(response.producer_id, response.producer_epoch)

    async def _ask(
        self,
        request: Ask,
        api_key: ApiKey,
        *,
        newest: int | None = None,
        kind: CoordinatorKind = CoordinatorKind.TRANSACTION,
        key: str | None = None,
        is_over: Callable[[], bool] = lambda: False,
    ) -> Any:
        key = self.transactional_id if key is None else key
        world = self._cluster.world
        failures = 0
        while True:
            try:
                deadline_s = world.now_s() + self._request_timeout_s
                response = await self._coordinators.ask(kind, key, request, deadline_s, api_key=api_key, newest=newest)
                for code in _codes(response):
                    _raise(code)
                self.last_problem = None
                return response
            except KafkaError as problem:
                if not problem.retriable:
                    raise
                self.last_problem = problem
                if problem.code in _COORDINATOR_MOVED:
                    self._coordinators.forget(kind, key)
                pause_ms = self._cluster.backoff.after(failures, world.entropy)
                if problem.code == ErrorCode.CONCURRENT_TRANSACTIONS and api_key == ApiKey.ADD_PARTITIONS_TO_TXN:
                    pause_ms = min(pause_ms, _CONCURRENT_PAUSE_MS)
            await world.sleep(pause_ms)
            if is_over():
                raise TransactionAborted
            failures += 1


def _raise(code: int) -> None:
    if code == ErrorCode.NONE:
        return
    if code in _FENCED:
        raise ProducerFenced
    if code in _LEFT_THE_GROUP:
        raise CommitFailed(str(error_for(code)))
    raise error_for(code)


def _codes(response: Any) -> list[int]:
    """All error codes in it. One that makes a request hopeless comes before those that trying again may mend."""
    codes = [response.error_code] if hasattr(response, "error_code") else []
    for topic in getattr(response, "results_by_topic_v3_and_below", ()):
        codes += [result.partition_error_code for result in topic.results_by_partition]
    for topic in getattr(response, "topics", ()):
        codes += [partition.error_code for partition in topic.partitions]
    unattempted = ErrorCode.OPERATION_NOT_ATTEMPTED
    return sorted(
        (code for code in codes if code != ErrorCode.NONE),
        key=lambda code: (code == unattempted, error_for(code).retriable),
    )


def _commits(
    offsets: Mapping[TopicPartition, OffsetAndMetadata], *, has_epoch: bool
) -> dict[TopicPartition, TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition]:
    commits = {}
    for partition, place in offsets.items():
        commit = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(
            partition_index=partition.partition, committed_offset=place.offset, committed_metadata=place.metadata
        )
        if has_epoch and place.leader_epoch is not None:
            commit.committed_leader_epoch = place.leader_epoch
        commits[partition] = commit
    return commits


def _by_topic(items: Mapping[TopicPartition, Any]) -> dict[str, list[Any]]:
    topics: dict[str, list[Any]] = {}
    for partition, item in items.items():
        topics.setdefault(partition.topic, []).append(item)
    return topics
