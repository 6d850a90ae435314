"""Messages inside records: the three envelopes."""

import pytest

from ottla.wire.faults import DecodeError, TrailingBytesError, TruncatedError, UnsupportedVersionError
from ottla.wire.messages import (
    ConsumerProtocolSubscription,
    GroupMetadataKey,
    OffsetCommitKey,
    OffsetCommitValue,
    ShareSnapshotKey,
    ShareSnapshotValue,
    TopicRecord,
    TransactionLogKey,
    TransactionLogValue,
)
from ottla.wire.record_values import (
    CoordinatorTopic,
    decode_key,
    decode_metadata_record,
    decode_value,
    decode_versioned,
    encode_key,
    encode_metadata_record,
    encode_versioned,
)


def test_a_metadata_record_says_its_type_and_version() -> None:
    record = TopicRecord(name="ab", topic_id=bytes(range(16)))  # type: ignore[arg-type]
    data = encode_metadata_record(record, 0)
    assert data == b"\x01\x02\x00" + b"\x03ab" + bytes(range(16)) + b"\x00"
    assert decode_metadata_record(data) == (record, 0)


def test_a_metadata_record_of_an_unknown_type_is_refused() -> None:
    with pytest.raises(UnsupportedVersionError, match="API key 99"):
        decode_metadata_record(b"\x01\x63\x00")
    with pytest.raises(UnsupportedVersionError, match="TopicRecord has no version 9"):
        decode_metadata_record(b"\x01\x02\x09")


@pytest.mark.parametrize("frame_version", [0, 2])
def test_a_metadata_record_of_another_frame_version_is_refused(frame_version: int) -> None:
    with pytest.raises(DecodeError, match="frame version"):
        decode_metadata_record(bytes([frame_version, 2, 0]))


def test_the_key_of_a_coordinators_record_says_its_kind() -> None:
    key = OffsetCommitKey(group="g", topic="t", partition=4)
    assert encode_key(key) == b"\x00\x01" + b"\x00\x01g\x00\x01t\x00\x00\x00\x04"
    assert decode_key(CoordinatorTopic.CONSUMER_OFFSETS, encode_key(key)) == key
    assert encode_key(GroupMetadataKey(group="g")) == b"\x00\x02\x00\x01g"


def test_kinds_are_numbered_in_each_topic_for_itself() -> None:
    assert decode_key(CoordinatorTopic.TRANSACTION_STATE, b"\x00\x00\x00\x01x") == TransactionLogKey(
        transactional_id="x"
    )
    share_key = ShareSnapshotKey(group_id="g", partition=1)
    assert decode_key(CoordinatorTopic.SHARE_GROUP_STATE, encode_key(share_key)) == share_key


@pytest.mark.parametrize(
    ("key", "value", "version"),
    [
        (OffsetCommitKey(), OffsetCommitValue(offset=5, leader_epoch=2, metadata="m"), 4),
        (OffsetCommitKey(), OffsetCommitValue(offset=5, metadata="m", expire_timestamp=9), 1),
        (TransactionLogKey(), TransactionLogValue(producer_id=9, transaction_partitions=[]), 1),
        (ShareSnapshotKey(), ShareSnapshotValue(start_offset=8), 0),
    ],
)
def test_the_value_of_a_coordinators_record_says_its_version(key, value, version) -> None:  # type: ignore[no-untyped-def]
    data = encode_versioned(value, version)
    assert data[:2] == version.to_bytes(2, "big")
    assert decode_value(key, data) == value


def test_a_kind_of_record_that_is_not_known_can_be_told_and_skipped() -> None:
    with pytest.raises(UnsupportedVersionError, match="kind 99 in CONSUMER_OFFSETS"):
        decode_key(CoordinatorTopic.CONSUMER_OFFSETS, b"\x00\x63rest")


def test_a_subscription_starts_with_its_version() -> None:
    subscription = ConsumerProtocolSubscription(topics=["a"])
    data = encode_versioned(subscription, 1)
    assert data == b"\x00\x01" + b"\x00\x00\x00\x01\x00\x01a" + b"\xff\xff\xff\xff" + b"\x00\x00\x00\x00"
    assert decode_versioned(ConsumerProtocolSubscription, data) == subscription


def test_broken_records_are_errors() -> None:
    with pytest.raises(TruncatedError):
        decode_key(CoordinatorTopic.CONSUMER_OFFSETS, b"\x00")
    with pytest.raises(TrailingBytesError):
        decode_metadata_record(encode_metadata_record(TopicRecord(), 0) + b"!")
