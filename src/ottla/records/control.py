"""Control batches: records that are addressed to brokers and clients themselves, and that no consumer is shown.

A control batch has the control flag and, as far as Kafka writes them, one record. Its key is a version (0) and
the type, both int16. Its value depends on the type: the end of a transaction (KIP-98) is here; the records of
the KRaft quorum are messages of the protocol, in `ottla.records.control`.
"""

from enum import IntEnum
from struct import Struct
from typing import Final, NamedTuple

from ottla.base.lent import Seen
from ottla.records.batch import read_header
from ottla.records.builder import BatchBuilder
from ottla.records.header import NO_LEADER_EPOCH, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, BatchHeader, CorruptBatch
from ottla.records.kernel import Record
from ottla.records.reader import read_records
from ottla.wire.codec import decode, encode
from ottla.wire.messages import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)

_KEY = Struct(">hh")
_END_TRANSACTION = Struct(">hi")
_VERSION = 0


class ControlType(IntEnum):
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


class EndTransactionMarker(NamedTuple):
    """A transaction's end, as the coordinator of `coordinator_epoch` decided it."""

    committed: bool
    coordinator_epoch: int


def control_key(type_: ControlType) -> bytes:
    return _KEY.pack(_VERSION, type_)


def control_type(record: Record) -> ControlType | None:
    """The record's type; None for one that is newer than we are, which is to be passed over."""
    if record.key is None or len(record.key) < _KEY.size:
        raise CorruptBatch(f"the control record at offset {record.offset} has no type in its key")
    version, number = _KEY.unpack_from(record.key)
    if version < 0:
        raise CorruptBatch(f"the control record at offset {record.offset} has version {version}")
    try:
        return ControlType(number)
    except ValueError:
        return None


def build_control_batch(
    type_: ControlType,
    value: bytes,
    timestamp_ms: int,
    *,
    base_offset: int = 0,
    leader_epoch: int = NO_LEADER_EPOCH,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    transactional: bool = False,
) -> bytearray:
    builder = BatchBuilder(
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=transactional,
        control=True,
    )
    builder.append(timestamp_ms, control_key(type_), value)
    return builder.build()


def build_end_transaction_marker(
    marker: EndTransactionMarker, producer_id: int, producer_epoch: int, timestamp_ms: int
) -> bytearray:
    """The batch that ends a producer's transaction in a partition. It has no sequence."""
    return build_control_batch(
        ControlType.COMMIT if marker.committed else ControlType.ABORT,
        _END_TRANSACTION.pack(_VERSION, marker.coordinator_epoch),
        timestamp_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
    )


def parse_end_transaction_marker(
    data: Seen, position: int = 0, header: BatchHeader | None = None
) -> EndTransactionMarker | None:
    """The marker in a batch; None when it is not a control batch, has no record, or its record is of another type."""
    header = header or read_header(data, position)
    record = next(iter(read_records(data, position, header)), None) if header.is_control else None
    if record is None:
        return None
    type_ = control_type(record)
    if type_ not in (ControlType.ABORT, ControlType.COMMIT):
        return None
    if record.value is None or len(record.value) < _END_TRANSACTION.size:
        raise CorruptBatch(f"the transaction marker at offset {record.offset} is too short")
    version, coordinator_epoch = _END_TRANSACTION.unpack_from(record.value)
    if version < 0:
        raise CorruptBatch(f"the transaction marker at offset {record.offset} has version {version}")
    return EndTransactionMarker(type_ is ControlType.COMMIT, coordinator_epoch)


# The control records of the KRaft quorum: messages of the protocol, in control batches (KIP-595, KIP-630, KIP-853).
#
# All are written at version 0 but the leader change, which names directories once there are any (version 1).

KraftMessage = LeaderChangeMessage | SnapshotHeaderRecord | SnapshotFooterRecord | KRaftVersionRecord | VotersRecord

_MESSAGES: Final[dict[ControlType, type[KraftMessage]]] = {
    ControlType.LEADER_CHANGE: LeaderChangeMessage,
    ControlType.SNAPSHOT_HEADER: SnapshotHeaderRecord,
    ControlType.SNAPSHOT_FOOTER: SnapshotFooterRecord,
    ControlType.KRAFT_VERSION: KRaftVersionRecord,
    ControlType.KRAFT_VOTERS: VotersRecord,
}
_TYPES: Final = {message: type_ for type_, message in _MESSAGES.items()}


def encode_control(message: KraftMessage) -> tuple[ControlType, bytes]:
    """Type and value of the control record that carries `message`, in the version that the message says it has."""
    return _TYPES[type(message)], encode(message, message.version)


def decode_control(record: Record) -> KraftMessage | None:
    """The message in a control record; None if it is a transaction's marker or of a type we do not know."""
    type_ = control_type(record)
    if type_ is None or type_ not in _MESSAGES:
        return None
    if record.value is None or len(record.value) < 2:
        raise CorruptBatch(f"the control record at offset {record.offset} has no message")
    version = int.from_bytes(record.value[:2], "big", signed=True)
    return decode(_MESSAGES[type_], record.value, version)
