"""One log directory: its lock, its marker, its checkpoints, its partitions."""

import json
from random import Random
from typing import Any

import pytest

from ottla.base.ids import TopicPartition
from ottla.log.checkpoint import read_offsets
from ottla.log.directory import LogDirectory
from ottla.log.errors import DirectoryInUse
from ottla.log.files import read_file, replace_file
from ottla.testing.clock import FixedClock
from ottla.testing.memory_disk import MemoryDisk
from tests.unit.log.partition_logs import (
    CONFIG,
    NOW_MS,
    PARTITION,
    TOPIC_ID,
    append,
    batch,
    files_in,
    open_directory,
    produced,
    rolling,
)

OTHER = TopicPartition("returns", 3)
UNIQUE = "0123456789abcdef" * 2


@pytest.fixture
def disk() -> MemoryDisk:
    return MemoryDisk()


class TestStopping:
    def test_a_clean_stop_leaves_its_marker_and_the_next_start_takes_it(self, disk: MemoryDisk) -> None:
        directory = open_directory(disk)
        assert not directory.was_clean
        directory.close(broker_epoch=42)
        assert json.loads(read_file(disk, "/data/.kafka_cleanshutdown")) == {"version": 0, "brokerEpoch": 42}
        again = open_directory(disk)
        assert (again.was_clean, again.broker_epoch) == (True, 42)
        assert not disk.exists("/data/.kafka_cleanshutdown")

    def test_a_kill_leaves_none(self, disk: MemoryDisk) -> None:
        open_directory(disk).close()
        open_directory(disk)
        assert not open_directory(disk.survivor_of_kill()).was_clean

    def test_a_directory_with_a_log_that_is_distrusted_is_recovered_at_the_next_start(self, disk: MemoryDisk) -> None:
        directory = open_directory(disk)
        log = directory.create(PARTITION, TOPIC_ID)
        directory.create(OTHER, TOPIC_ID)
        append(log, batch(count=3))
        directory.flush()
        append(log, batch(count=4))
        log.recovery_point = 99  # what is not to be relied on
        directory.distrust(PARTITION)
        directory.close()
        recovery_points = read_offsets(disk, "/data/recovery-point-offset-checkpoint")
        assert recovery_points[PARTITION] == 3, "as it was when it could be relied on"
        again = open_directory(disk)
        assert not again.was_clean
        assert again.logs[PARTITION].log_end_offset == 7

    def test_an_empty_marker_of_an_older_kafka_counts(self, disk: MemoryDisk) -> None:
        open_directory(disk).close()
        replace_file(disk, "/data/.kafka_cleanshutdown", b"")
        directory = open_directory(disk)
        assert (directory.was_clean, directory.broker_epoch) == (True, -1)

    def test_the_lock_keeps_others_out_until_it_is_closed(self, disk: MemoryDisk) -> None:
        directory = open_directory(disk)
        with pytest.raises(DirectoryInUse, match="/data"):
            open_directory(disk)
        directory.close()
        open_directory(disk).abandon()
        open_directory(disk).close()

    def test_a_directory_that_cannot_be_read_is_not_kept_locked(self, disk: MemoryDisk) -> None:
        disk.make_dirs("/data/replication-offset-checkpoint")
        with pytest.raises(OSError, match="no such file"):
            open_directory(disk)
        assert disk.locks == set()

    def test_every_file_is_closed(self, disk: MemoryDisk) -> None:
        directory = open_directory(disk, rolling(batches=1))
        append(directory.create(PARTITION, TOPIC_ID), batch(), batch(), batch())
        directory.close()
        assert disk.open_files == 0


class TestPartitions:
    def test_a_partition_is_there_after_a_restart_with_its_topic_id(self, disk: MemoryDisk) -> None:
        directory = open_directory(disk)
        append(directory.create(PARTITION, TOPIC_ID), batch(), batch())
        directory.create(OTHER, TOPIC_ID)
        directory.close()
        again = open_directory(disk)
        assert sorted(again.logs) == [PARTITION, OTHER]
        assert again.topic_ids == {PARTITION: TOPIC_ID, OTHER: TOPIC_ID}
        assert again.logs[PARTITION].log_end_offset == 2

    def test_other_files_and_directories_are_left_alone(self, disk: MemoryDisk) -> None:
        disk.make_dirs("/data/lost+found")
        disk.make_dirs("/data/__cluster_metadata-0")
        disk.make_dirs(f"/data/orders-1.{UNIQUE}-stray")
        disk.make_dirs(f"/data/orders-2.{UNIQUE}-future")
        replace_file(disk, "/data/bootstrap-1", b"a file with a partition's name")
        directory = open_directory(disk)
        assert directory.logs == {}
        assert disk.list_dir("/data/__cluster_metadata-0") == []

    def test_progress_is_told_of_each(self, disk: MemoryDisk) -> None:
        directory = open_directory(disk)
        directory.create(PARTITION, TOPIC_ID)
        directory.create(OTHER, TOPIC_ID)
        directory.close()
        heard: list[tuple[TopicPartition, int, int]] = []
        again = LogDirectory(disk, "/data", FixedClock(NOW_MS), config_of=lambda topic: CONFIG)
        again.open_all(lambda *progress: heard.append(progress))
        assert heard == [(PARTITION, 1, 2), (OTHER, 2, 2)]

    def test_each_topic_has_its_settings(self, disk: MemoryDisk) -> None:
        configs = {"orders": rolling(batches=1), "returns": CONFIG}
        directory = LogDirectory(disk, "/data", FixedClock(NOW_MS), config_of=configs.__getitem__)
        for partition, segments in ((PARTITION, 3), (OTHER, 1)):
            log = directory.create(partition, TOPIC_ID)
            append(log, batch(), batch(), batch())
            assert len(log.segments) == segments

    def test_a_deleted_partition_is_renamed_at_once_and_removed_later(self, disk: MemoryDisk) -> None:
        directory = LogDirectory(
            disk, "/data", FixedClock(NOW_MS), config_of=lambda topic: CONFIG, unique_name=lambda: UNIQUE
        )
        append(directory.create(PARTITION, TOPIC_ID), batch())
        directory.flush()
        directory.delete(PARTITION)
        assert f"orders-0.{UNIQUE}-delete" in disk.list_dir("/data")
        assert "orders-0" not in disk.list_dir("/data")
        assert directory.logs == {}
        directory.checkpoint()
        assert read_offsets(disk, "/data/recovery-point-offset-checkpoint") == {}
        directory.remove_condemned()
        assert not [name for name in disk.list_dir("/data") if name.endswith("-delete")]

    def test_a_partition_can_be_created_again_while_the_old_one_leaves(self, disk: MemoryDisk) -> None:
        directory = open_directory(disk)
        append(directory.create(PARTITION, TOPIC_ID), batch())
        directory.delete(PARTITION)
        assert directory.create(PARTITION, TOPIC_ID).log_end_offset == 0
        directory.remove_condemned()
        assert files_in(disk, ".log") == [f"{0:020d}.log"]

    @pytest.mark.parametrize("seed", range(10))
    def test_one_that_is_created_again_is_not_taken_for_the_old_one_after_a_crash(
        self, disk: MemoryDisk, seed: int
    ) -> None:
        directory = open_directory(disk)
        old = directory.create(PARTITION, TOPIC_ID)
        append(old, *(batch() for _ in range(5)))
        old.advance_log_start_offset(3)
        directory.flush()
        directory.delete(PARTITION)
        new = directory.create(PARTITION, TOPIC_ID)
        append(new, batch())
        new.flush()
        recovered = open_directory(disk.survivor(Random(seed))).logs[PARTITION]
        assert (recovered.log_start_offset, recovered.log_end_offset) == (0, 1)

    def test_many_are_deleted_with_one_sync(self) -> None:
        disk = SyncCountingDisk()
        directory = open_directory(disk)
        partitions = [TopicPartition("orders", number) for number in range(10)]
        for partition in partitions:
            append(directory.create(partition, TOPIC_ID), batch())
        disk.syncs = 0
        directory.delete(*partitions)
        assert disk.syncs == 1
        assert directory.logs == {}

    def test_what_a_kill_left_of_a_deletion_is_removed(self, disk: MemoryDisk) -> None:
        directory = open_directory(disk)
        append(directory.create(PARTITION, TOPIC_ID), batch())
        directory.delete(PARTITION)
        survivor = disk.survivor_of_kill()
        again = open_directory(survivor)
        assert again.logs == {}
        again.remove_condemned()
        assert not [name for name in survivor.list_dir("/data") if "orders" in name]


class TestCheckpoints:
    def test_recovery_points_follow_the_flush(self, disk: MemoryDisk) -> None:
        directory = open_directory(disk)
        log = directory.create(PARTITION, TOPIC_ID)
        append(log, batch(), batch())
        directory.checkpoint()
        assert read_offsets(disk, "/data/recovery-point-offset-checkpoint") == {PARTITION: 0}
        directory.flush()
        assert read_offsets(disk, "/data/recovery-point-offset-checkpoint") == {PARTITION: 2}

    def test_the_log_start_offset_is_written_only_if_no_segment_tells_it(self, disk: MemoryDisk) -> None:
        directory = open_directory(disk, rolling(batches=2))
        log = directory.create(PARTITION, TOPIC_ID)
        append(log, *(batch() for _ in range(5)))
        for log_start_offset, written in ((1, {PARTITION: 1}), (2, {}), (3, {PARTITION: 3})):
            log.advance_log_start_offset(log_start_offset)
            log.apply_retention()
            directory.checkpoint()
            assert read_offsets(disk, "/data/log-start-offset-checkpoint") == written

    def test_high_watermarks_are_found_again(self, disk: MemoryDisk) -> None:
        directory = open_directory(disk)
        log = directory.create(PARTITION, TOPIC_ID)
        append(log, batch(), batch(), batch())
        log.advance_high_watermark(2)
        directory.close()
        assert read_offsets(disk, "/data/replication-offset-checkpoint") == {PARTITION: 2}
        assert open_directory(disk).logs[PARTITION].high_watermark == 2

    @pytest.mark.parametrize(("written", "found"), [(0, 1), (100, 3)])
    def test_a_high_watermark_is_held_within_the_log(self, disk: MemoryDisk, written: int, found: int) -> None:
        directory = open_directory(disk)
        log = directory.create(PARTITION, TOPIC_ID)
        append(log, batch(), batch(), batch())
        log.advance_log_start_offset(1)
        directory.close()
        replace_file(disk, "/data/replication-offset-checkpoint", b"0\n1\norders 0 %d\n" % written)
        assert open_directory(disk).logs[PARTITION].high_watermark == found

    def test_truncating_lowers_the_recovery_point_on_the_disk_first(self, disk: MemoryDisk) -> None:
        directory = open_directory(disk)
        log = directory.create(PARTITION, TOPIC_ID)
        append(directory.create(OTHER, TOPIC_ID), batch())
        append(log, batch(), batch(), batch())
        directory.flush()
        log.truncate_to(1)
        assert read_offsets(disk, "/data/recovery-point-offset-checkpoint") == {PARTITION: 1, OTHER: 1}

    def test_partitions_without_an_entry_are_recovered_from_their_start(self, disk: MemoryDisk) -> None:
        directory = open_directory(disk)
        append(directory.create(PARTITION, TOPIC_ID), produced(7, 0), batch())
        directory.flush()
        survivor = disk.survivor_of_kill()
        survivor.remove("/data/recovery-point-offset-checkpoint")
        log = open_directory(survivor).logs[PARTITION]
        assert (log.log_end_offset, log.recovery_point) == (2, 0)


class SyncCountingDisk(MemoryDisk):
    syncs = 0

    def step(self, operation: str, partly: Any = None) -> None:
        self.syncs += operation.startswith("sync")
        super().step(operation, partly)


@pytest.mark.parametrize("was_clean", [True, False])
def test_beginning_a_partition_waits_for_no_sync(was_clean: bool) -> None:
    disk = SyncCountingDisk()
    if was_clean:
        open_directory(disk).close()
    directory = open_directory(disk)
    assert directory.was_clean == was_clean
    disk.syncs = 0
    directory.create(PARTITION, TOPIC_ID)
    assert disk.syncs == 0
