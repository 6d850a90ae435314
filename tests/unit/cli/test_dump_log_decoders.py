"""Keys, values and control records in words."""

import pytest

from ottla.cli.dump import decoders, internal_topics
from ottla.cli.dump.control import control_text
from ottla.cli.dump.kafka_json import json_text, message_json
from ottla.records.batch import read_header
from ottla.records.control import (
    ControlType,
    EndTransactionMarker,
    build_control_batch,
    build_end_transaction_marker,
)
from ottla.records.header import CorruptBatch
from ottla.records.reader import read_records
from ottla.records.record import Record
from ottla.wire import codec, messages


def group_record(key: bytes | None, value: bytes | None) -> tuple[str | None, str | None]:
    return internal_topics.PARSERS["__consumer_offsets"](Record(7, 0, key, value, ()))


def metadata_record(value: bytes | None) -> str | None:
    return internal_topics.cluster_metadata(Record(7, 0, None, value, ()))[1]


# ---- plain ----------------------------------------------------------------------------------------------------------


def test_nulls_are_not_printed_and_empty_is() -> None:
    assert decoders.PLAIN(Record(0, 0, None, b"", ())) == (None, "")


def test_bytes_that_are_no_text_are_printed_with_replacement_characters() -> None:
    assert decoders.PLAIN(Record(0, 0, b"\xff", b"ok", ())) == ("\N{REPLACEMENT CHARACTER}", "ok")


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("org.apache.kafka.tools.api.LongDecoder", b"\xff" * 8, "-1"),
        ("kafka.serializer.IntegerDecoder", b"\0\0\1\0", "256"),
        ("DefaultDecoder", b"\0\xab", "00ab"),
        ("base64:b64encode", b"abc", "b'YWJj'"),
    ],
)
def test_decoders_have_kafkas_names_or_are_functions(name: str, data: bytes, text: str) -> None:
    parse = decoders.plain(value=decoders.decoder_named(name))
    assert parse(Record(0, 0, None, data, ())) == (None, text)


def test_a_number_of_too_few_bytes_is_refused() -> None:
    with pytest.raises(decoders.UndecodableRecordError, match="3 bytes are not a number of 8"):
        decoders.decoder_named("LongDecoder")(b"abc")


# ---- internal topics ------------------------------------------------------------------------------------------------


def test_a_coordinators_record_has_its_type_in_the_key_and_its_version_in_the_value() -> None:
    key = messages.OffsetCommitKey(group="g", topic="t", partition=3)
    value = messages.OffsetCommitValue(offset=5, metadata="m", commit_timestamp=9)
    assert group_record(b"\0\1" + codec.encode(key, 0), b"\0\3" + codec.encode(value, 3)) == (
        '{"type":"1","data":{"group":"g","topic":"t","partition":3}}',
        '{"version":"3","data":{"offset":5,"leaderEpoch":-1,"metadata":"m","commitTimestamp":9}}',
    )


def test_a_tombstone_is_a_delete() -> None:
    key = b"\0\2" + codec.encode(messages.GroupMetadataKey(group="g"), 0)
    assert group_record(key, None) == ('{"type":"2","data":{"group":"g"}}', "<DELETE>")


def test_members_of_another_protocol_keep_their_bytes() -> None:
    member = messages.GroupMetadataValue.MemberMetadata(member_id="m", subscription=b"", assignment=b"\0\x63")
    value = messages.GroupMetadataValue(protocol_type="consumer", members=[member])
    key = b"\0\2" + codec.encode(messages.GroupMetadataKey(group="g"), 0)
    _, payload = group_record(key, b"\0\3" + codec.encode(value, 3))
    assert payload is not None
    assert '"assignment":"AGM="' in payload


def test_what_does_not_decode_is_told_in_place_of_the_record() -> None:
    assert group_record(b"\0\x63", b"") == ("Unknown record type 99 at offset 7, skipping.", None)
    told, payload = group_record(b"\0\1\0\5ab", b"")
    assert told is not None
    assert told.startswith("Error at offset 7, skipping. ")
    assert payload is None


def test_a_coordinators_record_without_a_key_is_of_another_topic() -> None:
    with pytest.raises(decoders.UndecodableRecordError, match="at offset 7 using the specified decoder"):
        group_record(None, b"")


def test_a_metadata_record_is_framed() -> None:
    record = codec.encode(messages.TopicRecord(name="t", topic_id=bytes(16)), 0)
    assert metadata_record(b"\1\2\0" + record) == (
        '{"type":"TOPIC_RECORD","version":0,"data":{"name":"t","topicId":"AAAAAAAAAAAAAAAAAAAAAA"}}'
    )


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (b"", "Error while reading frame version"),
        (b"\2\2\0", "unknown frame version 2(only frame version 1 is supported)"),
        (b"\1\x63\0", "Unknown metadata id 99"),
        (b"\1\2\x09", "TopicRecord has no version 9"),
        (b"\1\2\0\xff", "Error at 7, skipping. "),
    ],
)
def test_a_metadata_record_that_does_not_decode_says_why(value: bytes, why: str) -> None:
    told = metadata_record(value)
    assert told is not None
    assert told.startswith("Error at 7, skipping. ")
    assert why in told


# ---- control records ------------------------------------------------------------------------------------------------


def control(batch: bytearray) -> str:
    header = read_header(batch)
    (record,) = read_records(batch, 0, header)
    return control_text(record, batch, header)


def test_a_transaction_marker_says_how_it_ended() -> None:
    for committed, text in ((False, "endTxnMarker: ABORT"), (True, "endTxnMarker: COMMIT")):
        marker = build_end_transaction_marker(EndTransactionMarker(committed, 7), 1, 0, timestamp_ms=0)
        assert control(marker) == f"{text} coordinatorEpoch: 7"


def test_a_control_record_of_a_later_kafka_is_unknown() -> None:
    batch = build_control_batch(ControlType.COMMIT, b"", timestamp_ms=0)
    header = read_header(batch)
    later = Record(3, 0, b"\0\0\0\x09", b"", ())
    assert control_text(later, batch, header) == "controlType: UNKNOWN(9)"


def test_a_control_record_that_is_too_short_is_corrupt() -> None:
    with pytest.raises(CorruptBatch, match="too short"):
        control(build_control_batch(ControlType.COMMIT, b"\0\0", timestamp_ms=0))
    with pytest.raises(CorruptBatch, match="has no message"):
        control(build_control_batch(ControlType.LEADER_CHANGE, b"", timestamp_ms=0))


# ---- JSON -----------------------------------------------------------------------------------------------------------


def test_tagged_fields_are_shown_when_they_are_not_the_default() -> None:
    change = messages.PartitionChangeRecord(partition_id=1, isr=[2], leader=-2)
    shown = message_json(change, 0)
    assert list(shown) == ["partitionId", "topicId", "isr"]
    assert shown["isr"] == [2]


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0.0"),
        (12.5, "12.5"),
        (1e7, "1.0E7"),
        (123456789.25, "1.2345678925E8"),
        (-2.5e-4, "-2.5E-4"),
        (0.001, "0.001"),
    ],
)
def test_numbers_with_a_fraction_are_written_as_java_does(number: float, text: str) -> None:
    assert json_text({"value": [number]}) == f'{{"value":[{text}]}}'
