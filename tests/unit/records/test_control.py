import pytest

from ottla.records.batch import CorruptBatch, read_header
from ottla.records.builder import BatchBuilder, build_batch
from ottla.records.control import (
    ControlType,
    EndTransactionMarker,
    build_control_batch,
    build_end_transaction_marker,
    control_type,
    decode_control,
    encode_control,
    parse_end_transaction_marker,
)
from ottla.records.reader import read_records
from ottla.wire.messages import KRaftVersionRecord, LeaderChangeMessage, SnapshotHeaderRecord

NOW = 1_700_000_000_000


@pytest.mark.parametrize("committed", [True, False])
def test_a_marker_is_read_as_it_was_built(committed):
    data = build_end_transaction_marker(EndTransactionMarker(committed, 12), 7, 3, NOW)
    header = read_header(data)
    assert header.is_control
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 3, -1)
    assert parse_end_transaction_marker(data) == EndTransactionMarker(committed, 12)


def test_other_batches_hold_no_marker():
    assert parse_end_transaction_marker(build_batch(NOW, [b"\x00\x00\x00\x01"], [b"\x00" * 6])) is None
    assert parse_end_transaction_marker(build_control_batch(ControlType.LEADER_CHANGE, b"", NOW)) is None


def test_a_type_that_is_newer_than_we_are_is_passed_over():
    builder = BatchBuilder(control=True)
    builder.append(NOW, b"\x00\x00\x00\x63", b"")
    data = builder.build()
    assert control_type(next(read_records(data))) is None
    assert parse_end_transaction_marker(data) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b""),
        (b"\x00", b""),
        (b"\xff\xff\x00\x01", b""),
        (b"\x00\x00\x00\x01", None),
        (b"\x00\x00\x00\x01", b"\x00"),
    ],
)
def test_a_broken_marker_is_corrupt(key, value):
    builder = BatchBuilder(control=True)
    builder.append(NOW, key, value)
    with pytest.raises(CorruptBatch):
        parse_end_transaction_marker(builder.build())


@pytest.mark.parametrize(
    "message",
    [
        LeaderChangeMessage(leader_id=2),
        SnapshotHeaderRecord(last_contained_log_timestamp=NOW),
        KRaftVersionRecord(k_raft_version=1),
    ],
    ids=lambda message: type(message).__name__,
)
def test_messages_of_the_quorum_travel_in_control_records(message):
    data = build_control_batch(*encode_control(message), NOW)
    record = next(read_records(data))
    assert decode_control(record) == message


def test_a_transactions_marker_is_no_message_of_the_quorum():
    data = build_end_transaction_marker(EndTransactionMarker(True, 12), 7, 3, NOW)
    assert decode_control(next(read_records(data))) is None
