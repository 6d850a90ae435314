"""Logs that are on their way into a directory: copies of replicas that another directory still serves (KIP-113).

A future log is a log like any other, in `<topic>-<partition>.<32 hex>-future`. It is given the batches of the current
one as they are, as a follower is given its leader's, until it has them all; then it takes the current one's place.
Until then nobody reads it. When the current log is cut, so is the future one (`PartitionLog.watch_cuts`). After a stop
it may be behind, or ahead, or have records that were cut away in the current log: `common_end` says how far they agree.

In the directory's checkpoints it goes by the partition's name, which is free: the current log is elsewhere.
"""

from collections.abc import Callable, Collection, Iterator
from contextlib import suppress

from ottla.base.errors import ProtocolError, StorageError
from ottla.base.ids import TopicPartition, Uuid
from ottla.base.ports import Disk
from ottla.log import file_names
from ottla.log.checkpoint import format_partition_metadata
from ottla.log.errors import CorruptFile
from ottla.log.files import MarkedDirs, write_file
from ottla.log.leader_epochs import UNDEFINED_EPOCH
from ottla.log.partition_log import PartitionLog
from ottla.log.reading import slot_of
from ottla.log.scan import scan_headers
from ottla.records.batch import BatchHeader, CorruptBatch, checksum_matches, complete_batches

OpenLog = Callable[[TopicPartition, str, int | None], PartitionLog]
"""Opens the log of a partition in a directory, which begins at an offset, or where the checkpoint says."""


class FutureLogs:
    """The future logs of one directory, by partition. Only the move that a future log belongs to writes to it."""

    def __init__(self, disk: Disk, path: str, open_log: OpenLog, marked_dirs: MarkedDirs) -> None:
        self.logs: dict[TopicPartition, PartitionLog] = {}
        self._disk = disk
        self._path = path
        self._open_log = open_log
        self._marked_dirs = marked_dirs

    def open_all(self, current: Collection[TopicPartition], warnings: list[str]) -> list[str]:
        """Opens what a stop has left; returns the directories that are of no use, for somebody to remove.

        One that is damaged is renamed, for a person to look at.
        """
        useless: list[str] = []
        for name in self._disk.list_dir(self._path):
            parsed = file_names.parse_partition_dir(name)
            if parsed is None or parsed[1] != file_names.FUTURE_DIR:
                continue
            partition, directory = parsed[0], f"{self._path}/{name}"
            if partition in current or partition in self.logs:
                useless.append(directory)  # What it was to become is here already.
            else:
                try:
                    self.logs[partition] = self._open_log(partition, directory, None)
                except (StorageError, ProtocolError) as problem:
                    stray = self._marked_dirs.path_for(partition, file_names.STRAY_DIR)
                    self._disk.rename(directory, stray)
                    warnings.append(f"{directory} is damaged, and is now {stray}: {problem}")
        return useless

    def begin(self, partition: TopicPartition, topic_id: Uuid, log_start_offset: int) -> PartitionLog:
        assert partition not in self.logs, "one move of a partition at a time"
        directory = self._marked_dirs.path_for(partition, file_names.FUTURE_DIR)
        self._disk.make_dirs(directory)
        write_file(self._disk, f"{directory}/{file_names.PARTITION_METADATA}", format_partition_metadata(topic_id))
        self.logs[partition] = self._open_log(partition, directory, log_start_offset)
        return self.logs[partition]

    def set_aside(self, partition: TopicPartition, mark: str) -> str:
        """Takes a future log out, renaming its directory; returns where it is now. Durable when it returns."""
        log = self.logs.pop(partition)
        log.release()
        marked = self._marked_dirs.path_for(partition, mark)
        self._disk.rename(log.directory, marked)
        self._disk.sync_dir(self._path)
        return marked

    def close(self, partition: TopicPartition) -> None:
        """Leaves a future log as a clean stop does: the next start continues with it."""
        self.logs.pop(partition).close()


def start_of_copy(current: PartitionLog) -> int:
    """Where a copy begins: with the batch that holds the log start offset, which may begin before it."""
    start_offset = current.log_start_offset
    for segment in current.segments[slot_of(current.segments, start_offset) :]:
        if found := segment.find(start_offset):
            return min(found[1].base_offset, start_offset)
    return start_offset


def is_part_of(future: PartitionLog, current: PartitionLog) -> bool:
    """Whether the copy can continue: what it lacks is still in the current log. It was cut wherever that was."""
    if future.log_start_offset > current.log_start_offset:
        return False  # The current log was emptied, and begins earlier than it did.
    if future.log_end_offset < current.log_start_offset and future.log_end_offset < start_of_copy(current):
        return False
    return future.log_end_offset <= current.log_end_offset


def bytes_left(future: PartitionLog, current: PartitionLog) -> int:
    """How much there is still to copy."""
    if future.log_end_offset == current.log_end_offset:
        return 0
    offset = max(future.log_end_offset, current.log_start_offset)
    slot = slot_of(current.segments, offset)
    segment = current.segments[slot]
    later = sum(segment.size for segment in current.segments[slot + 1 :])
    return later + segment.size - segment.position_of_end(offset)


def copy_batches(future: PartitionLog, data: bytes) -> int:
    """Appends the whole batches in a part of the current log; returns their size. Damage is not copied: it raises."""
    size = 0
    for position, header in complete_batches(data):
        if not checksum_matches(data, position, header):
            raise CorruptBatch(f"the batch at offset {header.base_offset} does not match its checksum")
        size = position + header.size
    future.append_as_follower(memoryview(data)[:size])
    return size


def reach_end(future: PartitionLog, current: PartitionLog) -> None:
    """Nothing is left to copy. Offsets at the end may still be nobody's: compaction has taken what was there."""
    if future.log_end_offset < current.log_end_offset:
        future.roll(current.log_end_offset)
        future.log_end_offset = current.log_end_offset


def follow_offsets(future: PartitionLog, current: PartitionLog) -> None:
    """Raises the high watermark and the log start offset to the current log's, as far as the copy reaches."""
    future.advance_high_watermark(max(future.high_watermark, min(current.high_watermark, future.log_end_offset)))
    future.advance_log_start_offset(min(current.log_start_offset, future.high_watermark))


def take_over(future: PartitionLog, current: PartitionLog) -> None:
    """Hands over what batches do not tell: producers of records long deleted, epochs in which nothing was written."""
    assert future.log_end_offset == current.log_end_offset, "only a whole copy takes over"
    future.config = current.config
    future.producers = current.producers
    future.epochs.clear()
    for epoch, start_offset in current.epochs.entries:
        future.epochs.assign(epoch, start_offset)
    follow_offsets(future, current)


def contradiction(future: PartitionLog, current: PartitionLog) -> str:
    """Where the copy has a batch of another leader epoch than the current log has there; "" if it has none."""
    for epoch, offset in future.epochs.entries:
        wanted = current.epochs.epoch_at(offset) if offset >= current.log_start_offset else UNDEFINED_EPOCH
        if wanted not in (epoch, UNDEFINED_EPOCH):
            return f"at offset {offset} the copy is of leader epoch {epoch}, and the log of {wanted}"
    return ""


def common_end(future: PartitionLog, current: PartitionLog) -> int:
    """The offset up to which both have the same batches: one offset in one epoch was written once (KIP-101)."""
    start_offset = max(future.log_start_offset, current.log_start_offset)
    end_offset = min(future.log_end_offset, current.log_end_offset)
    begun = (offset for log in (future, current) for _, offset in log.epochs.entries)
    for offset in sorted({start_offset, *begun}):
        if start_offset <= offset < end_offset and future.epochs.epoch_at(offset) != current.epochs.epoch_at(offset):
            return _end_of_same_batches(future, current, offset, end_offset)
    return end_offset


def _end_of_same_batches(future: PartitionLog, current: PartitionLog, offset: int, end_offset: int) -> int:
    """From `offset` on batch by batch: of an epoch that one log alone knows, compaction may have left no batch."""
    with suppress(CorruptBatch, CorruptFile):
        for copied, original in zip(_headers_from(future, offset), _headers_from(current, offset), strict=False):
            if copied != original:
                return max(min(copied.base_offset, original.base_offset), offset)
        return end_offset
    return offset  # What cannot be read is not known to be the same.


def _headers_from(log: PartitionLog, offset: int) -> Iterator[BatchHeader]:
    for segment in log.segments[slot_of(log.segments, offset) :]:
        if found := segment.find(offset):
            for _, header in scan_headers(segment.file, found.position, segment.size):
                yield header
