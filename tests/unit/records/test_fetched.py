"""Fetched bytes to a consumer's records, on the compiled kernel and on its pure twin."""

import pickle

import pytest

from ottla.records import fetched
from ottla.records.batch import CorruptBatch
from ottla.records.builder import BatchBuilder
from ottla.records.control import ControlType, build_control_batch
from ottla.records.header import Compression, TimestampType

NOW = 1_700_000_000_000


def batch(base_offset, *values, key=None, headers=(), **options):
    builder = BatchBuilder(base_offset=base_offset, leader_epoch=3, **options)
    for value in values:
        builder.append(NOW, key, value, headers)
    return bytes(builder.build())


@pytest.fixture(autouse=True)
def chosen_kernel(kernel, monkeypatch):
    monkeypatch.setattr(fetched, "FetchedRecords", kernel.FetchedRecords)


def reader(data, first_offset=0, **options):
    return fetched.fetched_records("orders", 7, data, first_offset, **options)


def take(records, most=1_000_000):
    out = []
    records.take(out, most)
    return out


def values(records, most=1_000_000):
    return [record.value for record in take(records, most)]


def test_a_record_knows_where_it_is_from_and_everything_that_was_sent():
    data = batch(40, b"value", key=b"key", headers=(("trace", b"1"),))
    [record] = take(reader(data, 40))
    assert (record.topic, record.partition, record.offset, record.timestamp) == ("orders", 7, 40, NOW)
    assert (record.key, record.value, record.headers) == (b"key", b"value", (("trace", b"1"),))
    assert (record.leader_epoch, record.timestamp_type) == (3, TimestampType.CREATE_TIME)
    assert (record.serialized_key_size, record.serialized_value_size) == (3, 5)


def test_records_are_taken_in_portions_across_batches():
    records = reader(batch(0, b"a", b"b", b"c") + batch(3, b"d", b"e"))
    assert values(records, 2) == [b"a", b"b"]
    assert (records.next_offset, records.bytes_left) == (2, len(records.data))
    assert values(records, 2) == [b"c", b"d"]
    assert values(records, 2) == [b"e"]
    assert (records.next_offset, records.last_epoch, records.bytes_left) == (5, 3, 0)
    assert values(records) == []


@pytest.mark.parametrize("compression", Compression)
def test_a_batch_is_entered_where_the_consumer_stands(compression):
    data = batch(10, b"a", b"b", b"c", compression=compression)
    assert values(reader(data, 11)) == [b"b", b"c"]


def test_batches_before_the_position_are_passed_over():
    assert values(reader(batch(0, b"a") + batch(1, b"b"), 1)) == [b"b"]


def test_a_last_batch_that_is_cut_off_is_left_for_the_next_fetch():
    records = reader(batch(0, b"a") + batch(1, b"b")[:-1])
    assert values(records) == [b"a"]
    assert records.next_offset == 1


def test_where_the_next_fetch_begins_is_known_before_anything_is_taken():
    records = reader(batch(0, b"a", b"b") + batch(2, b"c", compression=Compression.ZSTD) + batch(3, b"d")[:-1])
    assert (records.end_offset, records.end_epoch) == (3, 3)
    assert reader(b"", 8).end_offset == reader(batch(9, b"x")[:30], 8).end_offset == 8


def test_how_large_the_next_batch_is_is_known_from_its_head_or_guessed_from_those_before():
    small, large = batch(0, b"a"), batch(1, bytes(5000))
    assert reader(small + large[:17]).next_batch_bytes == len(large)
    assert reader(large + small[:-1]).next_batch_bytes == len(small)
    assert reader(large + small + small[:16]).next_batch_bytes == reader(large + small).next_batch_bytes == len(large)
    assert reader(b"").next_batch_bytes == 0


def test_the_position_moves_past_control_batches_and_gaps():
    marker = bytes(build_control_batch(ControlType.COMMIT, bytes(6), NOW, base_offset=1))
    records = reader(batch(0, b"a") + marker)
    assert values(records) == [b"a"]
    assert records.next_offset == 2


def test_records_of_aborted_transactions_are_left_out():
    def of(producer_id, base_offset, value):
        return batch(base_offset, value, producer_id=producer_id, producer_epoch=0, base_sequence=0, transactional=True)

    abort = bytes(build_control_batch(ControlType.ABORT, bytes(6), NOW, base_offset=2, producer_id=9, producer_epoch=0))
    data = of(9, 0, b"aborted") + of(8, 1, b"other") + abort + of(9, 3, b"later")
    records = reader(data, aborted=[(9, 0)])
    assert values(records) == [b"other", b"later"]
    assert records.next_offset == 4


def test_log_append_time_is_every_records_timestamp():
    [record] = take(reader(batch(0, b"a", log_append_time_ms=42)))
    assert (record.timestamp, record.timestamp_type) == (42, TimestampType.LOG_APPEND_TIME)


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.LZ4])
def test_a_wrong_checksum_is_raised_where_it_is_and_again(compression):
    broken = bytearray(batch(1, b"b", compression=compression))
    broken[30] ^= 1
    records = reader(batch(0, b"a") + bytes(broken))
    out = []
    for _ in range(2):
        with pytest.raises(CorruptBatch, match="the batch at offset 1 does not match its checksum"):
            records.take(out, 10)
    assert [record.value for record in out] == [b"a"]
    assert records.next_offset == 1


def test_checksums_are_not_looked_at_if_they_are_not_to_be():
    broken = bytearray(batch(1, b"b"))
    broken[17] ^= 1
    assert values(reader(bytes(broken), check_crcs=False)) == [b"b"]


def test_a_broken_record_is_raised_after_those_before_it_are_taken():
    data = bytearray(batch(0, b"aaaa", b"bbbb"))
    data[-6] = 0x7F  # the length of the last value
    records = reader(bytes(data), check_crcs=False)
    out = []
    for _ in range(2):
        with pytest.raises(CorruptBatch, match="record 1, byte"):
            records.take(out, 10)
    assert [record.value for record in out] == [b"aaaa"]


def test_deserializers_see_topic_and_headers_and_never_null():
    seen = []

    def deserialize(topic, content, headers):
        seen.append((topic, content, headers))
        return len(seen)

    data = batch(0, b"v", None, key=b"k", headers=(("h", b"1"),))
    first, second = take(reader(data, key_deserializer=deserialize, value_deserializer=deserialize))
    assert (first.key, first.value, second.key, second.value) == (1, 2, 3, None)
    assert seen[:2] == [("orders", b"k", (("h", b"1"),)), ("orders", b"v", (("h", b"1"),))]
    assert (second.serialized_key_size, second.serialized_value_size) == (1, -1)


def test_a_record_that_cannot_be_deserialized_is_shown_raw_and_stays_the_next():
    def deserialize(topic, content, headers):
        return int(content)

    records = reader(batch(0, b"1", b"x", b"3"), value_deserializer=deserialize)
    out = []
    for _ in range(2):
        with pytest.raises(ValueError, match="invalid literal"):
            records.take(out, 10)
    raw = records.next_raw()
    assert ([record.value for record in out], raw.offset, raw.value) == ([1], 1, b"x")


def test_an_empty_batch_that_compaction_left_moves_the_position():
    data = bytearray(batch(5, b"a")[:61])
    data[8:12] = (61 - 12).to_bytes(4, "big")
    data[57:61] = bytes(4)
    records = reader(bytes(data), 5, check_crcs=False)
    assert values(records) == []
    assert records.next_offset == 6


def test_consumer_records_compare_print_match_and_pickle(kernel):
    record = kernel.ConsumerRecord("orders", 7, 40, NOW, b"k", b"v", (("h", None),), 1, 3)
    assert record == kernel.ConsumerRecord("orders", 7, 40, NOW, b"k", b"v", (("h", None),), 1, 3)
    assert record != kernel.ConsumerRecord("orders", 7, 41, NOW, b"k", b"v", (("h", None),), 1, 3)
    assert len({record, kernel.ConsumerRecord("orders", 7, 40)}) == 2
    assert pickle.loads(pickle.dumps(record)) == record
    assert repr(record) == (
        f"ConsumerRecord(topic='orders', partition=7, offset=40, timestamp={NOW}, key=b'k', value=b'v', "
        "headers=(('h', None),))"
    )
    match record:
        case kernel.ConsumerRecord(topic, partition, offset):
            assert (topic, partition, offset) == ("orders", 7, 40)
    with pytest.raises(AttributeError):
        record.value = b"other"


def test_both_kernels_read_the_older_formats():
    import struct
    import zlib

    body = struct.pack(">bbq", 1, 0, NOW) + struct.pack(">i", -1) + struct.pack(">i", 3) + b"old"
    message = struct.pack(">I", zlib.crc32(body)) + body
    data = struct.pack(">qi", 12, len(message)) + message
    [record] = take(reader(data, 12))
    assert (record.offset, record.value, record.timestamp, record.leader_epoch) == (12, b"old", NOW, None)
