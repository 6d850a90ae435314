"""The small text files: version, count, an entry a line."""

import errno

import pytest

from ottla.base.ids import TopicPartition, Uuid
from ottla.log.checkpoint import (
    format_checkpoint,
    format_leader_epochs,
    format_partition_metadata,
    parse_checkpoint,
    parse_leader_epochs,
    parse_offsets,
    parse_partition_metadata,
    read_offsets,
    read_topic_id,
    write_offsets,
)
from ottla.log.errors import CorruptFile
from ottla.log.files import read_file, replace_file
from ottla.testing.memory_disk import MemoryDisk

PATH = "/data/recovery-point-offset-checkpoint"
OFFSETS = {TopicPartition("orders", 0): 4711, TopicPartition("orders", 1): 0, TopicPartition("returns", 0): 2**62}


@pytest.fixture
def disk() -> MemoryDisk:
    disk = MemoryDisk()
    disk.make_dirs("/data/orders-0")
    return disk


def put(disk: MemoryDisk, path: str, content: bytes) -> None:
    file = disk.open(path, create=True)
    file.write_at(0, content)
    file.close()


def test_offsets_are_written_as_kafka_writes_them(disk: MemoryDisk) -> None:
    write_offsets(disk, PATH, OFFSETS)
    assert read_file(disk, PATH) == b"0\n3\norders 0 4711\norders 1 0\nreturns 0 4611686018427387904\n"


def test_offsets_are_read_back(disk: MemoryDisk) -> None:
    write_offsets(disk, PATH, OFFSETS)
    assert read_offsets(disk, PATH) == OFFSETS


def test_a_file_that_is_not_there_holds_no_offsets(disk: MemoryDisk) -> None:
    assert read_offsets(disk, PATH) == {}


def test_no_entries_are_a_count_of_zero() -> None:
    assert format_checkpoint([]) == b"0\n0\n"
    assert parse_checkpoint(b"0\n0\n", PATH) == []


def test_a_last_line_without_its_end_is_an_entry_too() -> None:
    assert parse_checkpoint(b"0\n1\norders 0 1", PATH) == [["orders", "0", "1"]]


@pytest.mark.parametrize(
    "content",
    [
        b"\n",
        b"0\n",
        b"1\n0\n",
        b"0\nmany\n",
        b"0\n-1\n",
        b"0\n2\norders 0 1\n",
        b"0\n0\norders 0 1\n",
        b"0\n1\norders 0\n",
        b"0\n1\norders zero 1\n",
        b"0\n1\norders 0 1 2\n",
        b"\xff\xfe\x00",
    ],
)
def test_damage_is_a_corrupt_file_that_names_the_path(content: bytes) -> None:
    with pytest.raises(CorruptFile, match=PATH):
        parse_offsets(content, PATH)


def test_an_empty_file_has_no_entries() -> None:
    """Apache Kafka leaves one for a replica that never had an epoch."""
    assert parse_leader_epochs(b"", PATH) == []


def test_leader_epochs_are_pairs_of_epoch_and_start_offset() -> None:
    entries = [(0, 0), (2, 17), (4, 20)]
    assert format_leader_epochs(entries) == b"0\n3\n0 0\n2 17\n4 20\n"
    assert parse_leader_epochs(format_leader_epochs(entries), PATH) == entries


@pytest.mark.parametrize("content", [b"0\n1\n5\n", b"0\n1\nfive 0\n", b"0\n1\n1 2 3\n"])
def test_an_epoch_entry_of_other_than_two_numbers_is_corrupt(content: bytes) -> None:
    with pytest.raises(CorruptFile, match=PATH):
        parse_leader_epochs(content, PATH)


def test_partition_metadata_holds_the_topic_id(disk: MemoryDisk) -> None:
    topic_id = Uuid(bytes(range(16)))
    content = format_partition_metadata(topic_id)
    assert content == b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
    assert parse_partition_metadata(content, PATH) == topic_id
    put(disk, "/data/orders-0/partition.metadata", content)
    assert read_topic_id(disk, "/data/orders-0") == topic_id


def test_a_partition_without_metadata_has_no_topic_id(disk: MemoryDisk) -> None:
    assert read_topic_id(disk, "/data/orders-0") is None


@pytest.mark.parametrize(
    "content",
    [b"", b"version: 1\ntopic_id: AAECAwQFBgcICQoLDA0ODw", b"version: 0", b"version: 0\ntopic_id: short", b"\x00" * 40],
)
def test_other_partition_metadata_is_corrupt(content: bytes) -> None:
    with pytest.raises(CorruptFile, match=PATH):
        parse_partition_metadata(content, PATH)


def test_a_checkpoint_that_cannot_be_written_stays_as_it_was(disk: MemoryDisk) -> None:
    write_offsets(disk, PATH, OFFSETS)
    calls = disk.calls
    write_offsets(disk, PATH, OFFSETS)
    for failing in range(1, disk.calls - calls + 1):
        disk.fail_at(disk.calls + failing, errno.ENOSPC)
        with pytest.raises(OSError, match="injected"):
            write_offsets(disk, PATH, {TopicPartition("orders", 0): 1})
        disk.repair()
        # The last call makes a replacement durable that has already happened.
        assert read_offsets(disk, PATH) in (OFFSETS, {TopicPartition("orders", 0): 1})
    assert disk.open_files == 0


def test_the_empty_file_that_kafka_starts_with_has_no_entries() -> None:
    disk = MemoryDisk()
    disk.make_dirs("/data")
    replace_file(disk, "/data/cleaner-offset-checkpoint", b"")
    assert read_offsets(disk, "/data/cleaner-offset-checkpoint") == {}
