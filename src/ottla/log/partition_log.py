"""The log of one partition: a row of segments that is appended to at one end and deleted from at the other.

What readers see of it, its offsets included, is `ReadableLog`; here is all that changes it. Beside those offsets there
is the `recovery_point`, never past the end: all before it survives a power cut.

Threads: one thread owns the log and calls everything. Only what a `Flush` does in `run` may be done elsewhere, beside
appends and reads. A failing disk raises `OSError` and leaves the log as it was before the call, as far as it is known;
the directory's owner takes it offline, or continues if the disk was only full. What could be neither done nor undone
then, of a roll or a truncation, is done before anything else is built on it (`_finish`).

One file because all of these operations keep the same two things in order, the offsets and the row of segments, and
a change to one must have the others in view.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress

from ottla.base.ids import TopicPartition
from ottla.base.lent import Seen, Writable
from ottla.base.ports import Clock, Disk
from ottla.log import file_names
from ottla.log.cleaning.replacement import Replacement
from ottla.log.errors import OffsetOutOfRange
from ottla.log.files import make_dirs, sync_file
from ottla.log.flush import Flush, close_logs
from ottla.log.index import MAX_RELATIVE_OFFSET
from ottla.log.log_config import LogConfig
from ottla.log.outcomes import Appended
from ottla.log.producer_recovery import rebuild_producers, recall
from ottla.log.producer_snapshots import ProducerSnapshots
from ottla.log.producer_state import AppendOrigin
from ottla.log.readable_log import ReadableLog
from ottla.log.reading import end_of, slot_of
from ottla.log.recovery import Recovery
from ottla.log.retention import RetiredFiles, beyond_size, beyond_start, beyond_time
from ottla.log.segment import Segment
from ottla.records.batch import LOG_OVERHEAD, BatchHeader, assign_to_first, batches, read_header
from ottla.records.control import parse_end_transaction_marker
from ottla.wire.errors import ErrorCode

DEFAULT_PRODUCER_EXPIRATION_MS = 86_400_000
# Of a log that was begun, or opened without anything in it, and left alone.
_NEVER_WRITTEN = (0, 1, 0)
_ANY_NUMBER = 1 << 62


def _nothing_to_lower(_offset: int) -> None:
    """A log on its own has no checkpoints."""


class PartitionLog(ReadableLog):
    """See the module. Made by `PartitionLog.open`; `close` leaves what a clean stop leaves."""

    __slots__ = (
        "__dict__",  # For tests, in which a log may do something else.
        "_before_truncation",
        "_clock",
        "_disk",
        "_had_something",
        "_lowest_cut",
        "_names_changed",
        "_names_synced",
        "_producer_expiration_ms",
        "_replacement",
        "_retired",
        "_snapshots",
        "_state_as_closed",
        "_unfinished",
        "config",
        "cut_count",
        "directory",
        "partition",
        "recovery_point",
        "warnings",
    )

    def __init__(
        self,
        disk: Disk,
        directory: str,
        partition: TopicPartition,
        config: LogConfig,
        clock: Clock,
        loaded: Recovery,
        before_truncation: Callable[[int], None],
        producer_expiration_ms: int,
    ) -> None:
        super().__init__(loaded.segments, loaded.epochs, loaded.state, loaded.log_start_offset, loaded.log_end_offset)
        self.partition = partition
        self.directory = directory
        self.config = config
        self.recovery_point = loaded.recovery_point
        self.warnings = loaded.warnings
        """What a person should know of how the log was found."""
        self._disk = disk
        self._clock = clock
        self._snapshots: ProducerSnapshots = loaded.snapshots
        self._before_truncation = before_truncation
        self._producer_expiration_ms = producer_expiration_ms
        self._retired = RetiredFiles(disk)
        # How many times names in the directory have changed, and how many of those changes are durable.
        self._names_changed, self._names_synced = 1, 0
        self.cut_count = 0
        """How many times the log has been cut since it was opened."""
        self._lowest_cut: int | None = None  # One number, however often it is cut: one move at a time copies the log.
        self._replacement: Replacement | None = None
        self._unfinished: Callable[[PartitionLog], object] | None = None
        self._state_as_closed = self._state if loaded.is_as_closed else None
        self._had_something = loaded.had_something

    @classmethod
    def open(
        cls,
        disk: Disk,
        directory: str,
        partition: TopicPartition,
        config: LogConfig,
        clock: Clock,
        *,
        log_start_offset: int = 0,
        recovery_point: int = 0,
        clean: bool = False,
        producer_expiration_ms: int = DEFAULT_PRODUCER_EXPIRATION_MS,
        before_truncation: Callable[[int], None] = _nothing_to_lower,
        progress: Callable[[Segment], None] | None = None,
        unsynced: list[str] | None = None,
    ) -> "PartitionLog":
        """Opens the log in `directory`, or begins one; `clean` says that the last stop was.

        `before_truncation` is called before what is at an offset or after is cut away. It must make durable, before it
        returns, that neither the recovery point nor the log start offset in the checkpoints is beyond that offset.

        What has to be durable before anything is appended is synced, or, for who opens many logs, added to `unsynced`.
        """
        make_dirs(disk, directory)
        loaded = Recovery(
            disk,
            directory,
            partition,
            config,
            clock,
            log_start_offset=log_start_offset,
            recovery_point=recovery_point,
            clean=clean,
            producer_expiration_ms=producer_expiration_ms,
            progress=progress,
        )
        try:
            loaded.load()
            if unsynced is not None:
                unsynced += loaded.unsynced
            elif loaded.unsynced:
                disk.sync_all(loaded.unsynced)
        except Exception:
            loaded.release()
            raise
        return cls(disk, directory, partition, config, clock, loaded, before_truncation, producer_expiration_ms)

    # Appending

    def append_as_leader(
        self,
        data: Writable,
        leader_epoch: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        header: BatchHeader | None = None,
    ) -> Appended:
        """Gives a validated batch the next offsets, in place, and writes it. Producers are held to order and epoch.

        A caller that has read the batch's `header` gives it, and saves reading it again.
        """
        if self._unfinished:
            self._finish()
        if header is None:
            header = read_header(data)
        _, length, _, _, crc, _, last_offset_delta, _, max_timestamp, producer_id, _, _, _ = header
        if producer_id >= 0 and (refused := self._refused(data, header, origin)):
            return refused
        size, base_offset = len(data), self.log_end_offset
        assert size == length + LOG_OVERHEAD, "a leader appends one batch at a time, as its header says"
        last_offset = base_offset + last_offset_delta
        segment = self._find_room(size, base_offset, last_offset, max_timestamp)
        if segment is None:
            return Appended(ErrorCode.RECORD_LIST_TOO_LARGE)
        assign_to_first(data, 0, base_offset, length, leader_epoch)
        segment.append_one(data, size, last_offset, max_timestamp, crc)
        self.log_end_offset = last_offset + 1
        if leader_epoch > self.epochs.latest:
            self.epochs.assign(leader_epoch, base_offset)
        if producer_id >= 0:
            self._note(header.assigned(base_offset, leader_epoch), data, 0, segment)
        return Appended(ErrorCode.NONE, base_offset, last_offset)

    def append_made_here(
        self, data: bytearray, leader_epoch: int, last_offset_delta: int, max_timestamp: int
    ) -> Appended:
        """Writes a batch that this node, the leader, has made for the end of this log: it has its offset and epoch, and
        is of no producer.
        """
        if self._unfinished:
            self._finish()
        size, base_offset = len(data), self.log_end_offset
        last_offset = base_offset + last_offset_delta
        segment = self._find_room(size, base_offset, last_offset, max_timestamp)
        if segment is None:
            return Appended(ErrorCode.RECORD_LIST_TOO_LARGE)
        segment.append_one(data, size, last_offset, max_timestamp)
        self.log_end_offset = last_offset + 1
        if leader_epoch > self.epochs.latest:
            self.epochs.assign(leader_epoch, base_offset)
        return Appended(ErrorCode.NONE, base_offset, last_offset)

    def _refused(self, data: Seen, header: BatchHeader, origin: AppendOrigin) -> Appended | None:
        """Why a producer's batch, the first in `data`, is not written: it is out of order, or was written before."""
        if header.is_control:
            marker = parse_end_transaction_marker(data, 0, header)
            assert marker is not None, "a control batch of a producer is a transaction marker"
            error = self.producers.check_marker(header, marker)
        else:
            error, noted = self.producers.check(header, origin)
            if error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and self._recall(header.producer_id):
                error, noted = self.producers.check(header, origin)
            if noted:
                return Appended(ErrorCode.NONE, noted.first_offset, noted.last_offset, repeated=True)
        return Appended(error) if error else None

    def _recall(self, producer_id: int) -> bool:
        producer = self.producers.get(producer_id)
        return producer is not None and recall(producer, self.segments, self.log_start_offset)

    def append_as_follower(self, data: Seen) -> Appended:
        """Writes batches as the leader wrote them. They begin at or after the end of this log.

        One may be larger than `segment.bytes`, which was lowered since: it gets a segment of its own.
        """
        if self._unfinished:
            self._finish()
        headers: list[BatchHeader] = []
        offset = self.log_end_offset
        for _, header in batches(data):
            if header.base_offset < offset:
                raise OffsetOutOfRange(header.base_offset, offset, offset)
            headers.append(header)
            offset = header.next_offset
        if not headers:
            return Appended(ErrorCode.NONE, offset, offset - 1)
        base_offset, last_offset = headers[0].base_offset, headers[-1].last_offset
        latest = max(header.max_timestamp for header in headers)
        segment = self._find_room(len(data), base_offset, last_offset, latest, most_bytes=_ANY_NUMBER)
        assert segment is not None, "a follower takes what its leader has, whatever its size"
        segment.append(data, headers)
        self.log_end_offset = headers[-1].next_offset
        position = 0
        for header in headers:
            if header.partition_leader_epoch > self.epochs.latest:
                self.epochs.assign(header.partition_leader_epoch, header.base_offset)
            if header.producer_id >= 0:
                self._note(header, data, position, segment)
            position += header.size
        assert position == len(data), "headers and bytes of an append do not agree"
        return Appended(ErrorCode.NONE, base_offset, last_offset)

    def _find_room(
        self, size: int, base_offset: int, last_offset: int, max_timestamp: int, *, most_bytes: int | None = None
    ) -> Segment | None:
        """The active segment, or a new one if these batches do not belong into it; None if they are more than
        `most_bytes`, which is `segment.bytes` unless it is given.
        """
        config, active = self.config, self.segments[-1]
        if active.has_room(config, size, last_offset, max_timestamp):
            return active
        if size > (config.segment_bytes if most_bytes is None else most_bytes):
            return None
        max_ms = config.roll_ms(self.partition, active.base_offset)
        if not active.should_roll(config, size, last_offset, max_timestamp, self._clock.now_ms(), max_ms):
            return active
        # A follower of a compacted topic leaps over offsets. Within a segment that is normal; between two it would
        # look, after a crash, as if the end of the first had been lost. So the new one begins where this one ends,
        # if what comes can be written relative to that.
        fits = last_offset - self.log_end_offset <= MAX_RELATIVE_OFFSET
        return self.roll(None if fits else base_offset)

    def _note(self, header: BatchHeader, data: Seen, position: int, segment: Segment) -> None:
        if not header.is_control:
            self.producers.note(header)
        elif marker := parse_end_transaction_marker(data, position, header):
            completed = self.producers.note_marker(header, marker)
            if completed and completed.aborted:
                segment.transaction_index.append(self.producers.aborted(completed))

    def begin_leader_epoch(self, epoch: int) -> None:
        """This node leads from here on: its epoch begins at the end of the log, even if nothing is ever written."""
        if epoch > self.epochs.latest:
            self.epochs.assign(epoch, self.log_end_offset)

    def roll(self, next_offset: int | None = None) -> Segment:
        """Ends the active segment and begins one at the end of the log, or at `next_offset` if that is later."""
        self._finish()
        old = self.active
        base_offset = max(self.log_end_offset, next_offset or 0)
        if old.size == 0 and old.base_offset == base_offset:
            return old
        old.become_inactive()
        if self.recovery_point >= base_offset:
            # The recovery point is about to be past the end of this segment, so its indexes must be durable.
            old.flush()
        else:
            with suppress(OSError):  # A full disk, perhaps: a flush insists.
                old.write_indexes()
        self._snapshots.take(base_offset, self.producers, self.log_start_offset)
        segment = self._new_segment(base_offset)
        # A part of it would look, at the next start, as if this one ended here.
        self._unfinished = lambda _: segment.delete()
        segment.create()
        self._names_changed += 1
        self._unfinished = None
        if old.size == 0:
            self.segments[-1] = segment
            self._unfinished = lambda _: old.delete()
            self._finish()
        else:
            self.segments.append(segment)
        return segment

    def _finish(self) -> None:
        """Does what a failing disk has left half done. Raises `OSError` if it still fails."""
        if self._unfinished:
            self._unfinished(self)
            self._unfinished = None
            self._names_changed += 1

    def _new_segment(self, base_offset: int, suffix: str = "") -> Segment:
        return Segment(
            self._disk,
            self.directory,
            base_offset,
            index_interval_bytes=self.config.index_interval_bytes,
            created_ms=self._clock.now_ms(),
            suffix=suffix,
        )

    # Deleting

    def apply_retention(self, most: int = _ANY_NUMBER) -> int:
        """Takes segments out of the log that settings or the log start offset no longer keep; returns how many.

        At most `most`, the oldest first: with that many it is to be called again, since each takes its time.

        Their files get the suffix .deleted at once, and go with `remove_deleted` after `file.delete.delay.ms`, so that
        readers that were handed a part of them can finish.
        """
        expired = self._delete_first(min(beyond_start(self.segments, self.log_start_offset), most))
        if self.config.deletes_old and expired < most:
            beyond = beyond_size(self.segments, self.config.retention_bytes, self.size)
            expired += self._delete_first(min(beyond, most - expired))
        if self.config.deletes_old and expired < most:
            beyond = beyond_time(self.segments, self.config.retention_ms, self._clock.now_ms())
            expired += self._delete_first(min(beyond, most - expired))
        return expired

    def _delete_first(self, wanted: int) -> int:
        """Deletes the first `wanted` segments, as far as the high watermark has passed them."""
        count = 0
        while count < wanted and end_of(self.segments, count, self.log_end_offset) <= self.high_watermark:
            count += 1
        if count == len(self.segments):
            if self.active.size == 0:
                count -= 1
            else:
                self.roll()
        if count == 0:
            return 0
        self.advance_log_start_offset(self.segments[count].base_offset)
        for _ in range(count):
            self._retire(self.segments[0])
            del self.segments[0]  # Not before: what the disk refuses to rename is tried again the next time.
        self._names_changed += 1
        return count

    def _retire(self, segment: Segment) -> None:
        segment.rename(file_names.DELETED)
        snapshot = self._snapshots.retire(segment.base_offset)
        self._retired.add(self._clock.now_ms() + self.config.file_delete_delay_ms, segment, snapshot)

    def remove_deleted(self, *, at_once: bool = False) -> bool:
        """Removes the files whose delay is over; returns whether some of those have to wait for other threads."""
        return self._retired.remove(None if at_once else self._clock.now_ms())

    # Replacing

    def start_replacement(self, base_offsets: Sequence[int]) -> Replacement | None:
        """Begins to swap the cleaned segment, which begins with the first of these, in for all of them.

        Afterwards `run` of what is returned, on any thread, and `finish_replacement`. None if the log is no longer what
        it was when it was cleaned, or the cleaned segment is not there, or not all of it; files with .cleaned are then
        the caller's to remove.
        """
        assert self._replacement is None, "one swap at a time"
        slot = slot_of(self.segments, base_offsets[0])
        old = self.segments[slot : slot + len(base_offsets)]
        is_as_cleaned = [segment.base_offset for segment in old] == list(base_offsets)
        if not is_as_cleaned or end_of(self.segments, slot + len(old) - 1, self.log_end_offset) > self.recovery_point:
            return None
        assert self.active not in old, "the active segment is never cleaned"
        new = self._new_segment(base_offsets[0], file_names.CLEANED)
        if not all(
            self._disk.exists(new.path(kind)) for kind in (file_names.LOG, file_names.INDEX, file_names.TIME_INDEX)
        ):
            return None
        new.rename(file_names.SWAP)
        self._replacement = Replacement(old, new, lambda: self._disk.sync_dir(self.directory), self.cut_count)
        return self._replacement

    def finish_replacement(self, replacement: Replacement) -> bool:
        """Puts the new segment where the old ones are, unless something has happened to those; says whether it did."""
        self._replacement = None
        old, new = replacement.old, replacement.new
        if replacement.truncations != self.cut_count:
            new.delete()  # Which the cut may have left half done.
            return False
        slot = slot_of(self.segments, old[0].base_offset)
        if self.segments[slot : slot + len(old)] != old:
            new.delete()
            return False
        due_ms = self._clock.now_ms() + self.config.file_delete_delay_ms
        for segment in old:
            segment.rename(file_names.DELETED)
            snapshot = None if segment is old[0] else self._snapshots.retire(segment.base_offset)
            self._retired.add(due_ms, segment, snapshot)
        new.rename("")
        self.segments[slot : slot + len(old)] = [new]
        self._names_changed += 1
        return True

    # Truncating

    def truncate_to(self, offset: int, *, durably: bool = True) -> bool:
        """Cuts away the batch that holds `offset` and all after it: a follower must agree with its leader.

        The recovery point is lowered first, so that a crash at any moment is followed by a scan of what is left.
        Segments go newest first, so that what is left is always one row.

        If it need not be durable when this returns, a flush has to follow (`has_unsynced_cut`): until it has ended a
        crash may bring back what was cut. Whatever is to be built on the cut before that, an append above all, syncs
        it by itself.
        """
        assert offset >= 0
        self._finish()
        if offset >= self.log_end_offset:
            self.epochs.truncate_from_end(self.log_end_offset)
            return False
        if offset < self.segments[0].base_offset:
            self.truncate_fully(offset, durably=durably)
            return True
        self._prepare_truncation(offset)
        self._do(lambda log: log._cut(offset), durably=durably)
        return True

    def _cut(self, offset: int) -> None:
        while self.active.base_offset > offset:
            self._retire(self.active)
            self.log_end_offset = self.segments.pop().base_offset
        try:
            self.active.truncate_to(offset)
        finally:
            self.log_end_offset = self.active.next_offset()
            self.high_watermark = min(self.high_watermark, self.log_end_offset)
        self._lower_to(self.log_end_offset)  # There may be offsets that are nobody's before the cut.
        self.epochs.truncate_from_end(self.log_end_offset)
        self._rebuild_producers()

    def truncate_fully(self, offset: int, *, durably: bool = True) -> None:
        """Empties the log, which begins anew at `offset`: a follower whose leader has nothing older."""
        self._finish()
        self._prepare_truncation(min(offset, self.log_start_offset))
        self._do(lambda log: log._begin_anew(offset), durably=durably)

    def _begin_anew(self, offset: int) -> None:
        for segment in reversed(self.segments):
            self._retire(segment)
        for old in self._snapshots.offsets:
            self._snapshots.remove(old)
        segment = self._new_segment(offset)
        segment.create()
        self.segments[:] = [segment]
        self.epochs.clear()
        self.producers.clear()
        self.log_start_offset = self.log_end_offset = offset
        self.recovery_point = min(self.recovery_point, offset)
        self.advance_high_watermark(offset)

    def _do(self, cut: "Callable[[PartitionLog], None]", *, durably: bool) -> None:
        """A cut that fails half-way is made again, durably, before anything else is done with the log."""

        def cut_and_sync(log: PartitionLog) -> None:
            cut(log)
            log._sync_cut()

        self._unfinished = cut_and_sync
        if durably:
            self._finish()
        else:
            cut(self)
            self._unfinished = PartitionLog._sync_cut
            self._names_changed += 1

    def _sync_cut(self) -> None:
        """What is appended next must never meet, after a crash, what was cut away."""
        self.active.sync(indexes=False)
        self._sync_names()
        self.epochs.flush()

    @property
    def has_unsynced_cut(self) -> bool:
        """The log was cut, and a crash could still undo that: it is for a flush to end."""
        return self._unfinished is PartitionLog._sync_cut

    def watch_cuts(self) -> int:
        """Returns `cut_count`, for one that begins to copy the log: `take_lowest_cut` tells of later cuts alone."""
        self._lowest_cut = None
        return self.cut_count

    def take_lowest_cut(self) -> int:
        """Where the log has been cut furthest back since this or `watch_cuts` was called: the copy is cut there too."""
        assert self._lowest_cut is not None, "the log was not cut"
        offset, self._lowest_cut = self._lowest_cut, None
        return offset

    def _prepare_truncation(self, offset: int) -> None:
        """From here on what is at `offset` and after it is as good as gone, for other threads."""
        self.cut_count += 1
        self._lowest_cut = offset if self._lowest_cut is None else min(self._lowest_cut, offset)
        if self._replacement is not None:
            self._replacement.new.delete()  # A crash would swap it in, with what is cut away now.
            self._replacement = None
        self._lower_to(offset)

    def _lower_to(self, offset: int) -> None:
        """What the checkpoints say of offsets that are about to go must not be there when they are gone.

        The log's own offsets are lowered first: another thread may write them down at any moment. If the disk fails,
        they are what they were, so that the next attempt knows that there is something to lower.
        """
        recovery_point, log_start_offset = self.recovery_point, self.log_start_offset
        if offset >= max(recovery_point, log_start_offset):
            return
        self.recovery_point, self.log_start_offset = min(recovery_point, offset), min(log_start_offset, offset)
        try:
            self._before_truncation(offset)
        except OSError:
            self.recovery_point, self.log_start_offset = recovery_point, log_start_offset
            raise

    def _rebuild_producers(self) -> None:
        silent_since_ms = self._clock.now_ms() - self._producer_expiration_ms
        self.producers = rebuild_producers(
            self._snapshots, self.segments, self.log_start_offset, self.log_end_offset, silent_since_ms
        )
        self.producers.on_high_watermark(self.high_watermark)

    # Keeping

    @property
    def has_unflushed_segments(self) -> bool:
        """Whether there is something to flush in segments that are not active any more."""
        return self.recovery_point < self.segments[-1].base_offset

    def start_flush(self) -> Flush:
        """What is to be synced for all that is in the log now to survive; `finish_flush` takes it when it has run."""
        return self._flush_of(self.segments[slot_of(self.segments, self.recovery_point) :], self.active)

    def start_flush_of_rolled(self) -> Flush:
        """The same for all but the active segment, which need not be synced before it is full."""
        assert self.has_unflushed_segments
        return self._flush_of(self.segments[slot_of(self.segments, self.recovery_point) : -1], None)

    def _flush_of(self, segments: list[Segment], active: Segment | None) -> Flush:
        if not self.has_unsynced_cut:  # Which the flush itself makes durable.
            self._finish()
        for segment in segments:
            if segment is not active:
                segment.write_indexes()
        for segment in segments:
            segment.in_use += 1
        return Flush(
            segments=segments,
            active=active,
            end_offset=self.log_end_offset if active is not None else self.active.base_offset,
            snapshots=self._snapshots,
            epochs=self.epochs,
            sync_names=self._sync_names,
            names_changed=self._names_changed if self._names_changed != self._names_synced else 0,
            truncations=self.cut_count,
        )

    def _sync_names(self) -> None:
        """Makes the names in the directory durable; the first time, the directory's own name and its topic too."""
        if not self._names_synced:
            if self._disk.exists(metadata := f"{self.directory}/{file_names.PARTITION_METADATA}"):
                sync_file(self._disk, metadata)
            self._disk.sync_dir(self.directory.rpartition("/")[0])
        self._disk.sync_dir(self.directory)

    def finish_flush(self, flush: Flush) -> int:
        """Moves the recovery point to where it now is true. Returns the offset before which records are on the disk.

        Which is later than the recovery point where indexes are not on the disk yet.
        """
        flush.end()
        self._names_synced = flush.names_changed or self._names_synced
        if flush.truncations != self.cut_count:
            return self.recovery_point  # What was synced may be gone, and other records in its place.
        if self.has_unsynced_cut and flush.active is not None:
            self._unfinished = None
        offset = flush.end_offset
        if flush.active not in (None, self.active) and offset >= self.active.base_offset:
            # Rolled meanwhile: the segment that was active then has been synced without its indexes.
            offset = flush.segments[-1].base_offset
        self.recovery_point = max(self.recovery_point, offset)
        return flush.end_offset

    def flush(self) -> None:
        """Returns once all that is in the log would survive a power cut."""
        flush = self.start_flush()
        try:
            flush.run()
        except OSError:
            flush.end()
            raise
        self.finish_flush(flush)

    @property
    def _state(self) -> tuple[int, int, int]:
        """What is another when anything has been appended, deleted, replaced or truncated since."""
        return self.log_end_offset, self._names_changed, self.cut_count

    @property
    def has_changed(self) -> bool:
        """Whether a clean stop has anything to make durable: see `ottla.log.flush`."""
        is_untouched = self._state == _NEVER_WRITTEN and not self._had_something
        is_as_before = is_untouched or self._state == self._state_as_closed
        has_epochs = self.epochs.are_written_before(self.log_end_offset)
        return not is_as_before or not has_epochs or self._unfinished is not None or self.active.has_failed_write

    def finish_writing(self) -> list[str]:
        """Writes what a clean stop leaves but was only in memory; returns the paths that are to be synced."""
        self._finish()
        self.active.become_inactive()
        self._snapshots.take(self.log_end_offset, self.producers, self.log_start_offset)
        unsynced = self._snapshots.unsynced_paths()
        for segment in self.segments[slot_of(self.segments, self.recovery_point) :]:
            unsynced += segment.write()
        unsynced.append(self.epochs.write_beside())
        if self._disk.exists(metadata := f"{self.directory}/{file_names.PARTITION_METADATA}"):
            unsynced.append(metadata)
        return unsynced

    def close(self) -> None:
        """Makes everything durable and leaves the directory as a clean stop does."""
        close_logs(self._disk, [self])

    def release(self) -> None:
        """Closes the files, and writes nothing: for a log whose disk has failed, or that is about to go."""
        for segment in self.segments:
            segment.release()
        self._retired.release()

    def delete(self) -> None:
        """Removes every file of the log, and its directory."""
        self.remove_deleted(at_once=True)
        self.release()
        for name in self._disk.list_dir(self.directory):
            self._disk.remove(f"{self.directory}/{name}")
        self._disk.remove_dir(self.directory)

    def moved(self, directory: str) -> None:
        """The directory has been renamed; open files stay open."""
        self.directory = directory
        self.epochs.moved(directory)
        self._snapshots.moved(directory)
        for segment in self.segments:
            segment.moved(directory)
