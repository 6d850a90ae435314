"""Whatever bytes come, both kernels hand out the same records and raise the same error, and keep to their bounds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.records import _slow, fetched
from ottla.records.builder import BatchBuilder
from ottla.records.header import Compression, CorruptBatch

_fast = pytest.importorskip("ottla.records._fast")

VALUES = st.lists(st.none() | st.binary(max_size=40), min_size=1, max_size=5)
BATCHES = st.lists(
    st.tuples(VALUES, st.sampled_from([Compression.NONE, Compression.LZ4]), st.booleans()), min_size=1, max_size=4
)
DAMAGE = st.lists(st.tuples(st.integers(0, 600), st.integers(0, 255)), max_size=6)


def batches(described: list[tuple[list[bytes | None], Compression, bool]]) -> bytearray:
    data, offset = bytearray(), 0
    for values, compression, control in described:
        builder = BatchBuilder(base_offset=offset, leader_epoch=1, compression=compression, control=control)
        for value in values:
            builder.append(1000 + offset, value, value, (("h", value),))
        data += builder.build()
        offset += len(values)
    return data


def outcome(kernel, data: bytes, first_offset: int, portion: int, checks: bool) -> list[object]:
    before, fetched.FetchedRecords = fetched.FetchedRecords, kernel.FetchedRecords
    try:
        reader = fetched.fetched_records("t", 0, data, first_offset, check_crcs=checks)
    finally:
        fetched.FetchedRecords = before
    seen: list[object] = [reader.end_offset, reader.end_epoch, reader.next_batch_bytes]
    for _ in range(50):
        out: list[object] = []
        try:
            reader.take(out, portion)
        except CorruptBatch as problem:
            seen.append(str(problem))
        seen += [(*_fields(record), reader.next_offset, reader.bytes_left) for record in out]
        if not out:
            break
    return seen


def _fields(record) -> tuple[object, ...]:
    return record.offset, record.timestamp, record.key, record.value, record.headers, record.leader_epoch


@given(BATCHES, DAMAGE, st.integers(0, 12), st.integers(1, 6), st.booleans(), st.integers(0, 40))
def test_both_kernels_see_the_same_in_any_bytes(described, damage, first_offset, portion, checks, cut):
    data = batches(described)
    for position, value in damage:
        if position < len(data):
            data[position] = value
    whole = bytes(data[: len(data) - cut])
    assert outcome(_fast, whole, first_offset, portion, checks) == outcome(_slow, whole, first_offset, portion, checks)
