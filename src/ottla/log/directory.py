"""One log directory: the partitions in it, its checkpoints, its lock, and the marker of a clean stop.

Theory of operation. Four small files tell, for all partitions of the directory at once, what their logs cannot:
recovery points, high watermarks, log start offsets (where they are not the start of a segment) and how far the cleaner
is. They are rewritten from time to time and at the end; being late costs a longer recovery, never data. What they say
of a log that is about to be truncated is lowered before the fact, also if another thread writes them at the same time
(`offset_checkpoint`).

`.kafka_cleanshutdown` is the last thing that `close` writes and the first thing that `open` removes.
"""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress

from ottla.base.errors import ProtocolError, StorageError
from ottla.base.ids import TopicPartition, Uuid
from ottla.base.ports import Clock, Disk, Lock
from ottla.log import file_names
from ottla.log.checkpoint import OffsetCheckpoint, Offsets, format_partition_metadata, read_topic_id
from ottla.log.errors import CorruptFile, DirectoryInUse
from ottla.log.files import MarkedDirs, make_dirs, read_file, replace_file, write_file
from ottla.log.flush import close_logs
from ottla.log.future_logs import FutureLogs
from ottla.log.log_config import LogConfig
from ottla.log.partition_log import DEFAULT_PRODUCER_EXPIRATION_MS, PartitionLog

UNKNOWN_BROKER_EPOCH = -1


def lock_directory(disk: Disk, path: str) -> Lock:
    """Keeps other processes, Apache Kafka's too, out of a directory until it is released."""
    try:
        return disk.lock(f"{path}/{file_names.LOCK}")
    except BlockingIOError as problem:
        raise DirectoryInUse(f"{path} is in use by another process (it holds {file_names.LOCK})") from problem


class LogDirectory:
    """An open directory. `logs` holds its partitions, `futures` what is to come; `topic_ids` their partition.metadata.

    Logs are added and taken out on one thread at a time; `promote` and `retire` may be called beside the others.
    """

    def __init__(
        self,
        disk: Disk,
        path: str,
        clock: Clock,
        *,
        config_of: Callable[[str], LogConfig],
        producer_expiration_ms: int = DEFAULT_PRODUCER_EXPIRATION_MS,
        unique_name: Callable[[], str] | None = None,
    ) -> None:
        self.path = path
        self.logs: dict[TopicPartition, PartitionLog] = {}
        self.topic_ids: dict[TopicPartition, Uuid] = {}
        self._distrusted: dict[TopicPartition, PartitionLog] = {}
        self._set_aside: list[PartitionLog] = []
        """Logs that were distrusted, and are elsewhere by now. A thread may still be at work on one."""
        self.damaged: dict[TopicPartition, Exception] = {}
        """Partitions that are here and cannot be opened, with the reason. Their files are left as they are."""
        self.lacking: set[TopicPartition] = set()
        """Partitions that were found damaged, and lack records that were durable."""
        self.was_clean = False
        self.has_lost_records = False
        """Whether a partition is damaged, or was, and lacks what it had at the clean stop."""
        self.warnings: list[str] = []
        self.broker_epoch = UNKNOWN_BROKER_EPOCH
        self._disk = disk
        self._clock = clock
        self._config_of = config_of
        self._producer_expiration_ms = producer_expiration_ms
        self._marked_dirs = MarkedDirs(disk, path, unique_name)
        self._condemned: list[str] = []
        self.futures = FutureLogs(disk, path, self._open_log, self._marked_dirs)
        make_dirs(disk, path)
        self._lock = lock_directory(disk, path)
        try:
            self._begin()
        except BaseException:
            self._lock.release()
            raise

    def _begin(self) -> None:
        self._recovery_points = self._read_checkpoint(file_names.RECOVERY_POINTS)
        self._log_start_offsets = self._read_checkpoint(file_names.LOG_START_OFFSETS)
        self._high_watermarks = self._read_checkpoint(file_names.HIGH_WATERMARKS)
        self._cleaner_offsets = self._read_checkpoint(file_names.CLEANER_OFFSETS)
        marker = self._file(file_names.CLEAN_SHUTDOWN)
        self.was_clean = self._disk.exists(marker)
        if self.was_clean:
            self.broker_epoch = _broker_epoch(read_file(self._disk, marker))
            # From here on a crash is a crash, so the marker goes before anything else is written.
            self._disk.remove(marker)
        # Also when there is none: a start that was killed right here may have removed it, but not durably.
        self._disk.sync_dir(self.path)

    def _read_checkpoint(self, name: str) -> OffsetCheckpoint:
        """A checkpoint that cannot be read is as good as none: all of it can be found out again, at a cost."""
        checkpoint = OffsetCheckpoint(self._disk, self._file(name))
        try:
            checkpoint.read()
        except CorruptFile as problem:
            self.warnings.append(f"{problem}; going on without it")
        return checkpoint

    def _file(self, name: str) -> str:
        return f"{self.path}/{name}"

    # Partitions

    def partitions(self) -> list[TopicPartition]:
        """The partitions that have a directory here, open or not, but for the metadata log, which has its own owner."""
        found = (file_names.parse_partition_dir(name) for name in self._disk.list_dir(self.path))
        return [
            partition
            for partition, mark in filter(None, found)
            if not mark and partition.topic != file_names.CLUSTER_METADATA_TOPIC
        ]

    def open_all(self, progress: Callable[[TopicPartition, int, int], None] | None = None) -> None:
        """Opens every partition; after an unclean stop this recovers them. `progress` hears of each.

        One that is damaged is no word about the others, nor about the disk. After a clean stop it is recovered as after
        another. If that cannot be, it is one of `damaged`.
        """
        self._condemned += self._left_behind()
        partitions = [partition for partition in self.partitions() if self._disk.is_dir(self._dir(partition))]
        unsynced: list[str] = []
        for count, partition in enumerate(partitions, 1):
            self._open_or_recover(partition, unsynced)
            if progress:
                progress(partition, count, len(partitions))
        if unsynced:
            self._disk.sync_all(unsynced)
        self._condemned += self.futures.open_all(self.logs, self.warnings)
        self._lower_recovery_points({**self.futures.logs, **self.logs})

    def create(self, partition: TopicPartition, topic_id: Uuid) -> PartitionLog:
        """Begins a partition. It costs no sync: a crash leaves it empty, or takes it away, until its first flush."""
        assert partition not in self.logs
        directory = self._dir(partition)
        self._make_way(partition)
        self._forget(partition)  # There may have been another one of that name.
        is_new = not self._disk.is_dir(directory)
        try:
            self._disk.make_dirs(directory)
            write_file(self._disk, f"{directory}/{file_names.PARTITION_METADATA}", format_partition_metadata(topic_id))
            log = self._open(partition, clean=is_new or self.was_clean)
        except OSError:
            if is_new:  # It may be made in another directory now, and is not to be in two.
                with suppress(OSError):
                    self._remove_dir(directory)
            raise
        self._lower_recovery_points({partition: log})
        return log

    def delete(self, *partitions: TopicPartition) -> None:
        """Takes partitions out. Their directories are renamed at once, and removed by `remove_condemned`."""
        # One of the same name that is made later is not clean because of it.
        self._cleaner_offsets.forget(*partitions)
        condemned: list[str] = []
        for partition in partitions:
            log = self.logs.pop(partition)
            self.topic_ids.pop(partition, None)
            log.release()
            condemned.append(self._marked_dirs.path_for(partition, file_names.DELETE_DIR))
            self._disk.rename(log.directory, condemned[-1])
        self._disk.sync_dir(self.path)
        self._condemned += condemned

    def remove_condemned(self) -> None:
        """Removes the directories of deleted partitions."""
        while self._condemned:
            self._remove_dir(self._condemned[-1])
            self._condemned.pop()

    def _remove_dir(self, directory: str) -> None:
        for name in self._disk.list_dir(directory):
            self._disk.remove(f"{directory}/{name}")
        self._disk.remove_dir(directory)

    def _left_behind(self) -> list[str]:
        return [
            self._file(name)
            for name in self._disk.list_dir(self.path)
            if (parsed := file_names.parse_partition_dir(name)) and parsed[1] == file_names.DELETE_DIR
        ]

    def _open(self, partition: TopicPartition, *, clean: bool, unsynced: list[str] | None = None) -> PartitionLog:
        log = self.logs[partition] = self._open_log(partition, self._dir(partition), clean=clean, unsynced=unsynced)
        return log

    def _open_or_recover(self, partition: TopicPartition, unsynced: list[str]) -> None:
        for clean in (True, False) if self.was_clean else (False,):
            try:
                log = self._open(partition, clean=clean, unsynced=unsynced)
                if log.log_end_offset < self.saved_recovery_point(partition):
                    self.lacking.add(partition)
                return
            except (StorageError, ProtocolError) as problem:
                self.has_lost_records = True
                if clean:
                    self.warnings.append(f"{partition} is damaged, and recovered as after a crash: {problem}")
                else:
                    self.warnings.append(f"{partition} is damaged, and offline: {problem}")
                    self.damaged[partition] = problem
                    self._read_topic_id(partition, self._dir(partition))

    def _make_way(self, partition: TopicPartition) -> None:
        """Renames what is damaged or distrusted and has a name that is wanted now, for a person to look at."""
        if partition in self.damaged or partition in self._distrusted:
            if log := self._distrusted.get(partition):
                self._set_aside.append(log)
            self._put_away(partition, file_names.STRAY_DIR)

    def _put_away(self, partition: TopicPartition, mark: str) -> str:
        path = self._marked_dirs.path_for(partition, mark)
        self._disk.rename(self._dir(partition), path)
        self._disk.sync_dir(self.path)
        self.damaged.pop(partition, None)
        self._distrusted.pop(partition, None)
        return path

    def holds_unopened(self, partition: TopicPartition, topic_id: Uuid) -> bool:
        """Whether a partition of that topic, as far as that is known, is here and is damaged or distrusted."""
        is_here = partition in self.damaged or partition in self._distrusted
        return is_here and self.topic_ids.get(partition, topic_id) == topic_id

    def discard_unopened(self, partition: TopicPartition) -> None:
        """Deletes a partition that is damaged or distrusted, as `delete` does one that is open: nothing works on it."""
        if log := self._distrusted.get(partition):
            log.release()
        self._condemned.append(self._put_away(partition, file_names.DELETE_DIR))
        self._forget(partition)

    def set_aside_damaged(self, partition: TopicPartition) -> str:
        """Renames a damaged partition that nobody wants, for a person to look at; returns where it is now."""
        path = self._put_away(partition, file_names.STRAY_DIR)
        self._forget(partition)
        return path

    def _open_log(
        self,
        partition: TopicPartition,
        directory: str,
        log_start_offset: int | None = None,
        *,
        clean: bool | None = None,
        unsynced: list[str] | None = None,
    ) -> PartitionLog:
        log = PartitionLog.open(
            self._disk,
            directory,
            partition,
            self._config_of(partition.topic),
            self._clock,
            log_start_offset=log_start_offset or self._log_start_offsets.get(partition) or 0,
            recovery_point=self._recovery_points.get(partition) or 0,
            clean=self.was_clean if clean is None else clean,
            producer_expiration_ms=self._producer_expiration_ms,
            before_truncation=lambda offset: self._before_truncation(partition, offset),
            unsynced=unsynced,
        )
        self.warnings += log.warnings
        log.advance_high_watermark(
            min(max(self._high_watermarks.get(partition) or 0, log.log_start_offset), log.log_end_offset)
        )
        self._read_topic_id(partition, log.directory)
        return log

    def _read_topic_id(self, partition: TopicPartition, directory: str) -> None:
        try:
            topic_id = read_topic_id(self._disk, directory)
        except CorruptFile as problem:
            # A power cut before the first flush; the broker, which knows the topic, writes it again.
            self.warnings.append(f"{problem}; going on without it")
            topic_id = None
        if topic_id is not None:
            self.topic_ids[partition] = topic_id

    def remember_topic(self, partition: TopicPartition, topic_id: Uuid) -> None:
        """Writes down which topic a partition is of, where that was lost or never known."""
        path = f"{self._dir(partition)}/{file_names.PARTITION_METADATA}"
        replace_file(self._disk, path, format_partition_metadata(topic_id))
        self.topic_ids[partition] = topic_id

    def _lower_recovery_points(self, logs: Mapping[TopicPartition, PartitionLog]) -> None:
        """Some may end before what was once durable. What comes to stand there now must not be taken for that."""
        self._recovery_points.lower({name: log.recovery_point for name, log in logs.items()})

    def _dir(self, partition: TopicPartition) -> str:
        return self._file(file_names.partition_dir(partition))

    # Moves between directories

    def begin_future(self, partition: TopicPartition, topic_id: Uuid, log_start_offset: int) -> PartitionLog:
        """Begins a copy of a partition that is in another directory."""
        assert partition not in self.logs, "a replica moves from one directory to another"
        self._make_way(partition)
        self._forget(partition)  # What the checkpoints say of an earlier stay is not true of the copy.
        self.topic_ids[partition] = topic_id
        return self.futures.begin(partition, topic_id, log_start_offset)

    def drop_future(self, partition: TopicPartition) -> None:
        """The move is off. The directory is renamed at once, and removed by `remove_condemned`."""
        self._condemned.append(self.futures.set_aside(partition, file_names.DELETE_DIR))

    def promote(self, partition: TopicPartition) -> PartitionLog:
        """Makes a future log the partition's own: a rename, which lasts once the directory is synced."""
        log = self.futures.logs[partition]
        directory = self._dir(partition)
        self._disk.rename(log.directory, directory)
        log.moved(directory)
        self.logs[partition] = log  # Before it goes there: a checkpoint that is being written misses neither.
        del self.futures.logs[partition]
        return log

    def retire(self, partition: TopicPartition) -> PartitionLog:
        """Takes out a partition that is in another directory by now: a rename. `bury` does the rest, which takes time.

        If it fails, the partition is in two directories until the next start, which knows from the metadata what to do.
        """
        log = self.logs.pop(partition)
        condemned = self._marked_dirs.path_for(partition, file_names.DELETE_DIR)
        self._disk.rename(log.directory, condemned)
        log.moved(condemned)
        return log

    def bury(self, log: PartitionLog) -> None:
        """Closes a log that was retired, and forgets it. Its files go with `remove_condemned`."""
        log.release()
        if log.partition not in self.logs and log.partition not in self.futures.logs:
            self._forget(log.partition)
        self._disk.sync_dir(self.path)
        self._condemned.append(log.directory)

    def _forget(self, partition: TopicPartition) -> None:
        """Makes the checkpoints say nothing of a partition, durably."""
        self.topic_ids.pop(partition, None)
        for checkpoint in (
            self._cleaner_offsets,
            self._recovery_points,
            self._log_start_offsets,
            self._high_watermarks,
        ):
            checkpoint.forget(partition)

    # Checkpoints

    def checkpoint(self) -> None:
        """Writes down recovery points, log start offsets and high watermarks. On any thread, beside the logs' owner."""
        self._write_down(self._recovery_points, lambda log: log.recovery_point)
        self._write_down(
            self._log_start_offsets,
            lambda log: log.log_start_offset if log.log_start_offset > log.segments[0].base_offset else None,
        )
        self._write_down(self._high_watermarks, lambda log: log.high_watermark)

    def _write_down(self, checkpoint: OffsetCheckpoint, offset_of: Callable[[PartitionLog], int | None]) -> None:
        def of_all(saved: Offsets) -> Offsets:
            logs = {**self.futures.logs, **self.logs}  # Before those that are distrusted: one goes from here to there.
            distrusted = {**self._distrusted, **self.damaged}
            offsets = {name: offset_of(log) for name, log in logs.items() if name not in distrusted}
            kept = {name: saved[name] for name in distrusted if name in saved}
            return {**kept, **{name: offset for name, offset in offsets.items() if offset is not None}}

        checkpoint.change(of_all)

    def _before_truncation(self, partition: TopicPartition, offset: int) -> None:
        for checkpoint in (self._recovery_points, self._log_start_offsets, self._cleaner_offsets):
            checkpoint.lower({partition: offset})

    def saved_recovery_point(self, partition: TopicPartition) -> int:
        """What the checkpoint promises: after a crash, all that ends before it is taken as it is."""
        return self._recovery_points.get(partition) or 0

    def cleaner_offset(self, partition: TopicPartition) -> int | None:
        """Up to where the log is clean; None if it never has been cleaned."""
        return self._cleaner_offsets.get(partition)

    def save_cleaner_offset(
        self, partition: TopicPartition, offset: int, still: Callable[[], bool] = lambda: True
    ) -> None:
        """`still` is asked, when nobody else can write, whether that is so: the log may be cut meanwhile, or gone."""
        self._cleaner_offsets.change(lambda saved: {**saved, partition: offset} if still() else saved)

    def flush(self) -> None:
        """Makes every partition durable and says so in the recovery points."""
        for log in self.logs.values():
            log.flush()
        self.checkpoint()

    # The end

    def distrust(self, partition: TopicPartition) -> None:
        """What memory says of a log contradicts itself: nothing of it is written down any more.

        Its checkpoints stay as they were, and the next start recovers it from them. Its files stay open until the end.
        """
        log = self.logs.get(partition)
        if log is not None:
            self._distrusted[partition] = log
            del self.logs[partition]

    def close(self, broker_epoch: int = UNKNOWN_BROKER_EPOCH) -> None:
        """A clean stop: every log closed, the checkpoints written, and last the marker that says so.

        Without the marker if a log was distrusted or is damaged: then the next start recovers the directory.
        """
        close_logs(self._disk, [*self.logs.values(), *self.futures.logs.values()])
        self.checkpoint()
        if not self._distrusted and not self.damaged:
            marker = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))
            replace_file(self._disk, self._file(file_names.CLEAN_SHUTDOWN), marker.encode())
        for log in [*self._distrusted.values(), *self._set_aside]:
            log.release()
        self.logs.clear()
        self.futures.logs.clear()
        self._lock.release()

    def abandon(self) -> None:
        """Lets go of a directory whose disk has failed: closes files and lock, writes nothing.

        Future logs are closed by who moves them: a thread may be writing to one.
        """
        for log in [*self.logs.values(), *self._distrusted.values(), *self._set_aside]:
            log.release()
        self.logs.clear()
        self._distrusted.clear()
        self._set_aside.clear()
        self.futures.logs.clear()
        self._lock.release()


def _broker_epoch(content: bytes) -> int:
    """The epoch in the marker. That it is there says that the stop was clean; what is in it is not needed for that."""
    try:
        return int(json.loads(content)["brokerEpoch"])
    except (ValueError, TypeError, KeyError):
        return UNKNOWN_BROKER_EPOCH
