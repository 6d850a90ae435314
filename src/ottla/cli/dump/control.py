"""Control records in words: transaction markers (KIP-98), and what Raft writes into its log and snapshots."""

from ottla.base.ports import Buffer
from ottla.records.control import ControlType, control_type, parse_end_transaction_marker
from ottla.records.header import BatchHeader, CorruptBatch
from ottla.records.record import Record

_TITLES = {
    ControlType.LEADER_CHANGE: "LeaderChange:",
    ControlType.SNAPSHOT_HEADER: "SnapshotHeader",
    ControlType.SNAPSHOT_FOOTER: "SnapshotFooter",
    ControlType.KRAFT_VERSION: "KRaftVersion",
    ControlType.KRAFT_VOTERS: "KRaftVoters",
}


def control_text(record: Record, batch: Buffer, header: BatchHeader) -> str:
    """What a control record of the batch says. Raises `ProtocolError` when it is not what its type has to be."""
    match control_type(record):
        case ControlType.ABORT | ControlType.COMMIT as how:
            marker = parse_end_transaction_marker(batch, 0, header)
            if marker is None:
                raise CorruptBatch(f"the transaction marker at offset {record.offset} is not the first of its batch")
            return f"endTxnMarker: {how.name} coordinatorEpoch: {marker.coordinator_epoch}"
        case None:
            return f"controlType: UNKNOWN({int.from_bytes((record.key or b'')[2:4], 'big', signed=True)})"
        case of_the_quorum:
            return f"{_TITLES[of_the_quorum]} {_message_text(record)}"


def _message_text(record: Record) -> str:
    # Brings in the schemas, which most logs do not need.
    from ottla.cli.dump.kafka_json import json_text, message_json
    from ottla.records.control import decode_control

    message = decode_control(record)
    assert message is not None, "a quorum's record, by its type"
    return json_text(message_json(message, message.version))
