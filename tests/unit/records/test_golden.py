"""Reading what Apache Kafka 4.3.1 wrote: every codec, both timestamp types, transactions, both older formats."""

import json
from base64 import b64decode
from hashlib import sha256
from pathlib import Path

import pytest

from ottla.records import arrow
from ottla.records.batch import MAGIC, batches, checksum_matches, read_header
from ottla.records.builder import BatchBuilder
from ottla.records.control import (
    EndTransactionMarker,
    build_end_transaction_marker,
    parse_end_transaction_marker,
)
from ottla.records.reader import read_records
from ottla.records.visibility import visible_batches

GOLDEN = Path(__file__).parents[2] / "golden" / "kafka-4.3.1"
PARTITIONS = sorted(
    path for name in ("clean", "killed", "legacy") for path in (GOLDEN / f"{name}.expected").glob("*.json")
)


def segments(expected: Path) -> bytes:
    directory = GOLDEN / expected.parent.stem / expected.stem
    return b"".join(path.read_bytes() for path in sorted(directory.glob("*.log")))


def comparable(row):
    """A record as the expectations have it: long values by their digest, headers as pairs."""
    value = None if row["value"] is None else b64decode(row["value"])
    digest = row.get("value_sha256")
    headers = [(key, None if value is None else b64decode(value)) for key, value in row.get("headers", [])]
    return (
        row["offset"],
        row["timestamp"],
        None if row["key"] is None else b64decode(row["key"]),
        digest or value,
        tuple(headers),
    )


@pytest.mark.parametrize("expected", PARTITIONS, ids=lambda path: f"{path.parent.stem}/{path.stem}")
def test_every_record_reads_as_java_reads_it(expected):
    said = json.loads(expected.read_text())
    rows = {row["offset"]: row for row in said["records"]}
    data = segments(expected)
    seen = []
    for position, header in visible_batches(data):
        assert checksum_matches(data, position, header)
        for record in read_records(data, position, header):
            if record.offset not in rows:
                continue  # below the log start offset
            value = record.value
            if "value_sha256" in rows[record.offset]:
                value = sha256(value).hexdigest()
            seen.append((record.offset, record.timestamp, record.key, value, record.headers))
    assert seen == [comparable({"value": None, **row}) for row in said["records"]]


@pytest.mark.parametrize("expected", PARTITIONS, ids=lambda path: f"{path.parent.stem}/{path.stem}")
def test_arrow_has_the_records_that_iteration_has(expected):
    data = segments(expected)
    rows = arrow.decode(data, "t", 3).to_pylist()
    records = [
        (record, header.is_log_append_time)
        for position, header in visible_batches(data)
        for record in read_records(data, position, header)
    ]
    assert len(rows) == len(records)
    for row, (record, stamped) in zip(rows, records, strict=True):
        assert (row["offset"], row["key"], row["value"]) == (record.offset, record.key, record.value)
        assert round(row["timestamp"].timestamp() * 1000) == record.timestamp
        assert row["timestampType"] == stamped
        assert tuple((header["key"], header["value"]) for header in row["headers"]) == record.headers


@pytest.mark.parametrize("name", ["plain-0", "plain-1", "create-time-0", "idempotent-0", "transactions-0"])
def test_what_we_build_from_the_same_records_is_javas_bytes(name):
    data = segments(GOLDEN / "clean.expected" / f"{name}.json")
    for position, header in batches(data):
        if header.is_control or header.compression:
            continue
        builder = BatchBuilder(
            base_offset=header.base_offset,
            leader_epoch=header.partition_leader_epoch,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
            transactional=header.is_transactional,
        )
        for record in read_records(data, position, header):
            builder.append(record.timestamp, record.key, record.value, record.headers)
        assert builder.build() == data[position : position + header.size]


@pytest.mark.parametrize(("name", "level"), [("lz4-0", None), ("zstd-0", None), ("recompressed-0", 9)])
def test_what_we_compress_is_javas_bytes(name, level):
    data = segments(GOLDEN / "clean.expected" / f"{name}.json")
    for position, header in batches(data):
        builder = BatchBuilder(compression=header.compression, level=level)
        for record in read_records(data, position, header):
            builder.append(record.timestamp, record.key, record.value, record.headers)
        assert builder.build()[61:] == data[position + 61 : position + header.size]


def test_transaction_markers_are_javas_bytes():
    data = segments(GOLDEN / "clean.expected" / "transactions-0.json")
    markers = [(p, h) for p, h in batches(data) if h.is_control]
    assert {parse_end_transaction_marker(data, p, h).committed for p, h in markers} == {True, False}
    for position, header in markers:
        marker = parse_end_transaction_marker(data, position, header)
        built = build_end_transaction_marker(marker, header.producer_id, header.producer_epoch, header.max_timestamp)
        assert isinstance(marker, EndTransactionMarker)
        assert built[16:] == data[position + 16 : position + header.size]


def test_read_committed_shows_what_a_java_consumer_shows():
    expected = GOLDEN / "clean.expected" / "transactions-0.json"
    said = json.loads(expected.read_text())
    data = segments(expected)
    first: dict[int, int] = {}
    aborted = []
    for position, header in batches(data):
        if header.is_control:
            start = first.pop(header.producer_id)
            if not parse_end_transaction_marker(data, position, header).committed:
                aborted.append((header.producer_id, start))
        elif header.is_transactional:
            first.setdefault(header.producer_id, header.base_offset)
    assert aborted
    stable = said["last_stable_offset"]
    rows = arrow.decode(data, "t", 0, aborted=aborted, end_offset=stable)
    assert rows.column("offset").to_pylist() == said["read_committed"]


@pytest.mark.parametrize("directory", sorted((GOLDEN / "legacy").iterdir()), ids=lambda path: path.name)
def test_entries_of_the_older_formats_are_shown_as_batches(directory):
    data = (directory / "00000000000000000000.log").read_bytes()
    next_offset = 0
    for position, header in batches(data):
        assert header.magic == int(directory.name.split("-")[1]) < MAGIC
        records = list(read_records(data, position, header))
        assert (header.base_offset, header.last_offset) == (records[0].offset, records[-1].offset)
        assert header.record_count == len(records)
        assert header.base_offset >= next_offset
        assert checksum_matches(data, position, header)
        next_offset = header.next_offset
        broken = bytearray(data[position : position + header.size])
        broken[-1] ^= 1
        if not header.compression:
            assert not checksum_matches(broken, 0, read_header(broken))
