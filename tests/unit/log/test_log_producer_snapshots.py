"""Which snapshots a partition has, takes, uses and drops."""

import pytest

from ottla.log.files import replace_file
from ottla.log.producer_snapshots import ProducerSnapshots
from ottla.log.producer_state import ProducerState
from ottla.testing.memory_disk import MemoryDisk
from tests.unit.log.partition_logs import header_of, in_transaction, produced

DIRECTORY = "/data/orders-0"
NEVER_MS = -1
LOG_START_OFFSET = 0


@pytest.fixture
def disk() -> MemoryDisk:
    disk = MemoryDisk()
    disk.make_dirs(DIRECTORY)
    return disk


def state_of(*producer_ids: int) -> ProducerState:
    state = ProducerState()
    for producer_id in producer_ids:
        state.note(header_of(produced(producer_id, 0)))
    return state


def known(state: ProducerState) -> list[int]:
    return sorted(producer.producer_id for producer in state)


@pytest.fixture
def snapshots(disk: MemoryDisk) -> ProducerSnapshots:
    """One producer more at each of the offsets 10, 20 and 30."""
    snapshots = ProducerSnapshots(disk, DIRECTORY)
    for count, offset in enumerate((10, 20, 30), 1):
        snapshots.take(offset, state_of(*range(count)), LOG_START_OFFSET)
    return snapshots


def damage(disk: MemoryDisk, snapshots: ProducerSnapshots, offset: int) -> None:
    replace_file(disk, snapshots.path(offset), b"not a snapshot")


def test_they_are_found_again_by_their_names(disk: MemoryDisk, snapshots: ProducerSnapshots) -> None:
    assert disk.list_dir(DIRECTORY) == [f"{offset:020d}.snapshot" for offset in (10, 20, 30)]
    assert ProducerSnapshots(disk, DIRECTORY).offsets == [10, 20, 30]


def test_none_is_taken_at_the_start_of_the_log_or_where_there_is_one(
    disk: MemoryDisk, snapshots: ProducerSnapshots
) -> None:
    before = disk.calls
    snapshots.take(30, state_of(1), LOG_START_OFFSET)
    snapshots.take(25, state_of(1), LOG_START_OFFSET)
    snapshots.take(40, state_of(1), log_start_offset=40)
    assert snapshots.offsets == [10, 20, 30]
    assert disk.calls == before


@pytest.mark.parametrize(("up_to", "loaded"), [(100, 30), (30, 30), (29, 20), (10, 10)])
def test_the_newest_within_the_log_is_loaded_and_newer_ones_go(
    snapshots: ProducerSnapshots, up_to: int, loaded: int
) -> None:
    state = ProducerState()
    assert snapshots.load(state, LOG_START_OFFSET, up_to, NEVER_MS) == loaded
    assert len(state) == loaded // 10
    assert snapshots.latest == loaded


def test_snapshots_of_what_has_been_deleted_go(disk: MemoryDisk, snapshots: ProducerSnapshots) -> None:
    snapshots.load(ProducerState(), log_start_offset=20, up_to=100, silent_since_ms=NEVER_MS)
    assert snapshots.offsets == [30]
    assert disk.list_dir(DIRECTORY) == ["00000000000000000030.snapshot"]


def test_with_none_in_the_log_the_state_is_empty_as_of_its_start(snapshots: ProducerSnapshots) -> None:
    state = state_of(1, 2)
    assert snapshots.load(state, log_start_offset=50, up_to=100, silent_since_ms=NEVER_MS) == 50
    assert known(state) == []


def test_a_damaged_snapshot_is_thrown_away_for_an_older_one(disk: MemoryDisk, snapshots: ProducerSnapshots) -> None:
    damage(disk, snapshots, 30)
    damage(disk, snapshots, 20)
    state = ProducerState()
    assert snapshots.load(state, LOG_START_OFFSET, 100, NEVER_MS) == 10
    assert known(state) == [0]
    assert snapshots.offsets == [10]
    assert not disk.exists(snapshots.path(30))


def test_producers_that_have_been_silent_too_long_are_not_loaded(disk: MemoryDisk) -> None:
    state = ProducerState()
    state.note(header_of(produced(1, 0, timestamp=1000)))
    state.note(header_of(produced(2, 0, timestamp=2000)))
    state.note(header_of(in_transaction(3, 0), max_timestamp=1000))
    snapshots = ProducerSnapshots(disk, DIRECTORY)
    snapshots.take(10, state, LOG_START_OFFSET)
    loaded = ProducerState()
    snapshots.load(loaded, LOG_START_OFFSET, 10, silent_since_ms=1000)
    assert known(loaded) == [2, 3], "an open transaction keeps its producer"


def test_only_those_of_segments_and_the_newest_are_kept(snapshots: ProducerSnapshots) -> None:
    snapshots.drop_strays([0, 10])
    assert snapshots.offsets == [10, 30]


def test_a_retired_snapshot_waits_as_a_deleted_file(disk: MemoryDisk, snapshots: ProducerSnapshots) -> None:
    retired = snapshots.retire(20)
    assert retired == f"{DIRECTORY}/00000000000000000020.snapshot.deleted"
    assert disk.exists(retired)
    assert snapshots.offsets == [10, 30]


def test_removing_or_retiring_what_is_not_there_does_nothing(snapshots: ProducerSnapshots) -> None:
    snapshots.remove(15)
    assert snapshots.retire(15) is None
    assert snapshots.offsets == [10, 20, 30]


def test_a_snapshot_that_someone_else_removed_is_no_error(disk: MemoryDisk, snapshots: ProducerSnapshots) -> None:
    disk.remove(snapshots.path(30))
    snapshots.flush()
    snapshots.remove(30)
    assert snapshots.latest == 20
