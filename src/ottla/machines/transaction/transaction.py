"""One transactional id as the log has it, and its transitions.

A `Transaction` never changes: a transition makes the next one, which is written to the log, and which replay reads back
from it. What is here is therefore exactly what survives a change of coordinators.

Epochs. 32767 is kept free, so that a coordinator can always fence the producer that it has by one more step; a producer
at 32766 gets a new producer id next. In the newer protocol that id is chosen when the end is prepared, waits in
`next_producer_id` while markers of the old id are written, and takes over when they are.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from ottla.base.ids import TopicPartition
from ottla.machines.transaction.settings import EPOCH_BUMPS
from ottla.machines.transaction.states import AT_REST, MAY_FOLLOW, PREPARED, TransactionState
from ottla.wire.messages import TransactionLogValue

NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_TIME: Final = -1
MAX_EPOCH: Final = 0x7FFF
LAST_CLIENT_EPOCH: Final = MAX_EPOCH - 1
NEVER_MS: Final = 0x7FFFFFFF
"""The timeout of a transaction that takes part in two-phase commit (KIP-939): it waits for its owner."""

_PartitionsSchema = TransactionLogValue.PartitionsSchema


@dataclass(frozen=True, slots=True)
class Transaction:
    """See the module. `client_version` is the `transaction.version` that the producer has shown to speak."""

    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    start_ms: int = NO_TIME
    last_update_ms: int = NO_TIME
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    client_version: int = 0

    # Asking

    @property
    def is_epoch_exhausted(self) -> bool:
        return self.producer_epoch >= LAST_CLIENT_EPOCH

    @property
    def bumps_epochs(self) -> bool:
        return self.client_version >= EPOCH_BUMPS

    def has_timed_out(self, now_ms: int) -> bool:
        if self.state is not TransactionState.ONGOING or self.timeout_ms == NEVER_MS:
            return False
        return self.start_ms + self.timeout_ms < now_ms

    # Becoming

    def with_epoch(self, producer_id: int, producer_epoch: int, timeout_ms: int, now_ms: int) -> "Transaction":
        """The producer with this epoch owns the id now (InitProducerId)."""
        return self._become(
            TransactionState.EMPTY,
            now_ms,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            timeout_ms=timeout_ms,
            partitions=frozenset(),
            start_ms=NO_TIME,
        )

    def with_partitions(self, partitions: Iterable[TopicPartition], client_version: int, now_ms: int) -> "Transaction":
        """The transaction reaches these partitions too; the first of them begin it."""
        return self._become(
            TransactionState.ONGOING,
            now_ms,
            partitions=self.partitions.union(partitions),
            start_ms=now_ms if self.state in AT_REST else self.start_ms,
            client_version=client_version,
        )

    def prepared(
        self,
        state: TransactionState,
        producer_epoch: int,
        now_ms: int,
        *,
        client_version: int,
        next_producer_id: int = NO_PRODUCER_ID,
    ) -> "Transaction":
        """The end is decided, and markers carry `producer_epoch`. Where nothing was begun, it begins and ends now."""
        assert producer_epoch <= MAX_EPOCH
        return self._become(
            state,
            now_ms,
            producer_epoch=producer_epoch,
            start_ms=now_ms if self.state in AT_REST else self.start_ms,
            next_producer_id=next_producer_id,
            client_version=client_version,
        )

    def completed(self, now_ms: int) -> "Transaction":
        """All markers are written."""
        committed = self.state is TransactionState.PREPARE_COMMIT
        rotates = self.bumps_epochs and self.next_producer_id != NO_PRODUCER_ID
        return self._become(
            TransactionState.COMPLETE_COMMIT if committed else TransactionState.COMPLETE_ABORT,
            now_ms,
            producer_id=self.next_producer_id if rotates else self.producer_id,
            producer_epoch=0 if rotates else self.producer_epoch,
            next_producer_id=NO_PRODUCER_ID,
            partitions=frozenset(),
        )

    def _become(self, state: TransactionState, now_ms: int, **changes: object) -> "Transaction":
        assert self.state in MAY_FOLLOW[state], f"{state.name} cannot follow {self.state.name}"
        became = replace(
            self,
            state=state,
            last_update_ms=now_ms,
            previous_producer_id=self.producer_id,
            **changes,  # type: ignore[arg-type]
        )
        assert became.producer_epoch >= 0 and became.producer_id >= 0
        assert became.state not in PREPARED or became.start_ms != NO_TIME
        return became

    # In the log

    def record(self, version: int) -> TransactionLogValue:
        """The value to be written. Which producer id came before and comes next has no place in version 0."""
        value = TransactionLogValue(
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            transaction_timeout_ms=self.timeout_ms,
            transaction_status=self.state,
            transaction_partitions=None if self.state is TransactionState.EMPTY else _by_topic(self.partitions),
            transaction_last_update_timestamp_ms=self.last_update_ms,
            transaction_start_timestamp_ms=self.start_ms,
        )
        if version >= 1:
            value.previous_producer_id = self.previous_producer_id
            value.next_producer_id = self.next_producer_id
            value.client_transaction_version = self.client_version
        return value

    @classmethod
    def of_record(cls, value: TransactionLogValue) -> "Transaction":
        return cls(
            producer_id=value.producer_id,
            producer_epoch=value.producer_epoch,
            timeout_ms=value.transaction_timeout_ms,
            state=TransactionState(value.transaction_status),
            partitions=frozenset(
                TopicPartition(schema.topic, index)
                for schema in value.transaction_partitions or ()
                for index in schema.partition_ids
            ),
            start_ms=value.transaction_start_timestamp_ms,
            last_update_ms=value.transaction_last_update_timestamp_ms,
            previous_producer_id=value.previous_producer_id,
            next_producer_id=value.next_producer_id,
            client_version=value.client_transaction_version,
        )


def _by_topic(partitions: Iterable[TopicPartition]) -> list[TransactionLogValue.PartitionsSchema]:
    by_topic: dict[str, list[int]] = {}
    for topic, index in sorted(partitions):
        by_topic.setdefault(topic, []).append(index)
    return [_PartitionsSchema(topic=topic, partition_ids=indexes) for topic, indexes in by_topic.items()]
