"""Producers and transactions: who writes, what is open, and ending what hangs (KIP-664)."""

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, NamedTuple

from ottla.base.ids import TopicPartition
from ottla.client.admin.asking import Asking
from ottla.client.admin.known_values import named
from ottla.client.admin.results import Outcome, Results, failure
from ottla.client.admin.routing import by_coordinator, by_leader, spread
from ottla.client.cluster.coordinators import CoordinatorKind
from ottla.client.errors import KafkaError, NotLeaderOrFollower, error_for
from ottla.client.topic_partition import by_topic
from ottla.wire import messages


class ProducerState(NamedTuple):
    """A producer as a partition's replica remembers it."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int | None
    coordinator_epoch: int | None
    current_transaction_start_offset: int | None
    """None if it has no transaction open."""


class TransactionState(Enum):
    UNKNOWN = "Unknown"
    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"


class TransactionListing(NamedTuple):
    transactional_id: str
    producer_id: int
    state: TransactionState
    coordinator_id: int


class TransactionDescription(NamedTuple):
    coordinator_id: int
    state: TransactionState
    producer_id: int
    producer_epoch: int
    transaction_timeout_ms: int
    transaction_start_ms: int | None
    """None if no transaction is open."""
    partitions: frozenset[TopicPartition]


class AbortTransaction(NamedTuple):
    """A transaction that hangs in one partition, as `describe_producers` tells of it."""

    partition: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int


class ProducerIdAndEpoch(NamedTuple):
    producer_id: int
    producer_epoch: int


async def describe_producers(
    asking: Asking,
    partitions: Iterable[TopicPartition],
    *,
    broker_id: int | None = None,
    timeout: float | None = None,
) -> Results[TopicPartition, tuple[ProducerState, ...]]:
    """The producers that have lately written to each partition, as its leader or the named broker knows them."""
    deadline = asking.deadline(timeout)

    async def ask(node_id: int, left: list[TopicPartition]) -> dict[TopicPartition, Outcome[tuple[ProducerState, ...]]]:
        request = messages.DescribeProducersRequest
        made = request(
            topics=[
                request.TopicRequest(name=topic, partition_indexes=[one.partition for one in of_topic])
                for topic, of_topic in by_topic(left).items()
            ]
        )
        await asking.know(node_id, deadline)
        response = await asking.once(node_id, made, deadline)
        return {
            TopicPartition(topic.name, one.partition_index): _producers(one)
            for topic in response.topics
            for one in topic.partitions
        }

    async def attempt(left: list[TopicPartition]) -> Mapping[TopicPartition, Outcome[tuple[ProducerState, ...]]]:
        if broker_id is not None:
            return await spread(asking, dict.fromkeys(left, broker_id), ask)
        return await by_leader(asking, ask, deadline)(left)

    def may_pass(error: KafkaError) -> bool:
        # A broker that is named and does not hold the partition will not come to hold it by waiting.
        return error.retriable and (broker_id is None or not isinstance(error, NotLeaderOrFollower))

    wanted = [TopicPartition(*partition) for partition in partitions]
    return await asking.each("describe_producers", wanted, attempt, deadline, may_pass=may_pass)


def _producers(entry: Any) -> Outcome[tuple[ProducerState, ...]]:
    if entry.error_code:
        return error_for(entry.error_code, entry.error_message)
    return tuple(
        ProducerState(
            one.producer_id,
            one.producer_epoch,
            one.last_sequence,
            None if one.last_timestamp < 0 else one.last_timestamp,
            None if one.coordinator_epoch < 0 else one.coordinator_epoch,
            None if one.current_txn_start_offset < 0 else one.current_txn_start_offset,
        )
        for one in entry.active_producers
    )


async def describe_transactions(
    asking: Asking, transactional_ids: Iterable[str], *, timeout: float | None = None
) -> Results[str, TransactionDescription]:
    """What each transactional id is doing. Fails with `TransactionalIdNotFound` where there is none."""
    deadline = asking.deadline(timeout)

    async def ask(node_id: int, left: list[str]) -> dict[str, Outcome[TransactionDescription]]:
        request = messages.DescribeTransactionsRequest(transactional_ids=left)
        response = await asking.once(node_id, request, deadline)
        return {one.transactional_id: _transaction(node_id, one) for one in response.transaction_states}

    return await asking.each(
        "describe_transactions",
        transactional_ids,
        by_coordinator(asking, CoordinatorKind.TRANSACTION, ask, deadline),
        deadline,
    )


def _transaction(coordinator_id: int, entry: Any) -> Outcome[TransactionDescription]:
    if entry.error_code:
        return error_for(entry.error_code)
    return TransactionDescription(
        coordinator_id,
        named(TransactionState, entry.transaction_state, TransactionState.UNKNOWN),
        entry.producer_id,
        entry.producer_epoch,
        entry.transaction_timeout_ms,
        None if entry.transaction_start_time_ms < 0 else entry.transaction_start_time_ms,
        frozenset(TopicPartition(topic.topic, index) for topic in entry.topics for index in topic.partitions),
    )


async def list_transactions(
    asking: Asking,
    *,
    states: Iterable[TransactionState] = (),
    producer_ids: Iterable[int] = (),
    running_longer_than_ms: int | None = None,
    transactional_id_pattern: str | None = None,
    timeout: float | None = None,
) -> list[TransactionListing]:
    """The transactional ids of all coordinators, or those that match everything given, in their order."""
    deadline = asking.deadline(timeout)
    request = messages.ListTransactionsRequest(
        state_filters=[state.value for state in states],
        producer_id_filters=list(producer_ids),
        duration_filter=-1 if running_longer_than_ms is None else running_longer_than_ms,
        transactional_id_pattern=transactional_id_pattern,
    )

    listings = (
        TransactionListing(
            one.transactional_id,
            one.producer_id,
            named(TransactionState, one.transaction_state, TransactionState.UNKNOWN),
            node_id,
        )
        for node_id, response in (await asking.every_broker(request, deadline)).items()
        for one in response.transaction_states
    )
    return sorted(listings, key=lambda one: one.transactional_id)


async def abort_transaction(asking: Asking, spec: AbortTransaction, *, timeout: float | None = None) -> None:
    """Ends a transaction that hangs in one partition, without its coordinator. What it wrote counts as aborted."""
    deadline = asking.deadline(timeout)
    partition = TopicPartition(*spec.partition)
    request = messages.WriteTxnMarkersRequest
    marker = request.WritableTxnMarker(
        producer_id=spec.producer_id,
        producer_epoch=spec.producer_epoch,
        transaction_result=False,
        topics=[request.WritableTxnMarkerTopic(name=partition.topic, partition_indexes=[partition.partition])],
        coordinator_epoch=spec.coordinator_epoch,
    )

    async def ask(node_id: int, _: list[TopicPartition]) -> dict[TopicPartition, Outcome[None]]:
        response = await asking.once(node_id, request(markers=[marker]), deadline)
        return {
            TopicPartition(topic.name, one.partition_index): failure(one)
            for entry in response.markers
            for topic in entry.topics
            for one in topic.partitions
        }

    (await asking.each("abort_transaction", [partition], by_leader(asking, ask, deadline), deadline)).raise_first()


async def fence_producers(
    asking: Asking, transactional_ids: Iterable[str], *, timeout: float | None = None
) -> Results[str, ProducerIdAndEpoch]:
    """Shuts out the producers that use these ids now, and aborts what they have open."""
    deadline = asking.deadline(timeout)

    async def ask(node_id: int, left: list[str]) -> dict[str, Outcome[ProducerIdAndEpoch]]:
        # The id is only taken over to fence, so its own transactions need no time.
        answers = await asking.together(
            asking.once(
                node_id, messages.InitProducerIdRequest(transactional_id=one, transaction_timeout_ms=1), deadline
            )
            for one in left
        )
        return {one: _fenced(answer) for one, answer in zip(left, answers, strict=True)}

    return await asking.each(
        "fence_producers",
        transactional_ids,
        by_coordinator(asking, CoordinatorKind.TRANSACTION, ask, deadline),
        deadline,
    )


def _fenced(entry: Any) -> Outcome[ProducerIdAndEpoch]:
    if isinstance(entry, KafkaError):
        return entry
    return (
        error_for(entry.error_code) if entry.error_code else ProducerIdAndEpoch(entry.producer_id, entry.producer_epoch)
    )


async def force_terminate_transaction(asking: Asking, transactional_id: str, *, timeout: float | None = None) -> None:
    """Aborts whatever an id has open, even a transaction that waits for an outside coordinator (KIP-939)."""
    (await fence_producers(asking, [transactional_id], timeout=timeout)).raise_first()
