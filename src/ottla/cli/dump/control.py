"""Control records in words: transaction markers (KIP-98), and what Raft writes into its log and snapshots."""

from struct import Struct

from ottla.records.header import CorruptBatch
from ottla.records.record import Record

_KEY = Struct(">hh")
_END_MARKER = Struct(">hi")
_VERSION = Struct(">h")

_MARKERS = {0: "ABORT", 1: "COMMIT"}
_MESSAGES = {
    2: ("LeaderChange:", "LeaderChangeMessage"),
    3: ("SnapshotHeader", "SnapshotHeaderRecord"),
    4: ("SnapshotFooter", "SnapshotFooterRecord"),
    5: ("KRaftVersion", "KRaftVersionRecord"),
    6: ("KRaftVoters", "VotersRecord"),
}


def control_text(record: Record) -> str:
    """What a control record says. Raises `CorruptBatch` when it is too short for its type."""
    key, value = record.key or b"", record.value or b""
    if len(key) < _KEY.size:
        raise CorruptBatch(f"the control record at offset {record.offset} has a key of {len(key)} bytes")
    _, control_type = _KEY.unpack_from(key)
    if control_type in _MARKERS:
        if len(value) < _END_MARKER.size:
            raise CorruptBatch(f"the transaction marker at offset {record.offset} has {len(value)} bytes")
        _, coordinator_epoch = _END_MARKER.unpack_from(value)
        return f"endTxnMarker: {_MARKERS[control_type]} coordinatorEpoch: {coordinator_epoch}"
    if control_type in _MESSAGES:
        title, message = _MESSAGES[control_type]
        return f"{title} {_message_text(message, value)}"
    return f"controlType: UNKNOWN({control_type})"


def _message_text(name: str, value: bytes) -> str:
    from ottla.cli.dump.kafka_json import json_text, message_json
    from ottla.wire import messages
    from ottla.wire.codec import decode_from

    # The message's own first field says which version it is.
    (version,) = _VERSION.unpack_from(value.ljust(_VERSION.size, b"\0"))
    message, _ = decode_from(getattr(messages, name), value, 0, version)
    return json_text(message_json(message, version))
