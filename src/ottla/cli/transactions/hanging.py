"""Transactions that hang: open in a partition, and no coordinator knows that it has to end them there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ottla.base.ids import TopicPartition

if TYPE_CHECKING:
    from ottla.client.admin.transaction_states import ProducerState
    from ottla.client.blocking.admin import Admin

HANGING_COLUMNS = [
    "Topic",
    "Partition",
    "ProducerId",
    "ProducerEpoch",
    "CoordinatorEpoch",
    "StartOffset",
    "LastTimestamp",
    "Duration(min)",
]


class OpenTransaction(NamedTuple):
    partition: TopicPartition
    producer: ProducerState


def hanging_transactions(
    admin: Admin, partitions: Sequence[TopicPartition], broker_id: int | None, timeout_ms: int, now_ms: int
) -> list[OpenTransaction]:
    """A transaction is suspect once it is open for longer than any may be."""
    suspects = list(_open_for_long(admin, partitions, broker_id, timeout_ms, now_ms))
    if not suspects:
        return []
    expected = _expected_ends(admin, {one.producer.producer_id for one in suspects})
    return [one for one in suspects if one.partition not in expected.get(one.producer.producer_id, frozenset())]


def _open_for_long(
    admin: Admin, partitions: Sequence[TopicPartition], broker_id: int | None, timeout_ms: int, now_ms: int
) -> Iterable[OpenTransaction]:
    if not partitions:
        return
    for partition, producers in admin.describe_producers(partitions, broker_id=broker_id).raise_first().items():
        for producer in producers:
            if producer.current_transaction_start_offset is None:
                continue
            if now_ms - (producer.last_timestamp_ms or 0) > timeout_ms:
                yield OpenTransaction(partition, producer)


def _expected_ends(admin: Admin, producer_ids: set[int]) -> dict[int, frozenset[TopicPartition]]:
    """By producer id, the partitions in which a coordinator is still going to end the transaction."""
    ids = {one.transactional_id: one.producer_id for one in admin.list_transactions(producer_ids=producer_ids)}
    if not ids:
        return {}
    described = admin.describe_transactions(ids)
    described.errors  # noqa: B018 - an id that is gone meanwhile has nothing to end
    return {ids[name]: found.partitions for name, found in described.succeeded.items()}


def hanging_row(transaction: OpenTransaction, now_ms: int) -> list[str]:
    """As a table shows it."""
    partition, producer = transaction
    last_ms = producer.last_timestamp_ms or -1
    return [
        partition.topic,
        str(partition.partition),
        str(producer.producer_id),
        str(producer.producer_epoch),
        str(-1 if producer.coordinator_epoch is None else producer.coordinator_epoch),
        str(producer.current_transaction_start_offset),
        str(last_ms),
        str((now_ms - last_ms) // 60_000),
    ]
