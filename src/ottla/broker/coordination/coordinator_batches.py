"""From a decision's records to batches, byte for byte as Kafka's coordinators write them.

Every record has the time of the batch. In `__consumer_offsets` the base sequence is 0 and not -1 even though there is
no producer: a quirk of Kafka's, kept so that a log cannot tell who wrote it.
"""

from collections.abc import Iterator, Sequence

from ottla.machines.coordinator_machine import CoordinatorRecord, TransactionStamp
from ottla.records.builder import BatchBuilder
from ottla.records.header import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from ottla.wire.record_values import encode_key, encode_versioned

_NOBODY = TransactionStamp(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)


def coordinator_batches(
    records: Sequence[CoordinatorRecord],
    now_ms: int,
    *,
    transaction: TransactionStamp | None = None,
    base_sequence: int = 0,
    compression: int = 0,
    limit: int = 0,
) -> Iterator[tuple[bytearray, Sequence[CoordinatorRecord]]]:
    """Batches and the records in each; one batch of them all unless there is a `limit` to its bytes."""
    stamp = transaction or _NOBODY

    def begin() -> BatchBuilder:
        return BatchBuilder(
            compression=compression,
            limit=limit,
            producer_id=stamp.producer_id,
            producer_epoch=stamp.producer_epoch,
            base_sequence=base_sequence,
            transactional=transaction is not None,
        )

    builder, first = begin(), 0
    for index, (key, value, version) in enumerate(records):
        encoded = encode_key(key), None if value is None else encode_versioned(value, version)
        if builder.append(now_ms, *encoded) is False:
            yield builder.build(), records[first:index]
            builder, first = begin(), index
            builder.append(now_ms, *encoded)
    yield builder.build(), records[first:]
