"""The transactional batches of one Produce: which of them the coordinator has to be asked about, and what it said.

Versions up to 11 come from clients that have announced their partitions to the coordinator, which is looked up. From
version 12 on the broker tells it (KIP-890). Batches of a transaction that is open in their partition, and repetitions
of batches that were taken, need neither.
"""

from collections.abc import Callable
from typing import Final

from ottla.base.ids import TopicPartition
from ottla.base.lent import Seen
from ottla.broker.data.batch_checks import keep_records
from ottla.broker.partitions.held_partitions import Partitions
from ottla.broker.partitions.partition import Partition
from ottla.broker.transactions.coordinator_questions import Producer
from ottla.broker.transactions.transaction_verification import (
    Guard,
    Verifications,
    as_a_producer_gets_it,
    check_guarded,
    has_open_transaction,
)
from ottla.records.batch import read_header
from ottla.records.header import BatchHeader, CorruptBatch
from ottla.runtime.request import ClientConnection
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import ProduceRequest

_USES_TOPIC_IDS: Final = 13
_ADDS_PARTITIONS: Final = 12
_KNOWS_ABORTABLE: Final = 11


class TransactionalBatches:
    """See the module. `ask` first; then `check` for each batch, in the same turn of the loop."""

    __slots__ = (
        "_adds_partitions",
        "_errors",
        "_guards",
        "_is_checked",
        "_is_mixed",
        "_name",
        "_partitions",
        "_verifications",
        "_version",
    )

    def __init__(
        self, partitions: Partitions, verifications: Verifications, transactional_id: str, version: int
    ) -> None:
        self._partitions = partitions
        self._verifications = verifications
        self._name = transactional_id
        self._version = version
        self._adds_partitions = version >= _ADDS_PARTITIONS
        self._is_checked = self._adds_partitions or verifications.is_enabled
        self._is_mixed = False
        self._guards: dict[TopicPartition, Guard] = {}
        self._errors: dict[TopicPartition, ErrorCode] = {}

    def ask(self, client: ClientConnection, request: ProduceRequest, then: Callable[[], None]) -> None:
        """Calls back when all is known, maybe at once. If not, the request's records are copied, to outlive it.

        The connection is paused meanwhile: the next request may have batches for the same partitions, of which only
        this one's are in their sequence.
        """
        producers = self._look(request)
        self._is_mixed = len(producers) > 1
        if self._is_mixed or not self._guards:
            self._finish(then)
            return
        ((producer_id, epoch),) = producers
        is_answered = is_paused = False

        def answered(errors: dict[TopicPartition, ErrorCode]) -> None:
            nonlocal is_answered
            is_answered = True
            self._errors.update(errors)
            if is_paused:
                client.resume_with(lambda: self._finish(then))
            else:
                self._finish(then)

        questions = self._verifications.questions
        producer = Producer(self._name, producer_id, epoch)
        if self._adds_partitions:
            questions.add(producer, self._guards, answered, self._renew_guards)
        else:
            questions.verify(producer, self._guards, answered)
        if not is_answered:
            keep_records(request)
            client.pause()
            is_paused = True

    def _look(self, request: ProduceRequest) -> set[tuple[int, int]]:
        """Begins to verify what has to be, and returns who wrote."""
        partitions = self._partitions
        producers = set[tuple[int, int]]()
        for topic in request.topic_data:
            name = partitions.metadata.topic_name(topic.topic_id) if self._version >= _USES_TOPIC_IDS else topic.name
            for one in topic.partition_data:
                header = _transactional_header(one.records)
                partition = partitions.get((name or "", one.index))
                if header is None:
                    continue
                producers.add((header.producer_id, header.producer_epoch))
                if partition is not None and partition.state is not None and self._is_checked:
                    self._begin(partition, header)
        return producers

    def _begin(self, partition: Partition, header: BatchHeader) -> None:
        begun = self._verifications.begin_batch(partition, header)
        if isinstance(begun, Guard):
            self._guards[partition.name] = begun
        elif begun:
            self._errors[partition.name] = begun

    def _renew_guards(self) -> None:
        self._guards = {name: self._verifications.renewed(guard) for name, guard in self._guards.items()}

    def _finish(self, then: Callable[[], None]) -> None:
        try:
            then()
        finally:
            for guard in self._guards.values():
                self._verifications.release(guard)

    def check(self, partition: Partition, header: BatchHeader) -> ErrorCode:
        """Why a batch cannot be appended, if it cannot."""
        if self._is_mixed:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        error = self._errors.get(partition.name)
        if error:
            return as_a_producer_gets_it(
                error,
                adds_partitions=self._adds_partitions,
                knows_abortable=self._version >= _KNOWS_ABORTABLE,
            )
        guard = self._guards.get(partition.name)
        if guard is not None:
            return check_guarded(partition, header, guard, bumps_epochs=self._adds_partitions)
        return self._check_unguarded(partition, header) if self._is_checked else ErrorCode.NONE

    @staticmethod
    def _check_unguarded(partition: Partition, header: BatchHeader) -> ErrorCode:
        """Its transaction was open, or the batch taken, when we looked; a marker may have come since."""
        producer = partition.log.producers.get(header.producer_id)
        is_known = producer is not None and producer.repetition_of(header) is not None
        is_fine = is_known or has_open_transaction(partition, header.producer_id, header.producer_epoch)
        return ErrorCode.NONE if is_fine else ErrorCode.INVALID_TXN_STATE


def _transactional_header(records: Seen | None) -> BatchHeader | None:
    """Of the first batch; what is wrong with the bytes is found when they are validated."""
    try:
        header = read_header(records) if records else None
    except CorruptBatch:
        return None
    return header if header is not None and header.is_transactional and header.producer_id >= 0 else None
