"""The leader-epoch cache: what OffsetForLeaderEpoch answers, and what truncation leaves (KIP-101, KIP-279)."""

from concurrent.futures import ThreadPoolExecutor, wait
from threading import Event

import pytest

from ottla.log.errors import CorruptFile
from ottla.log.files import read_file, replace_file
from ottla.log.leader_epochs import LeaderEpochs
from ottla.testing.memory_disk import MemoryDisk

PATH = "/data/leader-epoch-checkpoint"
LOG_END_OFFSET = 100


@pytest.fixture
def disk() -> MemoryDisk:
    disk = MemoryDisk()
    disk.make_dirs("/data")
    return disk


@pytest.fixture
def epochs(disk: MemoryDisk) -> LeaderEpochs:
    """Epoch 2 from offset 10, epoch 4 from 30, epoch 7 from 60: there was no leader in between that wrote."""
    epochs = LeaderEpochs(disk, "/data")
    for epoch, start in ((2, 10), (4, 30), (7, 60)):
        epochs.assign(epoch, start)
    return epochs


@pytest.mark.parametrize(
    ("epoch", "answer"),
    [
        (-1, (-1, -1)),
        (0, (0, 10)),  # before all we know: nothing of it is here, so it ended where the first one began
        (1, (1, 10)),
        (2, (2, 30)),
        (3, (2, 30)),  # an epoch that wrote nothing here: the one before it, and where that ended
        (4, (4, 60)),
        (6, (4, 60)),
        (7, (7, LOG_END_OFFSET)),
        (8, (-1, -1)),  # after all we know
    ],
)
def test_an_epoch_ends_where_the_next_one_begins(epochs: LeaderEpochs, epoch: int, answer: tuple[int, int]) -> None:
    assert epochs.end_offset(epoch, LOG_END_OFFSET) == answer


def test_an_empty_cache_knows_of_no_epoch(disk: MemoryDisk) -> None:
    epochs = LeaderEpochs(disk, "/data")
    assert epochs.latest == -1
    assert epochs.end_offset(0, LOG_END_OFFSET) == (-1, -1)
    assert epochs.epoch_at(0) == -1


@pytest.mark.parametrize(("offset", "epoch"), [(9, -1), (10, 2), (29, 2), (30, 4), (59, 4), (60, 7), (9999, 7)])
def test_an_offset_belongs_to_the_epoch_that_spans_it(epochs: LeaderEpochs, offset: int, epoch: int) -> None:
    assert epochs.epoch_at(offset) == epoch


def test_an_epoch_keeps_its_first_start_offset(epochs: LeaderEpochs) -> None:
    epochs.assign(7, 80)
    assert epochs.entries == [(2, 10), (4, 30), (7, 60)]


@pytest.mark.parametrize(
    ("epoch", "start", "left"),
    [
        (8, 60, [(2, 10), (4, 30), (8, 60)]),  # the leader of epoch 7 wrote nothing that stayed
        (8, 45, [(2, 10), (4, 30), (8, 45)]),
        (8, 30, [(2, 10), (8, 30)]),
        (5, 70, [(2, 10), (4, 30), (5, 70)]),
        (1, 90, [(1, 90)]),
        (9, 0, [(9, 0)]),
    ],
)
def test_an_epoch_replaces_the_entries_that_contradict_it(
    epochs: LeaderEpochs, epoch: int, start: int, left: list[tuple[int, int]]
) -> None:
    epochs.assign(epoch, start)
    assert epochs.entries == left


@pytest.mark.parametrize(
    ("end_offset", "left"),
    [
        (61, [(2, 10), (4, 30), (7, 60)]),
        (60, [(2, 10), (4, 30)]),
        (31, [(2, 10), (4, 30)]),
        (30, [(2, 10)]),
        (0, []),
    ],
)
def test_truncating_the_log_drops_the_epochs_that_began_there_or_later(
    epochs: LeaderEpochs, end_offset: int, left: list[tuple[int, int]]
) -> None:
    epochs.truncate_from_end(end_offset)
    assert epochs.entries == left


@pytest.mark.parametrize(
    ("start_offset", "left"),
    [
        (5, [(2, 10), (4, 30), (7, 60)]),
        (10, [(2, 10), (4, 30), (7, 60)]),
        (15, [(2, 15), (4, 30), (7, 60)]),
        (30, [(4, 30), (7, 60)]),
        (59, [(4, 59), (7, 60)]),
        (200, [(7, 200)]),
    ],
)
def test_deleting_from_the_start_moves_the_epoch_that_spans_the_new_start(
    epochs: LeaderEpochs, start_offset: int, left: list[tuple[int, int]]
) -> None:
    epochs.truncate_from_start(start_offset)
    assert epochs.entries == left


def test_the_file_tells_what_memory_knows_once_it_is_flushed(disk: MemoryDisk, epochs: LeaderEpochs) -> None:
    assert not disk.exists(PATH)
    epochs.flush()
    assert read_file(disk, PATH) == b"0\n3\n2 10\n4 30\n7 60\n"
    assert LeaderEpochs(disk, "/data").entries == epochs.entries


def test_flushing_again_writes_only_what_has_changed(disk: MemoryDisk, epochs: LeaderEpochs) -> None:
    epochs.flush()
    calls = disk.calls
    epochs.flush()
    epochs.assign(7, 90)
    epochs.truncate_from_end(90)
    epochs.truncate_from_start(0)
    epochs.flush()
    assert disk.calls == calls
    epochs.clear()
    epochs.flush()
    assert read_file(disk, PATH) == b"0\n0\n"


class SlowDisk(MemoryDisk):
    """The first rename says when it begins, and waits until it may go on."""

    def __init__(self) -> None:
        super().__init__()
        self.is_renaming = Event()
        self.may_rename = Event()

    def rename(self, source: str, target: str) -> None:
        if not self.is_renaming.is_set():
            self.is_renaming.set()
            assert self.may_rename.wait(30)
        super().rename(source, target)


def test_the_owner_of_a_log_may_flush_while_a_disk_thread_does() -> None:
    disk = SlowDisk()
    disk.make_dirs("/data")
    epochs = LeaderEpochs(disk, "/data")
    epochs.assign(2, 10)
    with ThreadPoolExecutor(2) as threads:
        of_disk_thread = threads.submit(epochs.flush)
        assert disk.is_renaming.wait(30)
        epochs.assign(4, 30)
        of_owner = threads.submit(epochs.flush)
        wait([of_owner], timeout=0.3)  # Without turns it is over by now, and has taken the temporary file away.
        disk.may_rename.set()
        of_disk_thread.result(30)
        of_owner.result(30)
    assert LeaderEpochs(disk, "/data").entries == epochs.entries == [(2, 10), (4, 30)]
    assert epochs.are_written_before(100)


def test_a_file_whose_entries_do_not_rise_is_put_in_order(disk: MemoryDisk) -> None:
    replace_file(disk, PATH, b"0\n3\n1 0\n5 20\n3 10\n")
    assert LeaderEpochs(disk, "/data").entries == [(1, 0), (3, 10)]


def test_a_file_that_is_not_a_checkpoint_is_corrupt(disk: MemoryDisk) -> None:
    replace_file(disk, PATH, b"epochs\n")
    with pytest.raises(CorruptFile, match=PATH):
        LeaderEpochs(disk, "/data")


def test_after_its_directory_was_renamed_it_is_written_there(disk: MemoryDisk, epochs: LeaderEpochs) -> None:
    disk.make_dirs("/elsewhere")
    epochs.moved("/elsewhere")
    epochs.flush()
    assert disk.exists("/elsewhere/leader-epoch-checkpoint")
