"""What a leader takes and refuses. The error codes are what Apache Kafka 4.3.1 answered to the same bytes."""

from typing import NamedTuple

import cramjam
import pytest

from ottla.records.batch import (
    BatchHeader,
    Compression,
    TimestampType,
    checksum_matches,
    read_header,
    write_header,
)
from ottla.records.builder import BatchBuilder
from ottla.records.compression import compress
from ottla.records.reader import read_records
from ottla.records.validate import InvalidBatch, ProduceRules, validate_produced

NOW = 1_700_000_000_000
PLAIN = ProduceRules()
STAMPED = ProduceRules(timestamp_type=TimestampType.LOG_APPEND_TIME)
BOUNDED = ProduceRules(timestamp_before_max_ms=1_000_000, timestamp_after_max_ms=1_000_000)
COMPACTED = ProduceRules(compacted=True)
TO_ZSTD = ProduceRules(compression=Compression.ZSTD, compression_level=9)
TO_NONE = ProduceRules(compression=Compression.NONE)


def batch(key=b"k", timestamp=NOW, deltas=(0, 1, 2), **fields):
    builder = BatchBuilder(**fields)
    for delta in deltas:
        builder.append(timestamp + delta, key, b"v%d" % delta, (), delta)
    return builder.build()


def patched(data, **fields):
    """The batch with other header fields and a checksum that goes with them, unless the checksum is given."""
    data = bytearray(data)
    write_header(data, read_header(data)._replace(**fields))
    if "crc" in fields:
        data[17:21] = fields["crc"].to_bytes(4, "big")
    if "batch_length" in fields:
        data[8:12] = fields["batch_length"].to_bytes(4, "big", signed=True)
    return data


def around(payload, codec=Compression.NONE, count=3, delta=None):
    """A batch whose header is right and whose payload is anything."""
    data = bytearray(61) + payload
    delta = count - 1 if delta is None else delta
    write_header(data, BatchHeader(0, 0, -1, 2, 0, codec, delta, NOW, NOW + 2, -1, -1, -1, count))
    return data


GOOD = batch()
RECORDS = bytes(GOOD[61:])
ONE = bytes(batch(deltas=(0,))[61:])


class Case(NamedTuple):
    data: bytes
    error: str
    rules: ProduceRules = PLAIN


REFUSED = {
    "nothing": Case(b"", "INVALID_RECORD"),
    "two batches": Case(GOOD + GOOD, "INVALID_RECORD"),
    "magic 1": Case(patched(GOOD)[:16] + b"\x01" + GOOD[17:], "INVALID_RECORD"),
    "magic 3": Case(GOOD[:16] + b"\x03" + GOOD[17:], "CORRUPT_MESSAGE"),
    "another checksum": Case(patched(GOOD, crc=1), "CORRUPT_MESSAGE"),
    "a byte short": Case(GOOD[:-1], "INVALID_RECORD"),
    "half a header": Case(GOOD[:30], "INVALID_RECORD"),
    "five bytes": Case(GOOD[:5], "INVALID_RECORD"),
    "zeros after it": Case(GOOD + bytes(20), "CORRUPT_MESSAGE"),
    "length of 10": Case(patched(GOOD, batch_length=10), "CORRUPT_MESSAGE"),
    "length of 40": Case(patched(GOOD, batch_length=40), "CORRUPT_MESSAGE"),
    "length of -1": Case(patched(GOOD, batch_length=-1), "CORRUPT_MESSAGE"),
    "base offset of 5": Case(patched(GOOD, base_offset=5), "INVALID_RECORD"),
    "count against delta": Case(patched(GOOD, record_count=2), "INVALID_RECORD"),
    "fewer than there are": Case(patched(GOOD, record_count=2, last_offset_delta=1), "INVALID_RECORD"),
    "more than there are": Case(patched(GOOD, record_count=4, last_offset_delta=3), "INVALID_RECORD"),
    "no records": Case(patched(GOOD, record_count=0, last_offset_delta=-1), "INVALID_RECORD"),
    "negative count": Case(patched(GOOD, record_count=-1), "INVALID_RECORD"),
    "negative delta": Case(patched(GOOD, last_offset_delta=-5), "INVALID_RECORD"),
    "control batch": Case(patched(GOOD, attributes=32), "INVALID_RECORD"),
    "producer without sequence": Case(patched(GOOD, producer_id=5, producer_epoch=0), "INVALID_RECORD"),
    "too large": Case(GOOD, "MESSAGE_TOO_LARGE", ProduceRules(max_message_bytes=len(GOOD) - 1)),
    "stamped by the producer": Case(patched(GOOD, attributes=8), "INVALID_TIMESTAMP", STAMPED),
    "short records": Case(around(RECORDS[:-3]), "INVALID_RECORD"),
    "long records": Case(around(RECORDS + b"\x00"), "INVALID_RECORD"),
    "record longer than its fields": Case(around(bytes([ONE[0] + 2]) + ONE[1:] + b"\x00", count=1), "INVALID_RECORD"),
    "negative header count": Case(around(ONE[:-1] + b"\x01", count=1), "INVALID_RECORD"),
    "too many headers": Case(around(ONE[:-1] + b"\x7e", count=1), "INVALID_RECORD"),
    "two lz4 frames": Case(
        around(bytes(compress(3, RECORDS[:10])) + bytes(compress(3, RECORDS[10:])), Compression.LZ4), "INVALID_RECORD"
    ),
}
for codec in (Compression.NONE, Compression.LZ4):
    name = codec.name.lower()
    REFUSED |= {
        f"no key in a compacted topic, {name}": Case(batch(None, compression=codec), "INVALID_RECORD", COMPACTED),
        f"too early, {name}": Case(batch(timestamp=NOW - 2_000_000, compression=codec), "INVALID_TIMESTAMP", BOUNDED),
        f"too late, {name}": Case(batch(timestamp=NOW + 2_000_000, compression=codec), "INVALID_TIMESTAMP", BOUNDED),
        f"two hours ahead, {name}": Case(batch(timestamp=NOW + 7_200_000, compression=codec), "INVALID_TIMESTAMP"),
        f"empty payload, {name}": Case(around(compress(codec, b""), codec, count=1), "INVALID_RECORD"),
    }
# Kafka answers UNKNOWN_SERVER_ERROR to these.
BETTER_NAMED = {
    "length beyond 2^31": Case(patched(GOOD, batch_length=(1 << 31) - 1), "INVALID_RECORD"),
    "codec 5": Case(patched(GOOD, attributes=5), "INVALID_RECORD"),
    "garbage for records": Case(around(b"\xff" * 30), "INVALID_RECORD"),
    "gaps in a compressed batch": Case(
        patched(batch(deltas=(0, 2, 5), compression=3), last_offset_delta=2), "INVALID_RECORD"
    ),
    "zstd with something after it": Case(
        around(bytes(compress(4, RECORDS)) + b"junk", Compression.ZSTD), "INVALID_RECORD"
    ),
}
for codec in list(Compression)[1:]:
    name = codec.name.lower()
    BETTER_NAMED |= {
        f"not {name}": Case(around(b"\xff\xff\xff\xff\xffgarbage", codec), "INVALID_RECORD"),
        f"{name} cut off": Case(around(bytes(compress(codec, RECORDS))[:-4], codec), "INVALID_RECORD"),
    }


@pytest.mark.parametrize("case", (REFUSED | BETTER_NAMED).values(), ids=(REFUSED | BETTER_NAMED).keys())
def test_a_bad_batch_is_refused_with_kafkas_error(case):
    with pytest.raises(InvalidBatch) as refused:
        validate_produced(case.data, case.rules, NOW)
    assert refused.value.error == case.error


TAKEN = {
    "uncompressed": Case(GOOD, ""),
    "five stray bytes after it": Case(GOOD + b"abcde", ""),
    "unknown attribute bits": Case(patched(GOOD, attributes=0x180), ""),
    "no timestamp within bounds": Case(batch(timestamp=-1, deltas=(0,)), "", BOUNDED),
    "a late record in a topic that stamps": Case(batch(timestamp=NOW + 7_200_000), "", STAMPED),
    "gaps, uncompressed": Case(patched(batch(deltas=(0, 2, 5)), last_offset_delta=2), ""),
    "a key length of -3": Case(around(bytes([ONE[0] - 2]) + ONE[1:4] + b"\x05" + ONE[6:], count=1), ""),
    "raw snappy": Case(around(bytes(cramjam.snappy.compress_raw(RECORDS)), Compression.SNAPPY), ""),
    "lz4 with something after it": Case(around(bytes(compress(3, RECORDS)) + b"junk", Compression.LZ4), ""),
    "gzip with something after it": Case(around(bytes(compress(1, RECORDS)) + b"junk", Compression.GZIP), ""),
    "two zstd frames": Case(
        around(bytes(compress(4, RECORDS[:10])) + bytes(compress(4, RECORDS[10:])), Compression.ZSTD), ""
    ),
} | {f"{codec.name.lower()}": Case(batch(compression=codec), "") for codec in Compression}


@pytest.mark.parametrize("case", TAKEN.values(), ids=TAKEN.keys())
def test_what_kafka_takes_is_taken(case):
    data = bytearray(case.data)
    taken = validate_produced(data, case.rules, NOW)
    appended = taken.to_append(data)
    assert checksum_matches(appended, 0, taken.header)
    assert taken.header == read_header(appended)
    assert not taken.converted


def test_a_good_batch_is_not_copied_and_not_changed():
    data = bytearray(GOOD)
    taken = validate_produced(data, PLAIN, NOW)
    assert taken.replacement is None
    assert data == GOOD
    assert taken.to_append(data) is data


def test_what_was_checked_can_be_appended_from_a_copy():
    """What came is only lent: a request that waits keeps a copy, and what was found out about it still holds."""
    came = memoryview(batch(compression=Compression.GZIP))
    taken = validate_produced(came, STAMPED, NOW + 500)
    copy = bytearray(came)
    came[:] = bytes(len(came))
    assert taken.header == read_header(taken.to_append(copy))
    assert checksum_matches(taken.to_append(copy), 0, taken.header)


def test_a_batch_that_cannot_be_written_to_is_replaced():
    data = bytes(patched(GOOD, max_timestamp=NOW + 1_000_000))
    taken = validate_produced(data, PLAIN, NOW)
    assert not taken.converted
    assert taken.to_append(data) == GOOD


def test_a_wrong_maximum_timestamp_is_put_right():
    data = bytearray(patched(GOOD, max_timestamp=NOW + 1_000_000))
    taken = validate_produced(data, PLAIN, NOW)
    assert taken.header.max_timestamp == NOW + 2
    assert data == GOOD


def test_a_topic_that_stamps_puts_the_time_into_the_header():
    data = bytearray(batch(compression=Compression.GZIP))
    taken = validate_produced(data, STAMPED, NOW + 500)
    assert taken.header.is_log_append_time
    assert {record.timestamp for record in read_records(data)} == {NOW + 500}


def test_a_producers_stamp_is_taken_off_where_the_topic_does_not_stamp():
    taken = validate_produced(patched(GOOD, attributes=8), PLAIN, NOW)
    assert not taken.header.is_log_append_time


@pytest.mark.parametrize("codec", Compression)
@pytest.mark.parametrize("rules", [TO_ZSTD, TO_NONE], ids=["to zstd", "to none"])
def test_the_topics_compression_type_converts_what_has_another(codec, rules):
    data = batch(compression=codec, producer_id=3, producer_epoch=1, base_sequence=8, transactional=True)
    taken = validate_produced(data, rules, NOW)
    assert taken.converted == (codec != rules.compression)
    assert taken.header.compression == rules.compression
    assert (taken.header.producer_id, taken.header.base_sequence) == (3, 8)
    assert taken.header.is_transactional
    assert list(read_records(taken.to_append(data))) == list(read_records(data))


def test_conversion_gives_offsets_with_gaps_new_ones():
    data = patched(batch(deltas=(0, 2, 5)), last_offset_delta=2)
    taken = validate_produced(data, TO_ZSTD, NOW)
    converted = taken.to_append(data)
    assert [record.offset for record in read_records(converted)] == [0, 1, 2]
    assert [record.timestamp for record in read_records(converted)] == [NOW, NOW + 2, NOW + 5]


def test_a_batch_that_is_too_large_once_converted_is_refused():
    builder = BatchBuilder(compression=Compression.ZSTD)
    builder.extend(NOW, None, [b"again and again"] * 100)
    data = builder.build()
    with pytest.raises(InvalidBatch) as refused:
        validate_produced(data, ProduceRules(compression=Compression.NONE, max_message_bytes=500), NOW)
    assert refused.value.error == "MESSAGE_TOO_LARGE"


def test_every_refused_record_is_named():
    builder = BatchBuilder()
    builder.append(NOW, b"k", b"0")
    builder.append(NOW, None, b"1")
    builder.append(NOW + 2_000_000, b"k", b"2")
    rules = ProduceRules(compacted=True, timestamp_after_max_ms=1_000_000)
    with pytest.raises(InvalidBatch) as refused:
        validate_produced(builder.build(), rules, NOW)
    assert refused.value.error == "INVALID_TIMESTAMP"  # one such record among them is enough
    assert [error.batch_index for error in refused.value.record_errors] == [1, 2]


def test_a_bomb_is_refused():
    builder = BatchBuilder(compression=Compression.ZSTD)
    builder.append(NOW, None, bytes(10 << 20))
    with pytest.raises(InvalidBatch, match="once decompressed") as refused:
        validate_produced(builder.build(), ProduceRules(), NOW, decompressed_limit=1 << 20)
    assert refused.value.error == "INVALID_RECORD"
    assert refused.value.is_bomb


def test_what_is_not_a_bomb_is_refused_for_something_else():
    with pytest.raises(InvalidBatch) as refused:
        validate_produced(patched(GOOD, record_count=7), PLAIN, NOW)
    assert not refused.value.is_bomb
