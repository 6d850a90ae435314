import struct
import zlib

import pytest

from ottla.records.batch import (
    Compression,
    CorruptBatch,
    TimestampType,
    assign,
    batches,
    checksum_matches,
    complete_batches,
    peek_header,
    read_header,
    set_max_timestamp,
)
from ottla.records.builder import BatchBuilder, build_batch
from ottla.records.reader import read_records

NOW = 1_700_000_000_000


def test_a_built_batch_has_the_header_that_was_asked_for():
    builder = BatchBuilder(
        compression=Compression.ZSTD,
        base_offset=10,
        leader_epoch=3,
        producer_id=7,
        producer_epoch=1,
        base_sequence=(1 << 31) - 1,
        transactional=True,
    )
    builder.append(NOW + 5, b"k", b"v")
    builder.append(NOW, b"k", b"v")
    data = builder.build()
    header = read_header(data)
    assert (header.base_offset, header.last_offset, header.next_offset) == (10, 11, 12)
    assert (header.base_timestamp, header.max_timestamp) == (NOW + 5, NOW + 5)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 1, (1 << 31) - 1)
    assert header.last_sequence == 0
    assert header.partition_leader_epoch == 3
    assert header.compression == Compression.ZSTD
    assert header.is_transactional
    assert not header.is_control
    assert header.record_count == 2
    assert header.size == len(data)
    assert checksum_matches(data, 0, header)


def test_a_batch_needs_a_record():
    with pytest.raises(ValueError, match="at least one record"):
        BatchBuilder().build()


def test_size_counts_the_header_and_the_records_so_far():
    builder = BatchBuilder(limit=80)
    assert builder.size == 61
    assert builder.append(NOW, None, b"12345")
    assert builder.size == 61 + 12
    assert not builder.append(NOW, None, b"12345")
    assert len(builder.build()) == 73


def test_assigning_offset_and_epoch_leaves_the_checksum_valid():
    data = build_batch(NOW, None, [b"a", b"b"])
    assign(data, 0, 1000, 5)
    header = read_header(data)
    assert (header.base_offset, header.partition_leader_epoch) == (1000, 5)
    assert checksum_matches(data, 0, header)
    assert [record.offset for record in read_records(data)] == [1000, 1001]


def test_log_append_time_is_set_in_the_header_and_shown_by_every_record():
    data = build_batch([NOW, NOW + 1], None, [b"a", b"b"], compression=Compression.LZ4)
    records = bytes(data[61:])
    header = set_max_timestamp(data, 0, read_header(data), TimestampType.LOG_APPEND_TIME, NOW + 99)
    assert header == read_header(data)
    assert checksum_matches(data, 0, header)
    assert data[61:] == records
    assert [record.timestamp for record in read_records(data)] == [NOW + 99, NOW + 99]


def test_a_batch_with_a_delete_horizon_counts_its_timestamps_from_it():
    builder = BatchBuilder(delete_horizon_ms=NOW + 1000)
    builder.append(NOW, b"k", None)
    data = builder.build()
    header = read_header(data)
    assert header.has_delete_horizon
    assert (header.base_timestamp, header.max_timestamp) == (NOW + 1000, NOW)
    assert next(read_records(data)).timestamp == NOW


def test_a_batch_stamped_when_built_shows_the_stamp():
    builder = BatchBuilder(log_append_time_ms=NOW + 7)
    builder.append(NOW, None, b"v")
    assert next(read_records(builder.build())).timestamp == NOW + 7


def test_a_cut_off_last_batch_is_an_error_on_disk_and_usual_in_a_fetch():
    data = bytes(build_batch(NOW, None, [b"a"]))
    for end in range(len(data) + 1, 2 * len(data)):
        assert len(list(complete_batches((data + data)[:end]))) == 1
        with pytest.raises(CorruptBatch):
            list(batches((data + data)[:end]))
    assert [position for position, _ in complete_batches(data + data)] == [0, len(data)]


@pytest.mark.parametrize("length", [-1, 0, 48, 1 << 30])
def test_a_length_that_cannot_be_is_corrupt(length):
    data = build_batch(NOW, None, [b"a"])
    struct.pack_into(">i", data, 8, length)
    with pytest.raises(CorruptBatch, match="says it has"):
        read_header(data)


@pytest.mark.parametrize("magic", [3, 127, 255])
def test_a_magic_that_kafka_never_wrote_is_corrupt(magic):
    data = build_batch(NOW, None, [b"a"])
    data[16] = magic
    with pytest.raises(CorruptBatch, match="magic"):
        read_header(data)


def test_a_header_can_be_read_without_its_records():
    data = build_batch(NOW, None, [b"a" * 100])
    assert peek_header(data[:61]) == read_header(data)


def test_a_wrong_bit_is_noticed_by_the_checksum():
    data = build_batch(NOW, None, [b"a"])
    data[-1] ^= 1
    assert not checksum_matches(data, 0, read_header(data))


def entry(offset: int, magic: int, value: bytes, attributes: int = 0, timestamp: int = NOW) -> bytes:
    """A message of the older formats."""
    body = struct.pack(">bb", magic, attributes)
    if magic:
        body += struct.pack(">q", timestamp)
    body += struct.pack(">ii", -1, len(value)) + value
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def test_offsets_in_a_compressed_entry_of_magic_1_are_relative_to_its_last():
    inner = entry(0, 1, b"a") + entry(1, 1, b"b", timestamp=NOW + 1) + entry(4, 1, b"c")
    wrapped = entry(104, 1, zlib.compress(inner, wbits=31), attributes=1)
    header = read_header(wrapped)
    assert (header.base_offset, header.last_offset, header.record_count) == (100, 104, 3)
    assert [(r.offset, r.timestamp) for r in read_records(wrapped)] == [(100, NOW), (101, NOW + 1), (104, NOW)]


def test_log_append_time_of_a_compressed_entry_is_that_of_all_inside():
    inner = entry(0, 1, b"a") + entry(1, 1, b"b")
    wrapped = entry(1, 1, zlib.compress(inner, wbits=31), attributes=1 | 8, timestamp=NOW + 50)
    assert [record.timestamp for record in read_records(wrapped)] == [NOW + 50, NOW + 50]


def test_a_compressed_entry_whose_offset_was_left_at_zero_is_read_from_zero():
    inner = entry(0, 1, b"a") + entry(1, 1, b"b")
    wrapped = entry(0, 1, zlib.compress(inner, wbits=31), attributes=1)
    assert [record.offset for record in read_records(wrapped)] == [0, 1]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (entry(5, 1, zlib.compress(entry(9, 1, b"a"), wbits=31), 1), "less than the ones inside"),
        (entry(5, 1, zlib.compress(b"", wbits=31), 1), "compressed and empty"),
        (entry(5, 1, zlib.compress(entry(0, 1, b"a", 1), wbits=31), 1), "holds a compressed one"),
        (entry(5, 1, b"junk", 1), "not gzip data"),
        (entry(5, 1, b"junk", 4), "cannot be a compressed one"),
        (entry(5, 1, b"junk")[:-1], "says it has"),
    ],
)
def test_a_broken_entry_of_the_older_formats_is_corrupt(data, message):
    with pytest.raises(CorruptBatch, match=message):
        list(read_records(data))


@pytest.mark.parametrize("position", [26, 30], ids=["key", "value"])
def test_lengths_in_an_entry_are_not_believed(position):
    data = bytearray(entry(5, 1, b"value"))
    struct.pack_into(">i", data, position, 1000)
    with pytest.raises(CorruptBatch):
        list(read_records(data))
