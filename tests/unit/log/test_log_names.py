"""The names of files and directories are Apache Kafka's, to the character."""

import pytest

from ottla.base.ids import TopicPartition
from ottla.log import file_names

UNIQUE = "83dedd488bd544feb2b897e5344d6fba"


def test_a_segments_file_is_its_base_offset_in_twenty_digits() -> None:
    assert file_names.file_name(0, file_names.LOG) == "00000000000000000000.log"
    assert file_names.file_name(4711, file_names.TIME_INDEX) == "00000000000000004711.timeindex"
    assert file_names.file_name(2**63 - 1, file_names.INDEX) == "09223372036854775807.index"


def test_the_offset_is_read_back_from_the_name() -> None:
    assert file_names.offset_of("00000000000000004711.snapshot", file_names.PRODUCER_SNAPSHOT) == 4711


@pytest.mark.parametrize(
    "name",
    [
        "00000000000000000000.log.deleted",
        "00000000000000000000.index",
        "0.log",
        "0000000000000000000a.log",
        "leader-epoch-checkpoint",
        ".log",
        "",
    ],
)
def test_a_name_that_is_not_exactly_a_segments_log_has_no_offset(name: str) -> None:
    assert file_names.offset_of(name, file_names.LOG) is None


@pytest.mark.parametrize(
    ("name", "offset"),
    [
        ("00000000000000000146.log", 146),
        ("00000000000000000146.timeindex.swap", 146),
        ("00000000000000000146.log.cleaned", 146),
        ("00000000000000000146", None),
        ("00000000000000000146-0000000001.checkpoint", None),
        ("partition.metadata", None),
    ],
)
def test_the_leading_offset_ignores_suffixes(name: str, offset: int | None) -> None:
    assert file_names.leading_offset(name) == offset


@pytest.mark.parametrize(
    ("name", "partition", "mark"),
    [
        ("orders-0", TopicPartition("orders", 0), ""),
        ("with-dashes-and.dots-12", TopicPartition("with-dashes-and.dots", 12), ""),
        ("__consumer_offsets-49", TopicPartition("__consumer_offsets", 49), ""),
        (f"orders-3.{UNIQUE}-delete", TopicPartition("orders", 3), file_names.DELETE_DIR),
        (f"orders-3.{UNIQUE}-future", TopicPartition("orders", 3), file_names.FUTURE_DIR),
        (f"orders-3.{UNIQUE}-stray", TopicPartition("orders", 3), file_names.STRAY_DIR),
    ],
)
def test_a_directory_names_its_partition_and_what_happens_to_it(
    name: str, partition: TopicPartition, mark: str
) -> None:
    assert file_names.parse_partition_dir(name) == (partition, mark)


@pytest.mark.parametrize("name", ["orders", "-0", "orders-", "orders-x", "lost+found", f"orders.{UNIQUE}-delete", ""])
def test_other_directories_are_nobodys(name: str) -> None:
    assert file_names.parse_partition_dir(name) is None


def test_marking_a_directory_can_be_undone_by_reading_it() -> None:
    partition = TopicPartition("orders", 7)
    marked = file_names.marked_dir(partition, UNIQUE, file_names.DELETE_DIR)
    assert marked == f"orders-7.{UNIQUE}-delete"
    assert file_names.parse_partition_dir(marked) == (partition, file_names.DELETE_DIR)


def test_a_long_topic_is_cut_so_that_the_marked_directory_fits_a_file_system() -> None:
    longest = TopicPartition("t" * 249, 123)
    marked = file_names.marked_dir(longest, UNIQUE, file_names.DELETE_DIR)
    assert len(marked) == 255
    parsed = file_names.parse_partition_dir(marked)
    assert parsed is not None
    assert parsed[0].partition == 123
