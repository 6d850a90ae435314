"""What a log must hold after all that has been done to it, by someone who took notes.

What is known is of three kinds. `written` is what the log holds. `doubtful` is what it may hold instead: batches that
the disk refused, but perhaps not wholly, and batches that a truncation has cut away, but perhaps not yet durably. Up to
`kept` there must be no doubt at the next start: all of that was flushed, or, if only the process died, acknowledged.
"""

from collections.abc import Iterable

from ottla.log.partition_log import PartitionLog
from ottla.records.batch import batches, checksum_matches
from tests.property.log.sound_logs import batches_of, check_sound


class LogModel:
    def __init__(self, *, may_leap: bool) -> None:
        """`may_leap`: the topic is compacted, so that some offsets are nobody's."""
        self.may_leap = may_leap
        # Batches by their base offset.
        self.written: dict[int, bytes] = {}
        self.doubtful: dict[int, set[bytes]] = {}
        # What was cut away and a power cut could still bring back.
        self.cut: dict[int, set[bytes]] = {}
        self.flushed = self.acknowledged = self.kept = 0
        self.log_start_offset = 0
        # Records before this were deleted, and what was known about them forgotten. A crash may bring the records back.
        self.deleted_before = 0
        # Whether nothing can be lost any more, or come back, of what the next start finds.
        self.is_settled = True

    # What has been done

    def on_appending(self, appending: Iterable[bytearray]) -> None:
        for batch in appending:
            [(_, header)] = batches(batch)
            self.written[header.base_offset] = bytes(batch)

    def on_appended(self, end: int) -> None:
        self.acknowledged = end

    def on_refused(self, end: int) -> None:
        """What was appended at `end` has not been, as far as the log tells."""
        self._doubt(end)

    def on_flushed(self) -> None:
        """A batch that was refused as the last one, but had been written, may still be there behind the end."""
        self.on_flushed_before(self.acknowledged)

    def on_flushed_before(self, offset: int) -> None:
        self.flushed = max(self.flushed, offset)
        self.doubtful = {base: data for base, data in self.doubtful.items() if base >= self.flushed}

    def on_truncating(self, offset: int) -> None:
        self._doubt(offset)
        last = max(self.written, default=None)
        end = next(header.next_offset for _, header in batches(self.written[last])) if last is not None else 0
        self.flushed = min(self.flushed, end)
        self.acknowledged = min(self.acknowledged, end)

    def on_truncated(self, offset: int, end: int, *, durably: bool) -> None:
        self.acknowledged = end
        if not durably:
            self.cut = {base: data for base, data in self.doubtful.items() if base >= offset}
        self.doubtful = {base: data for base, data in self.doubtful.items() if base < offset}

    def on_beginning_anew(self, offset: int) -> None:
        self.on_truncating(0)
        self.on_deleting(max(self.log_start_offset, offset))

    def on_begun_anew(self, offset: int, *, durably: bool) -> None:
        if durably:
            self.flushed = self.deleted_before = offset
        else:
            self.cut = self.doubtful  # And what was forgotten of records before `deleted_before` stays forgotten.
        self.doubtful = {}
        self.acknowledged = self.log_start_offset = offset

    def on_cut_synced(self) -> None:
        """What was cut away cannot come back any more."""
        self.cut = {}

    def on_deleting(self, log_start_offset: int) -> None:
        self.log_start_offset = log_start_offset
        self.deleted_before = max(self.deleted_before, log_start_offset)

    def on_power_cut(self) -> None:
        self.kept = self.acknowledged = self.flushed
        self._doubt_cut()
        self.is_settled = True

    def on_process_gone(self) -> None:
        """However it went: what it had written is there, durable or not."""
        self.kept = self.acknowledged
        self._doubt_cut()
        self.is_settled = False

    def _doubt_cut(self) -> None:
        for base, data in self.cut.items():
            self.doubtful.setdefault(base, set()).update(data)
        self.cut = {}

    def _doubt(self, offset: int) -> None:
        for base in [base for base in self.written if base >= offset]:
            self.doubtful.setdefault(base, set()).add(self.written.pop(base))

    # What is found

    def meet(self, log: PartitionLog) -> None:
        """Checks a log that has just been opened. From now on it holds what was found in it."""
        found = self._check(log)
        first = log.segments[0].base_offset
        if self.is_settled:
            self.written, self.doubtful = found, {}
        else:
            self.written = {base: data for base, data in self.written.items() if base < first} | found
        self.acknowledged = log.log_end_offset
        self.flushed = min(self.flushed, self.acknowledged)
        self.log_start_offset = log.log_start_offset

    def _check(self, log: PartitionLog) -> dict[int, bytes]:
        offset = log.segments[0].base_offset
        assert log.log_end_offset >= self.kept, "records are gone that were to be kept"
        assert offset <= log.log_start_offset <= self.log_start_offset, "nobody asked to delete so much"
        found: dict[int, bytes] = {}
        for segment in log.segments:
            self._check_leap(offset, segment.base_offset, at_edge=True)
            offset = segment.base_offset
            for position, header in batches_of(segment):
                data = segment.file.read_at(position, header.size)
                assert checksum_matches(data, 0, header)
                is_written = data == self.written.get(header.base_offset)
                is_possible = header.base_offset >= self.kept and data in self.doubtful.get(header.base_offset, ())
                assert is_written or is_possible, "not what was written"
                at_edge = offset == segment.base_offset or not is_written
                self._check_leap(offset, header.base_offset, at_edge=at_edge)
                found[header.base_offset] = data
                offset = header.next_offset
        assert offset == log.log_end_offset
        check_sound(log, self.deleted_before)
        return found

    def _check_leap(self, end: int, base: int, *, at_edge: bool) -> None:
        """A hole in the offsets is one of a compacted topic, with nothing in it that was written.

        But what was not to be kept may be missing `at_edge`: a power cut can take the end of a segment and leave the
        next, which is a hole like any other to a compacted topic, or leave a refused batch where another came to stand.
        """
        if base == end:
            return
        assert self.may_leap, "a hole"
        assert base > end, "a repetition"
        missing = min((offset for offset in self.written if end <= offset < base), default=base)
        assert missing == base or (at_edge and missing >= self.kept), "a hole where something was written"
