"""What a leader knows of producers after a clean stop, whose snapshot has the last batch of each alone."""

import pytest

from ottla.log.partition_log import PartitionLog
from ottla.testing.memory_disk import MemoryDisk
from ottla.wire.errors import ErrorCode
from tests.unit.log.partition_logs import PARTITION, TOPIC_ID, open_directory, produced

WRITTEN = range(8)


@pytest.fixture
def log() -> PartitionLog:
    """Two producers took turns, and the log was stopped cleanly and opened again."""
    disk = MemoryDisk()
    disk.make_dirs("/data")
    directory = open_directory(disk)
    made = directory.create(PARTITION, TOPIC_ID)
    for sequence in WRITTEN:
        for producer_id in (7, 8):
            assert not made.append_as_leader(produced(producer_id, sequence), 0).error
    directory.close()
    return open_directory(disk).logs[PARTITION]


def test_the_last_five_batches_are_known_again_and_not_written_twice(log: PartitionLog) -> None:
    end_offset = log.log_end_offset
    for sequence in WRITTEN[-5:]:
        again = log.append_as_leader(produced(7, sequence), 0)
        assert (again.error, again.repeated, again.base_offset) == (ErrorCode.NONE, True, 2 * sequence)
    assert log.log_end_offset == end_offset
    assert not log.append_as_leader(produced(7, len(WRITTEN)), 0).error


def test_what_is_older_or_was_never_written_is_out_of_order(log: PartitionLog) -> None:
    for sequence in (0, len(WRITTEN) + 1):
        refused = log.append_as_leader(produced(8, sequence), 0)
        assert refused.error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_new_epoch_begins_with_nothing_to_recall(log: PartitionLog) -> None:
    assert not log.append_as_leader(produced(7, 0, epoch=1), 0).error
    assert log.append_as_leader(produced(7, 6, epoch=1), 0).error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.append_as_leader(produced(7, 0, epoch=1), 0).repeated
