"""aiokafka's record classes as an oracle, both ways, in every codec."""

import pytest
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from ottla.records.batch import Compression, assign, checksum_matches, read_header
from ottla.records.builder import BatchBuilder
from ottla.records.reader import read_records

NOW = 1_700_000_000_000
RECORDS = [
    (NOW, None, b"", []),
    (NOW + 1, b"", None, [("h", b"1")]),
    (NOW - 1000, b"key", b"v" * 100_000, [("h", b""), ("ü", None)]),
    (NOW + 70, b"k" * 200, b"repeat " * 500, []),
]


@pytest.mark.parametrize("codec", Compression)
def test_aiokafka_reads_what_we_build(codec):
    builder = BatchBuilder(compression=codec, producer_id=5, producer_epoch=2, base_sequence=9)
    for record in RECORDS:
        builder.append(*record)
    data = builder.build()
    assign(data, 0, 50, 1)
    theirs = DefaultRecordBatch(bytes(data))
    assert theirs.validate_crc()
    assert (theirs.producer_id, theirs.producer_epoch, theirs.base_sequence) == (5, 2, 9)
    assert (theirs.base_offset, theirs.last_offset_delta) == (50, 3)
    assert (theirs.first_timestamp, theirs.max_timestamp) == (NOW, NOW + 70)
    read = [(record.offset, record.timestamp, record.key, record.value, record.headers) for record in theirs]
    assert read == [(50 + index, *record) for index, record in enumerate(RECORDS)]


@pytest.mark.parametrize("codec", Compression)
def test_we_read_what_aiokafka_builds(codec):
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=1,
        producer_id=5,
        producer_epoch=2,
        base_sequence=9,
        batch_size=1 << 20,
    )
    for index, (timestamp, key, value, headers) in enumerate(RECORDS):
        builder.append(index, timestamp, key, value, headers)
    data = bytes(builder.build())
    header = read_header(data)
    assert checksum_matches(data, 0, header)
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.record_count) == (5, 2, 9, 4)
    read = [(record.timestamp, record.key, record.value, list(record.headers)) for record in read_records(data)]
    assert read == RECORDS
