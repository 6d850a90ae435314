"""The control records of the KRaft quorum: messages of the protocol, in control batches (KIP-595, KIP-630, KIP-853).

All are written at version 0 but the leader change, which names directories once there are any (version 1).
"""

from typing import Final

from ottla.records.control import ControlType, control_type
from ottla.records.header import CorruptBatch
from ottla.records.kernel import Record
from ottla.wire.codec import decode, encode
from ottla.wire.messages import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)

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
