"""One partition that this node follows in one leader epoch: what its leader sends is appended as it is, and checked.

A follower's log is a beginning of its leader's. So every batch has to be sound (the log computes its checksum again
where it writes it), to begin at the end of this log, and to be of no later leader epoch than the one that is followed:
a later one is for a fetch that knows of it. What is not so is not appended, and the leader is asked again.

A log that is cut is flushed by a worker before the leader is asked for what comes after the cut: a crash must not bring
the old end back behind new batches.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partition_end import announce
from ottla.broker.partitions.partition_events import PartitionEvents
from ottla.broker.replication.follower_session import Key, Position
from ottla.log.errors import STORAGE_PROBLEMS, OffsetOutOfRange
from ottla.machines.partition.following import EpochEnd, Pauses, start_within, truncation_offset
from ottla.records.batch import checksum_matches, complete_batches
from ottla.records.header import BatchHeader, CorruptBatch
from ottla.wire.messages import FetchResponse

if TYPE_CHECKING:
    from ottla.broker.partitions.held_partitions import Partitions


class FollowedPartition:
    """Methods that change the log return whether it can be fetched on: if not, something is wrong, here or there."""

    __slots__ = ("_events", "_partitions", "leader_epoch", "partition", "pauses")

    def __init__(
        self, partitions: "Partitions", events: PartitionEvents, partition: Partition, most_pause_ms: int
    ) -> None:
        self._partitions = partitions
        self._events = events
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.pauses = Pauses(most_pause_ms)

    @property
    def key(self) -> Key:
        return self.partition.topic_id, self.partition.name.partition

    def position(self) -> Position:
        log = self.partition.log
        return Position(log.log_end_offset, self.leader_epoch, log.epochs.latest, log.log_start_offset)

    # What the leader has

    def take(self, data: FetchResponse.PartitionData) -> bool:
        """Appends what came, and follows the leader's high watermark and start."""
        records = memoryview(data.records or b"")  # type: ignore[arg-type]
        try:
            is_sound = self._append(records) if records else True
            self._follow_offsets(data.high_watermark, data.log_start_offset)
        except (CorruptBatch, OffsetOutOfRange) as problem:
            # A batch of which the way has changed the offsets overlaps the next one, or seems to.
            name = self.partition.name
            self._partitions.troubles.error(name, "%s: the leader sent a corrupt batch: %s", name, problem)
            return False
        except STORAGE_PROBLEMS as problem:
            self._partitions.on_storage_problem(self.partition, problem)
            return False
        except Exception as problem:
            self._partitions.on_broken(self.partition, problem)
            return False
        announce(self._partitions, self.partition)
        return is_sound

    def _append(self, records: memoryview) -> bool:
        partition, log = self.partition, self.partition.log
        begin = end = 0
        for position, header in self._batches_to_take(records):
            if not end and header.base_offset < log.log_end_offset:
                begin = self._where_to_begin(records, position, header)
                if begin < 0:
                    return False
            if end > begin and position + header.size - begin > log.config.segment_bytes:
                partition.append_as_follower(records[begin:end])
                begin = end
            end = position + header.size
        if end == begin:
            return False  # Not even the first batch can be taken.
        partition.append_as_follower(records[begin:end])
        self._partitions.has_news_for_checkpoints = True
        return True

    def _batches_to_take(self, records: memoryview) -> Iterator[tuple[int, BatchHeader]]:
        """Up to the first that is not to be taken."""
        for position, header in complete_batches(records):
            if header.partition_leader_epoch > self.leader_epoch:
                return
            yield position, header

    def _where_to_begin(self, records: memoryview, position: int, header: BatchHeader) -> int:
        """A batch that begins before the end of this log; -1: that cannot be.

        It can if the log is empty: the leader's begins in the middle of that batch, after DeleteRecords.
        """
        log = self.partition.log
        if not checksum_matches(records, position, header):
            raise CorruptBatch(f"the checksum of the batch at offset {header.base_offset} does not match")
        if log.log_end_offset > log.log_start_offset or header.last_offset < log.log_end_offset:
            self._partitions.troubles.error(
                self.partition.name,
                "%s: fetched offset %s, and the leader sent a batch that begins at %s",
                self.partition.name,
                log.log_end_offset,
                header.base_offset,
            )
            return -1
        log.truncate_fully(header.base_offset)
        self._events.on_truncated(self.partition)
        return position

    def _follow_offsets(self, high_watermark: int, log_start_offset: int) -> None:
        """This node's high watermark is what it knows its leader to have; a new leader begins with it."""
        partitions, log = self._partitions, self.partition.log
        high_watermark = min(high_watermark, log.log_end_offset)
        if high_watermark > log.high_watermark:
            log.advance_high_watermark(high_watermark)
            partitions.has_news_for_checkpoints = True
        log_start_offset = min(log_start_offset, log.high_watermark)
        if log_start_offset > log.log_start_offset:
            log.advance_log_start_offset(log_start_offset)
            partitions.has_news_for_checkpoints = True

    # Cutting back

    def truncate(self, diverging: FetchResponse.EpochEndOffset) -> bool:
        """The logs part; the leader has said where."""
        log = self.partition.log
        own = EpochEnd(*log.epochs.end_offset(diverging.epoch, log.log_end_offset))
        leader = EpochEnd(diverging.epoch, diverging.end_offset)
        return self._cut(truncation_offset(leader, own, log.log_end_offset))

    def start_within(self, leader_start_offset: int, leader_end_offset: int) -> bool:
        """The leader does not have the end of this log: it is cut, or begins anew."""
        start = start_within(leader_start_offset, leader_end_offset, self.partition.log.log_end_offset)
        return self._cut(start.offset, is_empty=start.is_empty)

    def _cut(self, offset: int, *, is_empty: bool = False) -> bool:
        partitions, partition, log = self._partitions, self.partition, self.partition.log
        name, end_offset = partition.name, log.log_end_offset
        if is_empty:
            partitions.rate_limited_log.info(
                "%s: truncated fully, to begin at %s: its leader has nothing of this replica's log, which ended at %s",
                name,
                offset,
                end_offset,
            )
        elif offset < log.high_watermark:
            partitions.rate_limited_log.warning(
                "%s: truncated from %s to %s, below its high watermark %s", name, end_offset, offset, log.high_watermark
            )
        elif offset < end_offset:
            partitions.rate_limited_log.info(
                "%s: truncated from %s to %s, to match its leader", name, end_offset, offset
            )
        try:
            if is_empty:
                log.truncate_fully(offset, durably=partition.is_changing_log)
            else:
                log.truncate_to(offset, durably=partition.is_changing_log)
        except STORAGE_PROBLEMS as problem:
            partitions.on_storage_problem(partition, problem)
            return False
        partition.awaits_flush = False
        partitions.has_news_for_checkpoints = True
        self._events.on_truncated(partition)
        if log.has_unsynced_cut:
            partitions.flushing.flush(partition)
        return True
