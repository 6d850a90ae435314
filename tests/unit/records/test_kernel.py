"""The record format, by example; every test runs on the compiled kernel and on its pure twin."""

import pickle
from contextlib import suppress

import pytest

from ottla.records.batch import HEADER_SIZE, LOG_OVERHEAD, CorruptBatch, checksum_matches, read_header
from ottla.records.builder import build_batch
from ottla.records.reader import read_records

NOW = 1_700_000_000_000


def write(kernel, *records):
    writer = kernel.RecordWriter()
    for record in records:
        assert writer.append(*record)
    return bytes(writer.finish())


def read(kernel, data, count, log_append_time=None, base_timestamp=NOW):
    return list(kernel.RecordReader(data, 100, base_timestamp, log_append_time, count))


def test_a_record_is_laid_out_as_kafka_documents_it(kernel):
    data = write(kernel, (NOW, b"key", b"value", [("h", b"1"), ("n", None)]))
    assert data == (
        b"\x2a"  # 21 bytes follow
        b"\x00\x00\x00"  # attributes, timestamp delta, offset delta
        b"\x06key\x0avalue"
        b"\x04\x02h\x021\x02n\x01"  # two headers, the second with a null value
    )


def test_null_and_empty_are_told_apart(kernel):
    data = write(kernel, (NOW, None, b""), (NOW, b"", None))
    first, second = read(kernel, data, 2)
    assert (first.key, first.value) == (None, b"")
    assert (second.key, second.value) == (b"", None)


def test_offsets_and_timestamps_are_counted_from_the_base(kernel):
    data = write(kernel, (NOW, None, b"a"), (NOW + 70, None, b"b"), (NOW - 5, None, b"c"))
    assert [record.offset for record in read(kernel, data, 3)] == [100, 101, 102]
    assert [record.timestamp for record in read(kernel, data, 3)] == [NOW, NOW + 70, NOW - 5]


def test_log_append_time_is_every_records_timestamp(kernel):
    data = write(kernel, (NOW, None, b"a"), (NOW + 70, None, b"b"))
    assert [record.timestamp for record in read(kernel, data, 2, log_append_time=42)] == [42, 42]


def test_a_header_key_that_is_not_utf8_is_shown_with_replacement_characters(kernel):
    data = write(kernel, (NOW, None, None, [("né", b"")])).replace("é".encode(), b"\xff\xff")
    assert read(kernel, data, 1)[0].headers == (("n\ufffd\ufffd", b""),)


def test_records_compare_hash_print_match_and_pickle(kernel):
    record = kernel.Record(7, NOW, b"k", None, (("h", b"v"),))
    assert record == kernel.Record(7, NOW, b"k", None, (("h", b"v"),))
    assert record != kernel.Record(8, NOW, b"k", None, (("h", b"v"),))
    assert record != 7
    assert len({record, kernel.Record(7, NOW, b"k", None, (("h", b"v"),))}) == 1
    assert repr(record) == f"Record(offset=7, timestamp={NOW}, key=b'k', value=None, headers=(('h', b'v'),))"
    assert pickle.loads(pickle.dumps(record)) == record
    match record:
        case kernel.Record(offset, timestamp, key, value, headers):
            assert (offset, timestamp, key, value, headers) == (7, NOW, b"k", None, (("h", b"v"),))


def test_a_record_cannot_be_changed(kernel):
    record = kernel.Record(7, NOW, b"k", None)
    for name in ("offset", "timestamp", "key", "value", "headers"):
        with pytest.raises(AttributeError):
            setattr(record, name, None)


def test_keys_and_values_may_be_any_buffer(kernel):
    plain = write(kernel, (NOW, b"key", b"value", [("h", b"v")]))
    assert write(kernel, (NOW, bytearray(b"key"), memoryview(b"value"), [("h", bytearray(b"v"))])) == plain


def test_a_full_writer_refuses_a_record_and_stays_as_it_was(kernel):
    writer = kernel.RecordWriter(61, 100)
    assert writer.append(NOW, None, b"x" * 20)
    size = writer.size
    assert not writer.append(NOW + 9, None, b"x" * 20)
    assert (writer.size, writer.record_count, writer.max_timestamp) == (size, 1, NOW)
    assert writer.append(NOW, None, b"x")


def test_the_first_record_always_fits(kernel):
    writer = kernel.RecordWriter(61, 100)
    assert writer.append(NOW, None, b"x" * 1000)


def test_extending_stops_at_the_limit_and_says_where(kernel):
    values = [b"x" * 20] * 10
    writer = kernel.RecordWriter(0, 100)
    assert writer.extend(NOW, None, values) == 3
    assert writer.record_count == 3
    rest = kernel.RecordWriter()
    assert rest.extend(NOW, None, values, begin=3) == 10
    assert rest.record_count == 7


def test_a_limit_may_be_raised_and_not_lowered(kernel):
    writer = kernel.RecordWriter(0, 40)
    assert writer.append(NOW, None, b"x" * 30)
    assert not writer.append(NOW, None, b"x" * 30)
    writer.raise_limit(80)
    writer.raise_limit(10)
    assert writer.append(NOW, None, b"x" * 30)
    assert not writer.append(NOW, None, b"x" * 30)


def test_extending_gives_the_bytes_of_appending(kernel):
    one_by_one, at_once = kernel.RecordWriter(), kernel.RecordWriter()
    timestamps, keys, values = [NOW, NOW + 300, NOW - 2], [b"a", None, b""], [None, b"b" * 300, b"c"]
    headers = [[], [("h", None)], [("h", b"1"), ("i", b"2")]]
    for row in zip(timestamps, keys, values, headers, strict=True):
        one_by_one.append(*row)
    assert at_once.extend(timestamps, keys, values, headers) == 3
    assert at_once.finish() == one_by_one.finish()


def test_offset_deltas_may_leave_gaps_but_only_rise(kernel):
    writer = kernel.RecordWriter()
    writer.append(NOW, None, b"a", (), 3)
    writer.append(NOW, None, b"b", (), 9)
    with pytest.raises(ValueError, match="offset delta 9 does not follow 9"):
        writer.append(NOW, None, b"c", (), 9)
    writer.append(NOW, None, b"c")
    assert [record.offset for record in read(kernel, writer.finish(), 3)] == [103, 109, 110]


def test_a_given_base_timestamp_is_what_deltas_count_from(kernel):
    writer = kernel.RecordWriter(base_timestamp=NOW + 1000)
    writer.append(NOW, None, b"a")
    assert writer.base_timestamp == NOW + 1000
    assert read(kernel, writer.finish(), 1, base_timestamp=NOW + 1000)[0].timestamp == NOW


@pytest.mark.parametrize("timestamp", [-2, -(1 << 63)])
def test_a_negative_timestamp_is_refused(kernel, timestamp):
    with pytest.raises(ValueError, match="cannot be"):
        kernel.RecordWriter().append(timestamp, None, b"")


def test_a_number_beyond_64_bits_is_refused(kernel):
    with pytest.raises(OverflowError):
        kernel.RecordWriter().append(1 << 63, None, b"")


@pytest.mark.parametrize(
    "columns", [([NOW], None, [b"", b""]), (NOW, [b""], [b"", b""]), (NOW, None, [b"", b""], [[]])]
)
def test_sequences_of_different_lengths_are_refused(kernel, columns):
    with pytest.raises(ValueError, match="differ in number"):
        kernel.RecordWriter().extend(*columns)


def test_a_scan_sums_up_the_records(kernel):
    data = write(kernel, (NOW, b"k", b"a"), (NOW + 9, None, b"b"), (NOW - 9, None, b"c"))
    assert kernel.scan(data, NOW, 3) == (NOW - 9, NOW + 9, 1, True)


def test_a_scan_passes_over_records_without_a_timestamp(kernel):
    assert kernel.scan(write(kernel, (-1, b"k", b"a")), -1, 1) == (None, -1, -1, True)


def test_a_scan_notices_gaps_in_the_offsets(kernel):
    writer = kernel.RecordWriter()
    writer.append(NOW, b"k", b"", (), 1)
    assert not kernel.scan(writer.finish(), NOW, 1).in_sequence


GOOD = b"\x0c\x00\x00\x00\x01\x01\x00"


@pytest.mark.parametrize(
    ("data", "count", "message"),
    [
        (b"", 1, "record 0, byte 0: it ends in the middle of a field"),
        (b"\x80", 1, "record 0, byte 0: it ends in the middle of a field"),
        (b"\x80\x80\x80\x80\x80\x00", 1, "record 0, byte 0: a variable-length integer does not end"),
        (b"\x01", 1, "record 0, byte 0: its length is negative or runs past the batch"),
        (b"\x0c\x00\x00\x00\x01\x01", 1, "record 0, byte 0: its length is negative or runs past the batch"),
        (b"\x00", 1, "record 0, byte 1: it ends in the middle of a field"),
        (b"\x02\x00", 1, "record 0, byte 2: it ends in the middle of a field"),
        (b"\x18\x00" + b"\xff" * 10 + b"\x00", 1, "record 0, byte 2: a variable-length integer does not end"),
        (b"\x0c\x00\x00\x00\x08\x01\x00", 1, "record 0, byte 4: its key runs past the record"),
        (b"\x0c\x00\x00\x00\x01\x08\x00", 1, "record 0, byte 5: its value runs past the record"),
        (b"\x0c\x00\x00\x00\x01\x01\x01", 1, "record 0, byte 6: its number of headers is negative or more"),
        (b"\x0c\x00\x00\x00\x01\x01\x02", 1, "record 0, byte 6: its number of headers is negative or more"),
        (b"\x10\x00\x00\x00\x01\x01\x02\x01\x00", 1, "record 0, byte 7: a header's key has no length"),
        (b"\x10\x00\x00\x00\x01\x01\x02\x08\x00", 1, "record 0, byte 7: a header's key has no length or runs past"),
        (b"\x10\x00\x00\x00\x01\x01\x02\x00\x08", 1, "record 0, byte 8: a header's value runs past the record"),
        (b"\x0e\x00\x00\x00\x01\x01\x00\x00", 1, "record 0, byte 7: it is longer than its fields"),
        (GOOD + b"\x00", 1, "record 0, byte 7: bytes are left after the last record"),
        (GOOD, 2, "record 1, byte 7: it ends in the middle of a field"),
        (GOOD, -1, "the batch says it has a negative number of records"),
    ],
)
def test_what_is_wrong_with_records_is_said_with_its_place(kernel, data, count, message):
    with pytest.raises(CorruptBatch, match=message):
        list(kernel.RecordReader(data, 0, 0, None, count))
    with pytest.raises(CorruptBatch, match=message):
        kernel.scan(data, 0, count)
    with pytest.raises(CorruptBatch, match=message):
        kernel.ColumnReader().add(data, 0, 0, None, count)


def test_records_before_the_broken_one_are_given_out(kernel):
    reader = kernel.RecordReader(b"\x0c\x00\x00\x00\x01\x01\x00\xff", 0, 0, None, 2)
    assert next(reader).offset == 0
    with pytest.raises(CorruptBatch):
        next(reader)
    assert list(reader) == []


def test_any_negative_length_is_null_as_in_java(kernel):
    (record,) = read(kernel, b"\x0c\x00\x00\x00\x05\x03\x00", 1)
    assert (record.key, record.value) == (None, None)


def test_bits_beyond_an_integers_width_are_dropped_as_in_java(kernel):
    (record,) = read(kernel, b"\x14\x00\x00\x82\x80\x80\x80\x70\x01\x01\x00", 1)
    assert record.offset == 101


def test_offsets_wrap_like_64_bit_numbers(kernel):
    (record,) = kernel.RecordReader(b"\x0c\x00\x02\x02\x01\x01\x00", (1 << 63) - 1, -(1 << 63), None, 1)
    assert record.offset == -(1 << 63)
    assert record.timestamp == -(1 << 63) + 1


def test_data_cannot_be_pulled_away_under_a_reader(kernel):
    """The compiled reader holds the bytes it was given, so that growing them is an error; the pure one has a copy."""
    data = bytearray(b"\x0c\x00\x00\x00\x01\x01\x00" * 2)
    reader = kernel.RecordReader(data, 0, 0, None, 2)
    assert next(reader).offset == 0
    with suppress(BufferError):
        data.clear()
    assert next(reader).offset == 0
    del reader
    data.clear()


def test_a_map_knows_the_latest_offset_of_each_key_until_it_is_full(kernel):
    offsets = kernel.OffsetMap(4, 2, bytes(16))
    data = write(kernel, (NOW, b"a", b"1"), (NOW, None, b"2"), (NOW, b"b", None), (NOW, b"a", b"3"), (NOW, b"c", b"4"))
    assert not offsets.learn(data, 100, 5, 0)
    assert (len(offsets), offsets.latest_offset) == (2, 102)
    assert [offsets.get(key) for key in (b"a", b"b", b"c")] == [100, 102, -1]


def test_a_map_grows_to_as_many_keys_as_it_may_hold(kernel):
    offsets = kernel.OffsetMap(20_000, 20_000, bytes(16))
    assert all(offsets.put(b"%d" % number, number) for number in range(20_000))
    assert not offsets.put(b"one more", 20_000)
    assert [offsets.get(b"%d" % number) for number in range(20_000)] == list(range(20_000))


def test_retained_records_keep_their_offsets_and_timestamps_on_a_new_base(kernel):
    data = write(kernel, (NOW, b"a", b"1"), (NOW + 5, b"b", b"2", [("h", b"v")]), (NOW + 9, b"a", None))
    offsets = kernel.OffsetMap(4, 4, bytes(16))
    offsets.learn(data, 100, 3, 0)
    left = offsets.retain(data, 100, NOW, None, 3, True, False, NOW + 86_400_000, 0)
    assert left[:5] == (2, 0, True, NOW + 86_400_000, NOW + 9)
    first, second = read(kernel, left.records, 2, base_timestamp=left.base_timestamp)
    assert (first.offset, first.timestamp, first.key, first.headers) == (101, NOW + 5, b"b", (("h", b"v"),))
    assert (second.offset, second.timestamp, second.key, second.value) == (102, NOW + 9, b"a", None)
    left = offsets.retain(data, 100, NOW, None, 3, False, False, 0, 0)
    assert left[:5] == (1, 0, False, NOW + 5, NOW + 5)


def test_a_batch_that_loses_nothing_is_not_encoded_anew(kernel):
    data = write(kernel, (NOW, b"a", b"1"), (NOW + 5, b"b", b"2"))
    offsets = kernel.OffsetMap(4, 4, bytes(16))
    offsets.learn(data, 100, 2, 0)
    assert offsets.retain(data, 100, NOW, None, 2, True, False, 0, 61).records is None


def test_records_become_a_batch_with_its_header(kernel):
    writer = kernel.RecordWriter(HEADER_SIZE)
    writer.append(NOW, b"k", b"v")
    writer.append(NOW + 5, None, None)
    batch = writer.finish_batch(77, 3, 0)
    header = read_header(batch)
    assert header[:4] == (77, len(batch) - LOG_OVERHEAD, 3, 2)
    assert header[5:] == (0, 1, NOW, NOW + 5, -1, -1, 0, 2)
    assert checksum_matches(batch, 0, header)
    assert [(record.offset, record.key, record.value) for record in read_records(batch)] == [
        (77, b"k", b"v"),
        (78, None, None),
    ]


@pytest.mark.parametrize("reserved", [0, HEADER_SIZE])
def test_a_batch_needs_records_and_room_for_its_header(kernel, reserved):
    writer = kernel.RecordWriter(reserved)
    with pytest.raises(ValueError, match="at least one record"):
        writer.finish_batch(0, 0, 0)
    writer.append(NOW, None, bytes(100))
    if reserved:
        writer.finish_batch(0, 0, 0)
    with pytest.raises(ValueError, match="no batch"):
        writer.finish_batch(0, 0, 0)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_a_batch_is_sound_if_it_matches_its_checksum_and_the_one_that_was_found(kernel, kind):
    data = build_batch(NOW, None, [b"value"])
    crc = read_header(data).crc
    assert kernel.is_sound(kind(data))
    assert kernel.is_sound(kind(data), crc)
    assert not kernel.is_sound(kind(data), crc ^ 1)
    assert not kernel.is_sound(kind(data[:40]))
    for at in (18, 21, len(data) - 1):
        changed = bytearray(data)
        changed[at] ^= 1
        assert not kernel.is_sound(kind(changed))
