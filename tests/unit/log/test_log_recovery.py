"""Opening a directory after any kind of stop."""

from collections.abc import Callable
from random import Random

import pytest

from ottla.log.files import read_file, replace_file
from ottla.log.partition_log import PartitionLog
from ottla.log.segment import Segment
from ottla.testing.clock import FixedClock
from ottla.testing.memory_disk import Crashed, MemoryDisk
from tests.unit.log.partition_logs import (
    CONFIG,
    DIRECTORY,
    NOW_MS,
    PARTITION,
    TOPIC_ID,
    append,
    at_offset,
    base_offsets,
    batch,
    contiguous,
    files_in,
    headers_in,
    in_transaction,
    marker,
    offsets_in,
    open_directory,
    open_log,
    produced,
    rolling,
)

ENOUGH = 1 << 20
ROLLING = rolling(batches=4)
SIZE = len(batch())


def path_of(base_offset: int, suffix: str) -> str:
    return f"{DIRECTORY}/{base_offset:020d}{suffix}"


def contents(disk: MemoryDisk) -> dict[str, bytes]:
    return {name: read_file(disk, f"{DIRECTORY}/{name}") for name in files_in(disk)}


def change(disk: MemoryDisk, path: str, edit: Callable[[bytearray], object]) -> None:
    content = bytearray(read_file(disk, path))
    edit(content)
    replace_file(disk, path, bytes(content))


@pytest.fixture
def disk() -> MemoryDisk:
    return MemoryDisk()


@pytest.fixture
def log(disk: MemoryDisk) -> PartitionLog:
    """Ten batches of one record in segments 0, 4 and 8: producers, an aborted transaction, three epochs."""
    log = open_log(disk, ROLLING)
    append(log, produced(5, 0), in_transaction(6, 0), marker(6, committed=False), leader_epoch=1)
    append(log, *(batch(timestamp=NOW_MS + number) for number in range(3, 9)), leader_epoch=2)
    append(log, produced(5, 1), leader_epoch=4)
    # Records of producers are a little larger than plain ones, which moves the edges.
    assert len(log.segments) == 3
    return log


def state(log: PartitionLog) -> tuple[object, ...]:
    """All that a log tells about itself."""
    return (
        base_offsets(log),
        log.log_start_offset,
        log.log_end_offset,
        list(headers_in(log)),
        log.epochs.entries,
        sorted(log.producers.records()),
        log.aborted_transactions(0, 100),
        [[segment.offset_index.entry(slot) for slot in range(len(segment.offset_index))] for segment in log.segments],
        [segment.max_timestamp for segment in log.segments],
    )


class TestWhatIsKept:
    def test_nothing_is_lost_when_the_process_is_killed(self, disk: MemoryDisk, log: PartitionLog) -> None:
        assert state(open_log(disk.survivor_of_kill(), ROLLING)) == state(log)

    def test_nothing_changes_by_a_clean_stop(self, disk: MemoryDisk, log: PartitionLog) -> None:
        before = state(log)
        log.close()
        files = contents(disk)
        reopened = open_log(disk, ROLLING, clean=True)
        assert state(reopened) == before
        reopened.close()
        assert contents(disk) == files

    def test_a_clean_log_is_not_scanned(self, disk: MemoryDisk, log: PartitionLog) -> None:
        log.close()
        scanned: list[Segment] = []
        open_log(disk, ROLLING, clean=True, progress=scanned.append)
        assert scanned == []

    @pytest.mark.parametrize(("recovery_point", "first_scanned"), [(0, 0), (1, 0), (6, 1), (9, 2), (10, 2), (1000, 2)])
    def test_a_scan_begins_with_the_segment_of_the_recovery_point(
        self, disk: MemoryDisk, log: PartitionLog, recovery_point: int, first_scanned: int
    ) -> None:
        bases = base_offsets(log)
        log.flush()
        scanned: list[Segment] = []
        open_log(disk.survivor_of_kill(), ROLLING, recovery_point=recovery_point, progress=scanned.append)
        assert [segment.base_offset for segment in scanned] == bases[first_scanned:]

    @pytest.mark.parametrize("seed", range(10))
    def test_the_indexes_of_a_segment_before_the_recovery_point_survive_a_power_cut(self, seed: int) -> None:
        """They are not looked at again, so they must be durable before the recovery point passes them."""
        disk = MemoryDisk(Random(seed))
        log = open_log(disk)
        append(log, in_transaction(6, 0), marker(6, committed=False), batch(), batch())
        log.flush()
        log.roll()
        append(log, batch())
        before = state(log)
        disk.sync_dir(DIRECTORY)
        recovered = open_log(disk.survivor(Random(seed)), recovery_point=log.recovery_point)
        assert [part[:1] for part in state(recovered)[-2:]] == [part[:1] for part in before[-2:]]
        assert recovered.aborted_transactions(0, 4) == log.aborted_transactions(0, 4)

    def test_the_recovery_point_does_not_move_by_recovering(self, disk: MemoryDisk, log: PartitionLog) -> None:
        assert open_log(disk.survivor_of_kill(), ROLLING, recovery_point=5).recovery_point == 5
        assert open_log(disk.survivor_of_kill(), ROLLING, recovery_point=50).recovery_point == 10
        log.close()
        assert open_log(disk, ROLLING, clean=True).recovery_point == 10

    def test_an_empty_directory_is_an_empty_log(self, disk: MemoryDisk) -> None:
        log = open_log(disk, log_start_offset=70)
        assert (log.log_start_offset, log.log_end_offset) == (70, 70)
        assert files_in(disk) == [f"{70:020d}.{kind}" for kind in ("index", "log", "timeindex")]


class TestDamage:
    """The first thing that is wrong ends the log."""

    @pytest.mark.parametrize(("lost", "left"), [(1, 2), (30, 2), (SIZE - 1, 2), (SIZE, 2), (SIZE + 1, 1)])
    def test_a_torn_end_is_cut_to_the_last_whole_batch(self, disk: MemoryDisk, lost: int, left: int) -> None:
        append(open_log(disk), batch(), batch(), batch())
        survivor = disk.survivor_of_kill()
        change(survivor, path_of(0, ".log"), lambda content: content.__delitem__(slice(-lost, None)))
        recovered = open_log(survivor)
        assert recovered.log_end_offset == left
        assert contiguous(headers_in(recovered))
        assert survivor.size(path_of(0, ".log")) == recovered.active.size == left * SIZE

    def test_zeros_at_the_end_are_cut_away(self, disk: MemoryDisk, log: PartitionLog) -> None:
        survivor = disk.survivor_of_kill()
        change(survivor, path_of(log.active.base_offset, ".log"), lambda content: content.extend(bytes(5000)))
        assert state(open_log(survivor, ROLLING)) == state(log)

    def test_a_flipped_bit_drops_its_batch_and_every_later_segment(self, disk: MemoryDisk, log: PartitionLog) -> None:
        survivor = disk.survivor_of_kill()
        found = log.segments[0].find(1)
        assert found is not None
        change(survivor, path_of(0, ".log"), lambda content: content.__setitem__(found[0] + 70, 0xAA))
        recovered = open_log(survivor, ROLLING)
        assert recovered.log_end_offset == 1
        assert files_in(survivor, ".log") == [f"{0:020d}.log"]
        assert recovered.epochs.entries == [(1, 0)]
        assert recovered.producers.get(6) is None
        assert append(recovered, batch()) == 1

    def test_segments_that_are_cut_off_are_set_aside_and_named(self, disk: MemoryDisk, log: PartitionLog) -> None:
        bases = base_offsets(log)
        survivor = disk.survivor_of_kill()
        kept = [read_file(survivor, path_of(base, ".log")) for base in bases[1:]]
        change(survivor, path_of(0, ".log"), lambda content: content.__setitem__(70, 0xAA))
        recovered = open_log(survivor, ROLLING)
        assert recovered.log_end_offset == 0
        aside = [f"{base:020d}.log.cut" for base in bases[1:]]
        assert files_in(survivor, ".cut") == aside
        assert [read_file(survivor, f"{DIRECTORY}/{name}") for name in aside] == kept
        [cut, named] = recovered.warnings
        assert "00000000000000000000.log" in cut
        assert all(name in named for name in aside)

    def test_what_was_set_aside_is_left_alone_and_never_overwritten(self, disk: MemoryDisk) -> None:
        append(open_log(disk, ROLLING), *(batch(b"first") for _ in range(10)))
        disk = disk.survivor_of_kill()
        change(disk, path_of(0, ".log"), lambda content: content.__setitem__(70, 0xAA))
        append(open_log(disk, ROLLING), *(batch(b"again") for _ in range(10)))
        disk = disk.survivor_of_kill()
        change(disk, path_of(0, ".log"), lambda content: content.__setitem__(70, 0xAA))
        recovered = open_log(disk, ROLLING)
        for base in (4, 8):
            assert b"first" in read_file(disk, path_of(base, ".log.cut"))
            assert b"again" in read_file(disk, path_of(base, ".log.cut1"))
        recovered.close()
        reopened = open_log(disk, ROLLING, clean=True)
        assert (reopened.log_end_offset, reopened.warnings) == (0, [])
        assert len(files_in(disk, ".cut") + files_in(disk, ".cut1")) == 4

    def test_offsets_that_go_back_are_damage(self, disk: MemoryDisk) -> None:
        log = open_log(disk)
        append(log, batch(), batch(), batch())
        survivor = disk.survivor_of_kill()
        change(
            survivor, path_of(0, ".log"), lambda content: content.__setitem__(slice(2 * SIZE, 2 * SIZE + 8), bytes(8))
        )
        assert open_log(survivor).log_end_offset == 2

    def test_a_segment_whose_end_is_missing_ends_the_log(self, disk: MemoryDisk, log: PartitionLog) -> None:
        """Cut exactly between two batches: only the next segment's name tells."""
        survivor = disk.survivor_of_kill()
        middle = log.segments[1]
        lost = middle.next_offset() - 1
        cut = middle.position_of_end(lost)
        change(survivor, path_of(middle.base_offset, ".log"), lambda content: content.__delitem__(slice(cut, None)))
        recovered = open_log(survivor, ROLLING)
        assert recovered.log_end_offset == lost
        assert len(recovered.segments) == 2

    def test_gaps_are_nothing_special_in_a_compacted_topic(self, disk: MemoryDisk) -> None:
        compacted = CONFIG._replace(cleanup_policy=("compact",))
        log = open_log(disk, compacted)
        log.append_as_follower(at_offset(3, batch()))
        log.roll(20)
        log.append_as_follower(at_offset(25, batch()) + at_offset(40, batch()))
        recovered = open_log(disk.survivor_of_kill(), compacted)
        assert recovered.log_end_offset == 41
        assert offsets_in(recovered.read(4, ENOUGH, 41)) == [25, 40]

    def test_a_log_that_ends_before_its_start_offset_begins_anew_there(
        self, disk: MemoryDisk, log: PartitionLog
    ) -> None:
        recovered = open_log(disk.survivor_of_kill(), ROLLING, log_start_offset=100)
        assert (recovered.log_start_offset, recovered.log_end_offset) == (100, 100)
        assert base_offsets(recovered) == [100]
        assert (recovered.epochs.entries, len(recovered.producers)) == ([], 0)


class TestIndexes:
    """After a clean stop too: an index can be lost without its log."""

    @pytest.mark.parametrize(
        ("suffix", "clean"),
        [
            (".index", True),
            (".index", False),
            (".timeindex", True),
            (".timeindex", False),
            # After a clean stop a missing one means that nothing was aborted: most segments have none.
            (".txnindex", False),
        ],
    )
    def test_a_missing_index_is_rebuilt(self, disk: MemoryDisk, log: PartitionLog, suffix: str, clean: bool) -> None:
        before = state(log)
        log.close()
        disk.remove(path_of(0, suffix))
        recovered = open_log(disk, ROLLING, clean=clean)
        assert state(recovered) == before

    @pytest.mark.parametrize("suffix", [".index", ".timeindex", ".txnindex"])
    def test_an_index_that_ends_within_an_entry_is_rebuilt(
        self, disk: MemoryDisk, log: PartitionLog, suffix: str
    ) -> None:
        before = state(log)
        log.close()
        change(disk, path_of(0, suffix), lambda content: content.append(0))
        assert state(open_log(disk, ROLLING, clean=True)) == before

    @pytest.mark.parametrize("suffix", [".index", ".timeindex"])
    @pytest.mark.parametrize("clean", [True, False])
    def test_a_hole_that_compaction_has_left_is_no_loss_when_an_index_is_rebuilt(
        self, disk: MemoryDisk, suffix: str, clean: bool
    ) -> None:
        """The topic is not compacted any more, or never was by what recovery is told."""
        log = open_log(disk)
        log.append_as_follower(at_offset(0, batch()))
        log.roll(20)
        log.append_as_follower(at_offset(20, batch()))
        log.roll()
        log.append_as_follower(at_offset(21, batch()))
        log.advance_high_watermark(log.log_end_offset)
        before = state(log)
        log.close()
        disk.remove(path_of(0, suffix))
        scanned: list[Segment] = []
        recovered = open_log(disk, clean=clean, recovery_point=22, progress=scanned.append)
        assert state(recovered) == before
        assert [segment.base_offset for segment in scanned] == ([] if clean else [21])
        [warning] = recovered.warnings
        assert f"{0:020d}{suffix} was missing or damaged" in warning

    def test_a_damaged_index_of_transactions_is_rebuilt_from_the_snapshot_before_its_segment(
        self, disk: MemoryDisk
    ) -> None:
        """The transaction begins in the segment before."""
        log = open_log(disk, rolling(batches=2))
        append(log, in_transaction(6, 0), batch(), batch(), marker(6, committed=False), batch(), batch(), batch())
        with_marker = next(segment for segment in reversed(log.segments) if segment.base_offset <= 3)
        assert with_marker.base_offset > 0
        before = state(log)
        log.close()
        files = contents(disk)
        change(disk, path_of(with_marker.base_offset, ".txnindex"), lambda content: content.append(0))
        recovered = open_log(disk, rolling(batches=2), clean=True)
        assert state(recovered) == before
        recovered.close()
        assert contents(disk) == files

    def test_a_crash_while_an_index_is_rebuilt_is_followed_by_another_try(
        self, disk: MemoryDisk, log: PartitionLog
    ) -> None:
        """The start that is cut short has removed the mark of the clean stop: the recovery point is all there is."""
        before = state(log)
        log.close()
        disk.remove(path_of(0, ".timeindex"))
        disk.sync_dir(DIRECTORY)
        for call in range(1, 100):
            trial = disk.survivor_of_kill().survivor(Random(call))
            trial.crash_at(call)
            try:
                open_log(trial, ROLLING, clean=True)
            except Crashed:
                for seed in range(5):
                    survivor = trial.survivor(Random(seed))
                    recovered = open_log(survivor, ROLLING, recovery_point=log.recovery_point)
                    assert state(recovered) == before
                    assert files_in(survivor, ".cleaned") == []
            else:
                assert call > 5
                return

    def test_an_index_of_zeros_as_kafka_leaves_it_when_killed_is_rebuilt(
        self, disk: MemoryDisk, log: PartitionLog
    ) -> None:
        survivor = disk.survivor_of_kill()
        base = log.active.base_offset
        replace_file(survivor, path_of(base, ".index"), bytes(4096))
        replace_file(survivor, path_of(base, ".timeindex"), bytes(12 * 300))
        recovered = open_log(survivor, ROLLING)
        assert state(recovered) == state(log)
        recovered.close()
        assert survivor.size(path_of(base, ".index")) == 8 * len(log.active.offset_index)

    def test_an_index_without_its_log_is_removed(self, disk: MemoryDisk, log: PartitionLog) -> None:
        log.close()
        replace_file(disk, path_of(77, ".index"), bytes(8))
        replace_file(disk, path_of(77, ".txnindex"), bytes(34))
        open_log(disk, ROLLING, clean=True)
        assert not files_in(disk, "77.index") + files_in(disk, "77.txnindex")

    def test_a_damaged_snapshot_is_made_again_from_the_log(self, disk: MemoryDisk, log: PartitionLog) -> None:
        before = state(log)
        log.close()
        for name in files_in(disk, ".snapshot"):
            replace_file(disk, f"{DIRECTORY}/{name}", b"damaged")
        assert state(open_log(disk, ROLLING, clean=True)) == before

    def test_lost_epochs_are_read_from_the_batches(self, disk: MemoryDisk, log: PartitionLog) -> None:
        survivor = disk.survivor_of_kill()
        assert not survivor.exists(f"{DIRECTORY}/leader-epoch-checkpoint"), "nothing was flushed yet"
        assert open_log(survivor, ROLLING).epochs.entries == log.epochs.entries

    def test_epochs_beyond_the_end_are_dropped(self, disk: MemoryDisk, log: PartitionLog) -> None:
        log.begin_leader_epoch(9)
        log.flush()
        recovered = open_log(disk.survivor_of_kill(), ROLLING)
        assert recovered.epochs.latest == 4

    def test_producers_that_were_silent_too_long_are_not_loaded(self, disk: MemoryDisk, log: PartitionLog) -> None:
        log.close()
        later = FixedClock(NOW_MS + 86_400_000)
        assert len(open_log(disk, ROLLING, later, clean=True).producers) == 0


class TestLeftovers:
    """Files on their way in or out, as Apache Kafka's LogLoader treats them."""

    def copy(self, disk: MemoryDisk, base_offset: int, suffix: str, to: int | None = None) -> None:
        for kind in (".log", ".index", ".timeindex"):
            target = path_of(base_offset if to is None else to, kind + suffix)
            replace_file(disk, target, read_file(disk, path_of(base_offset, kind)))

    @pytest.mark.parametrize("suffix", [".deleted", ".cleaned"])
    def test_what_was_deleted_or_never_finished_is_removed(
        self, disk: MemoryDisk, log: PartitionLog, suffix: str
    ) -> None:
        before = state(log)
        log.close()
        self.copy(disk, 0, suffix)
        assert state(open_log(disk, ROLLING, clean=True)) == before
        assert files_in(disk, suffix) == []

    def test_snapshots_of_the_metadata_log_are_left_to_their_owner(self, disk: MemoryDisk, log: PartitionLog) -> None:
        log.close()
        name = "00000000000000000141-0000000001.checkpoint.deleted"
        replace_file(disk, f"{DIRECTORY}/{name}", b"")
        open_log(disk, ROLLING, clean=True)
        assert files_in(disk, ".deleted") == [name]

    def test_a_swap_that_had_begun_is_carried_through(self, disk: MemoryDisk) -> None:
        """Two segments were compacted into one at the first's base; the old ones had not been removed yet."""
        compacted = ROLLING._replace(cleanup_policy=("compact",))
        log = open_log(disk, compacted)
        append(log, *(batch() for _ in range(10)))
        log.close()
        replace_file(disk, path_of(0, ".txnindex"), bytes(34))
        cleaned = bytes(at_offset(2, batch(b"kept"))) + bytes(at_offset(7, batch(b"kept")))
        replace_file(disk, path_of(0, ".log.swap"), cleaned)
        replace_file(disk, path_of(0, ".index.swap"), b"")
        replace_file(disk, path_of(0, ".timeindex.swap"), b"")
        swapped = open_log(disk, compacted, clean=True)
        assert base_offsets(swapped) == [0, 8]
        assert [header.base_offset for header in headers_in(swapped)] == [2, 7, 8, 9]
        assert files_in(disk, ".swap") == []
        assert not disk.exists(path_of(4, ".log"))
        assert not disk.exists(path_of(0, ".txnindex")), "it told of what has been cleaned away"

    def test_a_swap_half_renamed_is_finished(self, disk: MemoryDisk, log: PartitionLog) -> None:
        before = state(log)
        log.close()
        disk.rename(path_of(0, ".index"), path_of(0, ".index.swap"))
        disk.rename(path_of(0, ".txnindex"), path_of(0, ".txnindex.swap"))
        assert state(open_log(disk, ROLLING, clean=True)) == before

    def test_a_swap_beside_an_unfinished_copy_is_dropped(self, disk: MemoryDisk, log: PartitionLog) -> None:
        """KAFKA-6264: a segment was being split; what comes at or after the unfinished part is not to be trusted."""
        before = state(log)
        log.close()
        middle, last = base_offsets(log)[1:]
        self.copy(disk, middle, ".cleaned")
        self.copy(disk, 0, ".swap", to=middle)
        self.copy(disk, 0, ".swap", to=last)
        assert state(open_log(disk, ROLLING, clean=True)) == before
        assert files_in(disk, ".swap") + files_in(disk, ".cleaned") == []


def test_epochs_of_deleted_records_that_a_crash_has_brought_back_are_found_in_the_batches() -> None:
    """The file of epochs is written with every flush, where the log starts only now and then."""
    disk = MemoryDisk()
    directory = open_directory(disk, rolling(batches=2))
    log = directory.create(PARTITION, TOPIC_ID)
    for epoch in (0, 1, 3):
        append(log, *(batch(b"value") for _ in range(3)), leader_epoch=epoch)
    log.flush()
    directory.checkpoint()
    log.advance_high_watermark(9)
    log.advance_log_start_offset(7)
    log.flush()
    assert log.epochs.entries == [(3, 7)]
    again = open_directory(disk.survivor(Random(1)), rolling(batches=2)).logs[PARTITION]
    assert again.log_start_offset == 0
    assert again.epochs.entries == [(0, 0), (1, 3), (3, 6)]
