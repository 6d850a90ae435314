"""Metadata records as batches of the log. Records have no key; their value says which record it is, and its version."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ottla.base.ports import Buffer
from ottla.machines.decision import VersionedRecord
from ottla.records.batch import BatchHeader
from ottla.records.builder import BatchBuilder
from ottla.records.control import KraftMessage, control_key, decode_control, encode_control
from ottla.records.reader import read_records
from ottla.wire.message import Message
from ottla.wire.record_values import decode_metadata_record, encode_metadata_record

MAX_BATCH_BYTES = 8 << 20
"""Kafka's limit for a batch of the metadata log; no segment may be smaller."""


class MetadataBatch(NamedTuple):
    """A batch as it is in the log: the metadata in it, or the quorum's control records."""

    base_offset: int
    next_offset: int
    leader_epoch: int
    timestamp_ms: int
    size: int
    records: list[Message]
    control: list[KraftMessage]


def metadata_batches(
    records: Iterable[VersionedRecord],
    timestamp_ms: int,
    *,
    max_bytes: int = MAX_BATCH_BYTES,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> Iterator[bytearray]:
    """As few batches as `max_bytes` allows, with offsets that count on from `base_offset`."""
    builder = BatchBuilder(limit=max_bytes, base_offset=base_offset, leader_epoch=leader_epoch)
    for record in records:
        value = encode_metadata_record(record.message, record.version)
        if not builder.append(timestamp_ms, None, value):
            base_offset += builder.record_count
            yield builder.build()
            builder = BatchBuilder(limit=max_bytes, base_offset=base_offset, leader_epoch=leader_epoch)
            builder.append(timestamp_ms, None, value)
    if builder.record_count:
        yield builder.build()


def control_batch(
    messages: Iterable[KraftMessage], timestamp_ms: int, *, base_offset: int = 0, leader_epoch: int = -1
) -> bytearray:
    """The quorum's records in one batch, which is there whole or not at all."""
    builder = BatchBuilder(base_offset=base_offset, leader_epoch=leader_epoch, control=True)
    for message in messages:
        type_, value = encode_control(message)
        builder.append(timestamp_ms, control_key(type_), value)
    return builder.build()


def read_batch(data: Buffer, position: int, header: BatchHeader) -> MetadataBatch:
    """Raises an error of the protocol family for a corrupt batch of a metadata log."""
    records: list[Message] = []
    control: list[KraftMessage] = []
    for record in read_records(data, position, header):
        if header.is_control:
            message = decode_control(record)
            if message is not None:
                control.append(message)
        else:
            records.append(decode_metadata_record(record.value or b"")[0])
    return MetadataBatch(
        header.base_offset,
        header.next_offset,
        header.partition_leader_epoch,
        header.max_timestamp,
        header.size,
        records,
        control,
    )
