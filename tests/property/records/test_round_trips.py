"""What goes in comes out, whatever it is."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from ottla.records import arrow
from ottla.records.batch import Compression, checksum_matches, read_header
from ottla.records.builder import BatchBuilder
from ottla.records.compression import compress, decompress
from ottla.records.reader import read_records

some_bytes = st.none() | st.binary(max_size=300)
headers = st.lists(st.tuples(st.text(max_size=20), some_bytes), max_size=3).map(tuple)
records = st.lists(st.tuples(st.integers(-1, (1 << 53)), some_bytes, some_bytes, headers), min_size=1, max_size=20)


def built(rows, codec):
    builder = BatchBuilder(compression=codec)
    for row in rows:
        builder.append(*row)
    return builder.build()


def read(data):
    return [(record.timestamp, record.key, record.value, record.headers) for record in read_records(data)]


@given(records, st.sampled_from(Compression))
def test_records_survive_a_batch(rows, codec):
    data = built(rows, codec)
    header = read_header(data)
    assert read(data) == rows
    assert checksum_matches(data, 0, header)
    assert header.max_timestamp == max(timestamp for timestamp, *_ in rows)


@given(records, st.sampled_from(Compression), st.integers(100, 1000))
def test_records_survive_arrow(rows, codec, max_batch_size):
    columns = arrow.decode(built(rows, Compression.NONE), "t", 0)
    columns.validate(full=True)
    parts = list(arrow.encode(columns, compression=codec, max_batch_size=max_batch_size))
    assert [row for part in parts for row in read(part)] == rows


@given(st.binary(max_size=200_000), st.sampled_from(Compression))
def test_bytes_survive_compression(data, codec):
    assert bytes(decompress(codec, compress(codec, data), len(data))) == data


@given(st.lists(st.none() | st.binary(max_size=20), max_size=30), st.integers(0, 30), st.integers(0, 30))
def test_any_slice_of_a_column_is_encoded(values, start, length):
    rows = pa.table({"value": pa.array(values, pa.binary())}).slice(start, length)
    assert [row[2] for part in arrow.encode(rows, timestamp_ms=0) for row in read(part)] == values[start:][:length]
