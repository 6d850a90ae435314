"""Opening a partition's directory: from whatever a stop, clean or not, has left, to a log that is whole.

Theory of operation. After a clean stop everything is as it was closed, and is taken as it is. Otherwise:

1. Files on their way out (`.deleted`) and copies never finished (`.cleaned`) are removed; swaps that had begun
   (`.swap`) are carried through, because their content was durable before the first of them got its name.
2. Segments that end before the recovery point are trusted: they were synced, indexes included. All later ones are
   scanned batch by batch (length, checksum, rising offsets), their indexes, leader epochs and producer state rebuilt.
   The first thing that is wrong ends the log: the file is cut there, and later segments are set aside under names with
   .cut, newest first, so that a crash during recovery leaves nothing that recovery could not have met. `warnings` names
   them. What is cut off before the recovery point was durable, and is no torn end but damage: a copy of that file is
   kept under such a name too, since sound batches may follow.
3. A gap between two such segments means that the end of the first one was lost, unless the topic is compacted, where
   gaps are normal. Gaps before the recovery point are what an earlier compaction has left.

An index that is missing or damaged is rebuilt for its segment alone, after any kind of stop (`index_rebuild`); the
newest segment is scanned instead. Leader epochs whose file is damaged are found again in the batches.

Nothing here advances the recovery point: only a flush does.
"""

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress

from ottla.base.ids import TopicPartition
from ottla.base.ports import Clock, Disk
from ottla.log import file_names
from ottla.log.errors import CorruptFile
from ottla.log.index_rebuild import rebuild_indexes, remove_damaged
from ottla.log.leader_epochs import LeaderEpochs
from ottla.log.log_config import LogConfig
from ottla.log.producer_recovery import note_written, producers_before, rebuild_producers
from ottla.log.producer_snapshots import ProducerSnapshots
from ottla.log.producer_state import ProducerState
from ottla.log.scan import scan_batches, scan_headers
from ottla.log.segment import Segment
from ottla.records.batch import BatchHeader, CorruptBatch, checksum_matches

_NEEDED_INDEXES = (file_names.INDEX, file_names.TIME_INDEX)


class Recovery:
    """One opening of one directory. `load` leaves its findings in the attributes."""

    def __init__(
        self,
        disk: Disk,
        directory: str,
        partition: TopicPartition,
        config: LogConfig,
        clock: Clock,
        *,
        log_start_offset: int,
        recovery_point: int,
        clean: bool,
        producer_expiration_ms: int,
        progress: Callable[[Segment], None] | None = None,
    ) -> None:
        self._disk = disk
        self._directory = directory
        self._partition = partition
        self._config = config
        self._clock = clock
        self._clean = clean
        self._producer_expiration_ms = producer_expiration_ms
        self._progress = progress
        self.log_start_offset = log_start_offset
        self.recovery_point = recovery_point
        self.log_end_offset = log_start_offset
        self.segments: list[Segment] = []
        # Whether all of it is as a clean stop left it: durable, and nothing had to be repaired.
        self.is_as_closed = False
        # Whether there was anything in the files: what is cut out of them may come back until they are synced.
        self.had_something = False
        # What must be synced before anything is appended.
        self.unsynced: list[str] = []
        self.warnings: list[str] = []

    def load(self) -> None:
        found = self._finish_swaps()
        self.epochs, epochs_are_lost = self._read_epochs()
        self.snapshots = ProducerSnapshots(self._disk, self._directory, found)
        self.state = ProducerState()
        damaged = self._open_segments(set(found))
        opened, trusted = len(self.segments), self._trusted_segments(damaged)
        # Files that are empty now may have been emptied by one who was killed, and come back full after a power cut.
        self.had_something = (not self._clean and opened > 0) or any(
            segment.size or segment.offset_index.size or segment.time_index.size for segment in self.segments
        )
        for slot in range(trusted):
            if lost := damaged.get(self.segments[slot].base_offset):
                self._rebuild_indexes(slot, lost)
        if epochs_are_lost:
            self._rebuild_epochs(trusted)
        else:
            self._find_first_epochs(trusted)
        self._load_producers(trusted)
        self._recover_from(trusted)
        self.is_as_closed = self._clean and opened > 0 and not damaged
        self._settle_end()
        self.epochs.truncate_from_end(self.log_end_offset)
        self.epochs.truncate_from_start(self.log_start_offset)
        self.snapshots.drop_strays([segment.base_offset for segment in self.segments])
        if not self._clean or damaged:
            # Nothing that has been cut away, here or by who was killed doing it, may come back behind new batches.
            self.unsynced = [self.segments[-1].path(file_names.LOG), self._directory]
        for segment in self.segments:
            segment.close()

    def release(self) -> None:
        """Closes what an opening that failed has opened."""
        for segment in self.segments:
            segment.release()

    def _read_epochs(self) -> tuple[LeaderEpochs, bool]:
        try:
            return LeaderEpochs(self._disk, self._directory), False
        except CorruptFile as problem:
            self.warnings.append(f"{problem}; found again in the batches")
            return LeaderEpochs(self._disk, self._directory, is_lost=True), True

    def _rebuild_epochs(self, trusted: int) -> None:
        """Of the segments that are not scanned anyway."""
        for segment in self.segments[:trusted]:
            for _, header in scan_headers(segment.file, 0, segment.size):
                if header.partition_leader_epoch > self.epochs.latest:
                    self.epochs.assign(header.partition_leader_epoch, header.base_offset)

    def _find_first_epochs(self, trusted: int) -> None:
        """Records were deleted, and a crash has brought them back: their log start was not written down yet, but the
        file had forgotten the epochs before it. They are in the batches.
        """
        later = self.epochs.entries
        if not later or later[0][1] <= self.log_start_offset:
            return
        self.epochs.clear()
        for segment in self.segments[:trusted]:
            for _, header in scan_headers(segment.file, 0, segment.size):
                if header.base_offset >= later[0][1]:
                    break
                if header.partition_leader_epoch > self.epochs.latest:
                    self.epochs.assign(header.partition_leader_epoch, header.base_offset)
            else:
                continue
            break
        for epoch, start_offset in later:
            self.epochs.assign(epoch, start_offset)

    # 1. What was under way

    def _finish_swaps(self) -> Sequence[str]:
        """Returns the names in the directory afterwards."""
        found = self._disk.list_dir(self._directory)
        unfinished = min((_base(name) for name in found if name.endswith(file_names.CLEANED)), default=None)
        swaps: list[str] = []
        removed = False
        for name in found:
            leaving = name.endswith(file_names.DELETED) and ".checkpoint" not in name
            stale = name.endswith(file_names.SWAP) and unfinished is not None and _base(name) >= unfinished
            if leaving or stale or name.endswith(file_names.CLEANED):
                self._disk.remove(f"{self._directory}/{name}")
                removed = True
            elif name.endswith(file_names.SWAP):
                swaps.append(name)
        if swaps:
            self._drop_replaced(swaps)
            for name in swaps:
                path = f"{self._directory}/{name}"
                self._disk.rename(path, path.removesuffix(file_names.SWAP))
            self._disk.sync_dir(self._directory)
        return self._disk.list_dir(self._directory) if swaps or removed else found

    def _drop_replaced(self, swaps: list[str]) -> None:
        """Removes the segments that the swapped-in ones stand for."""
        incoming = [
            self._segment(_base(name), suffix=file_names.SWAP)
            for name in swaps
            if name.endswith(file_names.LOG + file_names.SWAP)
        ]
        if not incoming:
            return
        low = min(segment.base_offset for segment in incoming)
        high = max(segment.next_offset() for segment in incoming)
        for segment in incoming:
            segment.close()
        for name in self._disk.list_dir(self._directory):
            base = file_names.leading_offset(name)
            if (
                base is not None
                and low <= base < high
                and not name.endswith(file_names.SWAP)
                and file_names.CUT not in name
            ):
                self._disk.remove(f"{self._directory}/{name}")

    # 2. The segments

    def _open_segments(self, found: set[str]) -> dict[int, set[str]]:
        """Opens every segment; returns which indexes, by the segment's base offset, are missing or cannot be read."""
        bases = sorted(base for name in found if (base := file_names.offset_of(name, file_names.LOG)) is not None)
        for name in sorted(found):
            base = file_names.leading_offset(name)
            if base is not None and base not in bases and name[20:] in file_names.SEGMENT_SUFFIXES:
                self._disk.remove(f"{self._directory}/{name}")
        damaged: dict[int, set[str]] = {}
        for base in bases:
            lost = {kind for kind in _NEEDED_INDEXES if file_names.file_name(base, kind) not in found}
            self.segments.append(self._sound_segment(base, lost))
            if lost:
                damaged[base] = lost
        self._drop_unfinished_roll()
        if self.segments:
            self.log_start_offset = max(self.log_start_offset, bases[0])
        return damaged

    def _sound_segment(self, base: int, lost: set[str]) -> Segment:
        """Opens a segment; indexes that cannot be what was written are removed, and noted as lost."""
        segment = None
        try:
            segment = self._segment(base)
            segment.transaction_index.check(base)
            return segment
        except CorruptFile:
            if segment:
                segment.release()
            lost |= remove_damaged(self._disk, self._directory, base)
            return self._segment(base)
        except OSError:
            if segment:
                segment.release()
            raise

    def _drop_unfinished_roll(self) -> None:
        """A roll that failed can leave an empty segment behind, while the one before it continued."""
        while len(self.segments) > 1 and self.segments[-1].size == 0:
            # One whose end cannot be determined yet is recovered, and an empty segment after it is no loss.
            with suppress(CorruptBatch, CorruptFile):
                if self.segments[-2].next_offset() <= self.segments[-1].base_offset:
                    return
            self.segments.pop().delete()

    def _segment(self, base: int, suffix: str = "") -> Segment:
        return Segment(
            self._disk,
            self._directory,
            base,
            index_interval_bytes=self._config.index_interval_bytes,
            created_ms=self._clock.now_ms(),
            suffix=suffix,
        )

    def _trusted_segments(self, damaged: Collection[int]) -> int:
        """How many segments, from the oldest, can be taken as they are."""
        bases = [segment.base_offset for segment in self.segments]
        if not self._clean:
            return max(sum(base <= self.recovery_point for base in bases) - 1, 0)
        return len(bases) - 1 if bases and bases[-1] in damaged else len(bases)

    def _rebuild_indexes(self, slot: int, lost: set[str]) -> None:
        """Of a trusted segment, from its batches."""
        segment, earlier = self.segments[slot], self.segments[:slot]
        base = segment.base_offset
        end = rebuild_indexes(
            self._disk,
            segment,
            self._segment(base, file_names.CLEANED),
            lost,
            lambda: producers_before(self.snapshots, earlier, self.log_start_offset, base),
        )
        segment.close()
        self.segments[slot] = self._segment(base)
        files = ", ".join(sorted(file_names.file_name(base, kind) for kind in lost))
        self.warnings.append(f"{self._directory}: {files} was missing or damaged, and has been rebuilt")
        if end < segment.size:
            self.warnings.append(f"{segment.path(file_names.LOG)} cannot be read from byte {end} on")

    def _load_producers(self, trusted: int) -> None:
        """The producer state as of the end of the trusted segments."""
        if not self.segments or (self._clean and not self.snapshots.offsets):
            return  # Every clean stop leaves a snapshot; none means that there never was a producer to remember.
        all_trusted = trusted == len(self.segments)
        end = self.segments[-1].next_offset() if all_trusted else self.segments[trusted].base_offset
        silent_since_ms = self._clock.now_ms() - self._producer_expiration_ms
        self.state = rebuild_producers(
            self.snapshots, self.segments[:trusted], self.log_start_offset, end, silent_since_ms
        )

    def _recover_from(self, trusted: int) -> None:
        expected = self.segments[trusted].base_offset if trusted < len(self.segments) else 0
        for slot in range(trusted, len(self.segments)):
            segment = self.segments[slot]
            overlap = segment.base_offset < expected
            gap = segment.base_offset > expected and not self._config.is_compacted
            if overlap or gap:
                self._cut_off(slot, f"the segment before {segment.base_offset} ends at offset {expected}")
                return
            if self._progress:
                self._progress(segment)
            self.snapshots.take(segment.base_offset, self.state, self.log_start_offset)
            valid, expected = self._recover_segment(segment)
            lost = segment.size - valid
            kept = segment.copy_aside() if lost and expected < self.recovery_point else ""
            segment.cut(valid)
            if lost:
                path = segment.path(file_names.LOG)
                self.warnings.append(
                    f"{path}: {lost} bytes from byte {valid} on were not a whole batch, and are truncated"
                    + (f"; they were durable, so the file as it was is kept as {kept}" if kept else "")
                )
                self._cut_off(slot + 1, f"the one before them ends at offset {expected}")
                return

    def _recover_segment(self, segment: Segment) -> tuple[int, int]:
        """Rebuilds what is derived from the batches; returns where they stop being sound, and the next offset."""
        segment.reset_indexes()
        valid, next_offset = 0, segment.base_offset
        try:
            for position, header, data in scan_batches(segment.file, 0, segment.size):
                sound = header.base_offset >= next_offset and segment.fits(header.last_offset)
                if not sound or not checksum_matches(data, 0, header):
                    break
                segment.index(header, position)
                self._note_epoch(header)
                if header.producer_id >= 0:
                    completed = note_written(self.state, header, segment, position)
                    if completed and completed.aborted:
                        segment.transaction_index.append(self.state.aborted(completed))
                valid, next_offset = position + header.size, header.next_offset
        except CorruptBatch:
            pass  # The end of what was written.
        segment.become_inactive()
        return valid, next_offset

    def _note_epoch(self, header: BatchHeader) -> None:
        """The file of leader epochs has no checksum: where it contradicts the batches, they are right."""
        epoch, first = header.partition_leader_epoch, header.base_offset
        known, known_last = self.epochs.epoch_at(first), self.epochs.epoch_at(header.last_offset)
        if epoch < 0 or known == known_last == epoch:
            return
        if max(known, known_last) > epoch:
            path = f"{self._directory}/{file_names.LEADER_EPOCHS}"
            self.warnings.append(
                f"{path}: it has epoch {max(known, known_last)} at offset {first}, where the log has epoch {epoch}; "
                "found again in the batches"
            )
        self.epochs.truncate_from_end(first + 1 if known == epoch else first)
        if self.epochs.latest != epoch:
            self.epochs.assign(epoch, first)

    def _cut_off(self, first: int, reason: str) -> None:
        """The log ends before the segment in slot `first`: that one and those after it are set aside."""
        kept: list[str] = []
        while len(self.segments) > first:
            segment = self.segments.pop()
            self.snapshots.remove(segment.base_offset)
            if segment.size:
                kept.append(segment.set_aside())
            else:
                segment.delete()
        if kept:
            files = ", ".join(path.rpartition("/")[2] for path in reversed(kept))
            self.warnings.append(
                f"{self._directory}: segments that do not follow on the log are not part of it any more ({reason}); "
                f"kept, for a person to look at, as {files}"
            )

    # 3. The ends

    def _settle_end(self) -> None:
        if self.segments:
            self.log_end_offset = self.segments[-1].next_offset()
            if self.log_end_offset < self.log_start_offset:
                self._drop_all()
                self.epochs.clear()
                self.state.clear()
        if not self.segments:
            self.log_end_offset = self.log_start_offset
            segment = self._segment(self.log_start_offset)
            segment.create()
            self.segments.append(segment)
            self.is_as_closed = False
        self.recovery_point = self.log_end_offset if self._clean else min(self.recovery_point, self.log_end_offset)

    def _drop_all(self) -> None:
        """All that is left was deleted already: the log begins after it."""
        while self.segments:
            segment = self.segments.pop()
            self.snapshots.remove(segment.base_offset)
            segment.delete()


def _base(name: str) -> int:
    base = file_names.leading_offset(name)
    if base is None:
        raise CorruptFile(f"{name}: not the name of a segment's file")
    return base
