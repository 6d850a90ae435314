"""Walking through the batches of a file: by headers, and in full."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.base.ports import File
from ottla.log.scan import find_offset, scan_batches, scan_headers, start_after
from ottla.records.batch import CorruptBatch
from ottla.testing.memory_disk import MemoryDisk
from tests.unit.log.partition_logs import at_offset, batch

LEGACY = Path(__file__).parents[2] / "golden" / "kafka-4.3.1" / "legacy"
MEBIBYTE = 1 << 20

Scan = Callable[[File, int, int], Iterator[tuple[Any, ...]]]


def file_of(content: bytes) -> File:
    disk = MemoryDisk()
    disk.make_dirs("/data")
    file = disk.open("/data/00000000000000000000.log", create=True)
    file.write_at(0, content)
    return file


def three_batches(*sizes: int) -> list[bytes]:
    return [bytes(at_offset(offset, batch(b"x" * size))) for offset, size in enumerate(sizes)]


@pytest.mark.parametrize("sizes", [(1, 1, 1), (10, 5000, 10), (4000, 100, 100), (MEBIBYTE, 3 * MEBIBYTE, 1)])
def test_both_gaits_meet_every_batch(sizes: tuple[int, int, int]) -> None:
    written = three_batches(*sizes)
    file = file_of(b"".join(written))
    positions = [0, len(written[0]), len(written[0]) + len(written[1])]
    assert [(at, header.base_offset) for at, header in scan_headers(file, 0, file.size())] == list(
        zip(positions, range(3), strict=True)
    )
    met = [(at, header.base_offset, bytes(data)) for at, header, data in scan_batches(file, 0, file.size())]
    assert met == list(zip(positions, range(3), written, strict=True))


@pytest.mark.parametrize("sizes", [(1, 1, 1), (10, 5000, 10), (4000, 100, 100), (3950, 50, 1)])
def test_an_offset_is_found_in_the_batch_that_the_headers_say(sizes: tuple[int, int, int]) -> None:
    written = three_batches(*sizes)
    file = file_of(b"".join(written))
    expected = list(scan_headers(file, 0, file.size()))
    found = [find_offset(file, 0, file.size(), offset) for offset in range(4)]
    assert [one and one[:2] for one in found] == [*expected, None]
    for one in found[:3]:
        assert one is not None
        assert file.read_at(one.position, 100).startswith(one.window[one.at : one.at + 100])
    again = find_offset(file, expected[1][0], file.size(), 2)
    assert again is not None
    assert again[:2] == expected[2]


def test_the_offset_after_the_last_whole_batch() -> None:
    first, second, third = three_batches(10, 20, 30)
    whole = bytes(first + second)
    assert start_after(whole) == (2, len(whole))
    assert start_after(whole + bytes(third[:-1])) == (2, len(whole))
    assert start_after(whole + bytes(third)) == (3, len(whole) + len(third))
    assert start_after(bytes(first[:-1])) is None
    assert start_after(b"") is None


def test_an_offset_behind_damage_is_not_found_and_the_damage_is() -> None:
    first, second, third = three_batches(10, 20, 30)
    file = file_of(first + second[:8] + b"\x7f\xff\xff\xff" + second[12:] + third)
    assert find_offset(file, 0, file.size(), 0) is not None
    with pytest.raises(CorruptBatch):
        find_offset(file, 0, file.size(), 2)


def test_a_scan_can_start_at_any_batch_and_end_before_any() -> None:
    written = three_batches(10, 20, 30)
    file = file_of(b"".join(written))
    start, end = len(written[0]), len(written[0]) + len(written[1])
    assert [header.base_offset for _, header in scan_headers(file, start, end)] == [1]
    assert [header.base_offset for _, header, _ in scan_batches(file, start, end)] == [1]


def test_an_empty_range_has_no_batches() -> None:
    file = file_of(b"")
    assert list(scan_headers(file, 0, 0)) == []
    assert list(scan_batches(file, 0, 0)) == []
    assert find_offset(file, 0, 0, 0) is None


@pytest.mark.parametrize("scan", [scan_headers, scan_batches])
def test_what_is_before_the_damage_is_met_first(scan: Scan) -> None:
    written = three_batches(10, 20, 30)
    content = b"".join(written)
    for size in range(len(written[0]) + 1, len(content)):
        if size == len(written[0]) + len(written[1]):
            continue
        met: list[int] = []
        with pytest.raises(CorruptBatch):
            met.extend(found[1].base_offset for found in scan(file_of(content[:size]), 0, size))
        assert met == ([0] if size < len(written[0]) + len(written[1]) else [0, 1])


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 13, 2**31 - 1])
@pytest.mark.parametrize("scan", [scan_headers, scan_batches])
def test_a_length_that_cannot_be_is_corrupt_before_anything_is_allocated(scan: Scan, length: int) -> None:
    content = bytearray(batch())
    content[8:12] = length.to_bytes(4, "big", signed=True)
    with pytest.raises(CorruptBatch):
        list(scan(file_of(content), 0, len(content)))


@pytest.mark.parametrize("scan", [scan_headers, scan_batches])
def test_zeros_are_not_a_batch(scan: Scan) -> None:
    """What a file system leaves of writes that never reached the disk."""
    with pytest.raises(CorruptBatch):
        list(scan(file_of(bytes(5000)), 0, 5000))


def test_a_file_shorter_than_it_should_be_is_corrupt() -> None:
    content = b"".join(three_batches(10, 20, 30))
    for missing in (1, 40, 100):
        with pytest.raises(CorruptBatch):
            list(scan_batches(file_of(content[:-missing]), 0, len(content)))


@pytest.mark.parametrize("name", sorted(path.name for path in LEGACY.iterdir()))
def test_segments_of_the_older_formats_are_walked_too(name: str) -> None:
    content = (LEGACY / name / "00000000000000000000.log").read_bytes()
    file = file_of(content)
    by_header = list(scan_headers(file, 0, len(content)))
    in_full = list(scan_batches(file, 0, len(content)))
    assert by_header == [(position, header) for position, header, _ in in_full]
    assert {header.magic for _, header in by_header} == {int(name.split("-")[1])}
    assert sum(header.size for _, header in by_header) == len(content)
