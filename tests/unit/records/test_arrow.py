import pyarrow as pa
import pytest

from ottla.records import _slow, arrow
from ottla.records.batch import Compression, CorruptBatch, assign, read_header
from ottla.records.builder import BatchBuilder
from ottla.records.reader import read_records

NOW = 1_700_000_000_000
ROWS = [
    (NOW, None, b"", ()),
    (NOW + 1, b"", None, (("h", b"1"),)),
    (NOW - 1000, b"key", b"v" * 1000, (("h", b""), ("ü", None))),
    (-1, b"k", b"last", ()),
]


def batch(rows=ROWS, base_offset=100, **fields):
    builder = BatchBuilder(**fields)
    for row in rows:
        builder.append(*row)
    data = builder.build()
    assign(data, 0, base_offset, 0)
    return bytes(data)


def table(data, **options):
    rows = arrow.decode(data, "clicks", 7, **options)
    rows.validate(full=True)
    return rows


def records(batches):
    return [(r.timestamp, r.key, r.value, r.headers) for data in batches for r in read_records(data)]


def test_columns_are_those_of_sparks_kafka_connector():
    rows = table(batch())
    assert rows.schema == arrow.SCHEMA
    assert [str(field.type) for field in rows.schema] == [
        "binary",
        "binary",
        "string",
        "int32",
        "int64",
        "timestamp[us, tz=UTC]",
        "int32",
        "list<item: struct<key: string not null, value: binary>>",
    ]


@pytest.mark.parametrize("codec", Compression)
def test_every_field_arrives(codec):
    rows = table(batch(compression=codec))
    assert rows.column("key").to_pylist() == [None, b"", b"key", b"k"]
    assert rows.column("value").to_pylist() == [b"", None, b"v" * 1000, b"last"]
    assert rows.column("topic").to_pylist() == ["clicks"] * 4
    assert rows.column("partition").to_pylist() == [7] * 4
    assert rows.column("offset").to_pylist() == [100, 101, 102, 103]
    assert rows.column("timestamp").cast(pa.int64()).to_pylist() == [t * 1000 for t in (NOW, NOW + 1, NOW - 1000, -1)]
    assert rows.column("timestampType").to_pylist() == [0] * 4
    headers = [[(h["key"], h["value"]) for h in row] for row in rows.column("headers").to_pylist()]
    assert headers == [[], [("h", b"1")], [("h", b""), ("ü", None)], []]


def test_log_append_time_is_the_timestamp_and_the_type_says_so():
    rows = table(batch(log_append_time_ms=NOW + 5))
    assert set(rows.column("timestamp").cast(pa.int64()).to_pylist()) == {(NOW + 5) * 1000}
    assert rows.column("timestampType").to_pylist() == [1] * 4


def test_batches_follow_one_another_within_a_piece_and_across_pieces():
    first, second = batch(), batch(base_offset=200, compression=Compression.ZSTD)
    offsets = [100, 101, 102, 103, 200, 201, 202, 203]
    assert table(first + second).column("offset").to_pylist() == offsets
    assert table([first, second]).column("offset").to_pylist() == offsets


def test_offsets_outside_the_asked_range_are_left_out():
    data = batch() + batch(base_offset=104)
    assert table(data, first_offset=102, end_offset=105).column("offset").to_pylist() == [102, 103, 104]


def test_nothing_gives_no_rows():
    assert table(b"").num_rows == 0
    assert table(b"").schema == arrow.SCHEMA


def test_timestamps_beyond_arrows_range_are_at_its_end():
    rows = table(batch([((1 << 63) - 1, None, b"", ())]))
    assert rows.column("timestamp").cast(pa.int64()).to_pylist() == [(1 << 63) - 1]


def test_a_header_key_that_is_not_utf8_becomes_valid_text():
    data = bytearray(batch([(NOW, None, b"", (("né", b"x"),))]))
    at = data.index("é".encode())
    data[at : at + 2] = b"\xff\xff"
    assert table(data).column("headers").to_pylist() == [[{"key": "n\ufffd\ufffd", "value": b"x"}]]


def test_a_broken_record_is_corrupt():
    data = bytearray(batch())
    data[61] = 0xFF
    with pytest.raises(CorruptBatch, match="record 0"):
        table(data)


def test_the_pure_kernel_gives_the_same_columns(monkeypatch):
    data = batch() + batch(base_offset=104, log_append_time_ms=5)
    compiled = table(data)
    monkeypatch.setattr(arrow, "ColumnReader", _slow.ColumnReader)
    assert table(data).equals(compiled)


@pytest.mark.parametrize("codec", Compression)
def test_columns_become_the_records_they_came_from(codec):
    data = batch()
    built = list(arrow.encode(table(data), compression=codec))
    assert [read_header(part).compression for part in built] == [codec]
    assert records(built) == records([data])


def test_a_table_needs_only_a_value():
    rows = pa.table({"value": ["a", None, "c"]})
    assert records(arrow.encode(rows, timestamp_ms=NOW)) == [
        (NOW, None, b"a", ()),
        (NOW, None, None, ()),
        (NOW, None, b"c", ()),
    ]


def test_rows_without_a_timestamp_need_one_given():
    rows = pa.table({"value": [b"a", b"b"], "timestamp": pa.array([NOW, None], pa.timestamp("ms"))})
    with pytest.raises(ValueError, match="no timestamp"):
        list(arrow.encode(rows))
    assert [record[0] for record in records(arrow.encode(rows, timestamp_ms=5))] == [NOW, 5]


@pytest.mark.parametrize("type_", [pa.large_binary(), pa.string(), pa.large_string(), pa.binary_view()])
def test_byte_strings_may_be_of_any_of_arrows_types(type_):
    rows = pa.table({"key": pa.array(["k"], pa.string()).cast(pa.binary()).cast(type_), "value": [b"v"]})
    assert records(arrow.encode(rows, timestamp_ms=0)) == [(0, b"k", b"v", ())]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_timestamps_may_be_of_any_unit(unit):
    stamp = pa.array([NOW], pa.timestamp("ms", tz="UTC")).cast(pa.timestamp(unit, tz="UTC"))
    assert records(arrow.encode(pa.table({"value": [b"v"], "timestamp": stamp}))) == [(NOW, None, b"v", ())]


def test_slices_are_encoded_from_where_they_begin():
    rows = table(batch() + batch(base_offset=104))
    everything = records(arrow.encode(rows))
    for start in range(9):
        for stop in range(start, 9):
            assert records(arrow.encode(rows.slice(start, stop - start))) == everything[start:stop]


def test_a_null_list_of_headers_is_none():
    headers = pa.array([None, [{"key": "h", "value": b"1"}]], arrow.HEADERS_TYPE)
    rows = pa.table({"value": [b"a", b"b"], "headers": headers})
    assert [record[3] for record in records(arrow.encode(rows, timestamp_ms=0))] == [(), (("h", b"1"),)]


def test_batches_end_before_they_grow_too_large_and_sequences_go_on():
    rows = pa.table({"value": [b"x" * 100] * 50})
    built = list(
        arrow.encode(rows, timestamp_ms=0, max_batch_size=1000, producer_id=1, producer_epoch=0, base_sequence=3)
    )
    assert all(len(part) <= 1000 for part in built)
    assert [read_header(part).base_sequence for part in built] == [3, 11, 19, 27, 35, 43, 51][: len(built)]
    assert len(records(built)) == 50


def test_a_record_that_is_too_large_alone_gets_a_batch_of_its_own():
    rows = pa.table({"value": [b"x", b"x" * 5000, b"x"]})
    sizes = [read_header(part).record_count for part in arrow.encode(rows, timestamp_ms=0, max_batch_size=1000)]
    assert sizes == [1, 1, 1]


def test_columns_with_offsets_that_lie_are_refused(kernel):
    from ottla.records.columns import BinaryColumn

    lying = BinaryColumn((0).to_bytes(4, "little") + (99).to_bytes(4, "little"), b"short", None)
    with pytest.raises(ValueError, match="outside its bytes"):
        kernel.RecordWriter().extend_columns(bytes(8), None, lying, None, 0, 1)
    with pytest.raises(ValueError, match="no row 1"):
        kernel.RecordWriter().extend_columns(bytes(16), None, BinaryColumn(bytes(8), b"", None), None, 0, 2)
