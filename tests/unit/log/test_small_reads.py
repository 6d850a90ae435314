"""Small reads of stored batches: one look into the file, of which the bytes come with the answer."""

from collections import Counter
from typing import Any

import pytest

from ottla.base.ports import File
from ottla.log.partition_log import PartitionLog
from ottla.testing.memory_disk import MemoryDisk
from tests.unit.log.partition_logs import CONFIG, append, batch, offsets_in, open_log

SIZE = len(batch())
BATCHES = 400
ENOUGH = 1 << 20


class CountingDisk(MemoryDisk):
    """Counts what is read, by the ends of the files' names."""

    def __init__(self) -> None:
        super().__init__()
        self.looks = Counter[str]()

    def open(self, path: str, *, create: bool = False) -> File:
        file: Any = super().open(path, create=create)
        reads, suffix, read_at = self.looks, path.rpartition(".")[2], file.read_at

        class Counted:
            def __getattr__(self, name: str) -> Any:
                return getattr(file, name)

            def read_at(self, position: int, size: int) -> bytes:
                reads[suffix] += 1
                data: bytes = read_at(position, size)
                return data

        return Counted()  # type: ignore[return-value]


@pytest.fixture
def disk() -> CountingDisk:
    return CountingDisk()


@pytest.fixture
def log(disk: CountingDisk) -> PartitionLog:
    log = open_log(disk, config=CONFIG._replace(index_interval_bytes=10 * SIZE))
    append(log, *(batch() for _ in range(BATCHES)))
    log.segments[-1].offset_index.write()
    disk.looks.clear()
    return log


def test_a_little_comes_with_its_bytes(log: PartitionLog) -> None:
    found = log.read(37, 2 * SIZE, BATCHES)
    assert found.file is not None
    assert found.data == found.file.read_at(found.position, found.size)
    assert offsets_in(found) == [37, 38]


def test_much_is_left_in_its_file(log: PartitionLog) -> None:
    found = log.read(37, ENOUGH, BATCHES)
    assert found.data == b""
    assert len(offsets_in(found)) == BATCHES - 37


def test_going_on_takes_one_read_a_batch_for_many_readers_at_once(log: PartitionLog, disk: CountingDisk) -> None:
    places = [place * 7 for place in range(50)]
    for offset in places:
        log.read(offset, SIZE, BATCHES)
    disk.looks.clear()
    found = {offset + step: log.read(offset + step, SIZE, BATCHES) for step in range(1, 5) for offset in places}
    assert disk.looks == {"log": 4 * len(places)}
    for offset, one in found.items():
        assert offsets_in(one) == [offset]
        assert one.data


def test_a_read_that_ends_in_a_batch_goes_on_with_that_batch(log: PartitionLog, disk: CountingDisk) -> None:
    assert offsets_in(log.read(20, 2 * SIZE + 5, BATCHES)) == [20, 21]
    disk.looks.clear()
    found = log.read(22, SIZE, BATCHES)
    assert disk.looks == {"log": 1}
    assert offsets_in(found) == [22]


def test_what_was_cut_off_and_written_again_is_read_as_it_is_now(log: PartitionLog) -> None:
    log.read(38, SIZE, BATCHES)
    log.read(39, SIZE, BATCHES)
    log.truncate_to(30)
    append(log, batch(b"a longer value than before" * 5), *(batch() for _ in range(20)))
    for offset in range(30, 50):
        found = log.read(offset, SIZE * 4, 51)
        assert offsets_in(found)[0] == offset
        assert found.data == found.file.read_at(found.position, found.size)  # type: ignore[union-attr]


def test_places_to_go_on_from_are_few(log: PartitionLog) -> None:
    for offset in range(0, 300, 2):
        log.read(offset, SIZE, BATCHES)
    assert len(log.segments[-1]._starts) <= 64
