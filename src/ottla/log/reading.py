"""Finding records across a row of segments: by offset, and the aborted ones among them.

A segment ends where the next one begins, or, for compacted topics, some way before: offsets in between are nobody's,
and a reader who asks for one is given what comes next.
"""

from bisect import bisect_right
from collections.abc import Sequence

from ottla.log.outcomes import FileSlice
from ottla.log.segment import Segment
from ottla.log.transaction_index import AbortedTransaction

NOTHING = FileSlice(None, 0, 0)


def slot_of(segments: Sequence[Segment], offset: int) -> int:
    """Which segment would hold `offset`."""
    return max(bisect_right(segments, offset, key=_base_offset) - 1, 0)


def end_of(segments: Sequence[Segment], slot: int, log_end_offset: int) -> int:
    """The offset before which the segment ends."""
    return segments[slot + 1].base_offset if slot + 1 < len(segments) else log_end_offset


def read(
    segments: Sequence[Segment],
    log_end_offset: int,
    offset: int,
    max_bytes: int,
    upper_bound: int,
    *,
    min_one_batch: bool,
) -> FileSlice:
    """See `PartitionLog.read`."""
    for slot in range(slot_of(segments, offset), len(segments)):
        segment = segments[slot]
        if max(offset, segment.base_offset) >= upper_bound:
            break
        found = segment.find(offset)
        if found:
            whole = end_of(segments, slot, log_end_offset) <= upper_bound
            end = segment.size if whole else segment.position_of_end(upper_bound)
            wanted = max(max_bytes, found.header.size) if min_one_batch else max_bytes
            return segment.slice(found, max(min(wanted, end - found.position), 0))
    return NOTHING


def offset_past(segments: Sequence[Segment], log_end_offset: int, offset: int, part: FileSlice) -> int:
    """An offset that is after all in `part`, which was read from `offset` on, and mostly not far after it."""
    for slot in range(slot_of(segments, offset), len(segments)):
        segment = segments[slot]
        if segment.file is part.file:
            found = segment.offset_index.offset_past(part.position + part.size)
            return end_of(segments, slot, log_end_offset) if found is None else found
    return log_end_offset


def aborted_transactions(segments: Sequence[Segment], from_offset: int, upper_bound: int) -> list[AbortedTransaction]:
    found: list[AbortedTransaction] = []
    for segment in segments[slot_of(segments, from_offset) :]:
        some, complete = segment.transaction_index.collect(from_offset, upper_bound)
        found += some
        if complete:
            break
    return found


def _base_offset(segment: Segment) -> int:
    return segment.base_offset


# Finding a record by its time. It may take long: indexes of many segments are read, and a batch is decompressed.
#
# So it is a step that any thread can take, beside appends, rolls and retention: what the log is made of is noted when
# the lookup is started, and nothing of that is changed here. The log's owner starts it and learns when it is over
# (`ReadableLog.start_time_lookup`, `end`). A truncation meanwhile can make it fail, or find what is gone: its owner
# asks whether the partition still leads.


class TimeLookup:
    """Of the first record at or after `timestamp`, or with None of the first that has the largest one (KIP-734)."""

    __slots__ = ("_from_offset", "_segments", "_timestamp")

    def __init__(self, segments: Sequence[Segment], from_offset: int, timestamp: int | None) -> None:
        self._segments = [(segment, segment.size, segment.known_max_timestamp) for segment in segments]
        self._from_offset = from_offset
        self._timestamp = timestamp
        for segment in segments:
            segment.in_use += 1

    def run(self) -> tuple[int, int] | None:
        """Timestamp and offset of the record."""
        return self._latest() if self._timestamp is None else self._first_at(self._timestamp)

    def end(self) -> None:
        """It has run, or failed: the log's owner lets go of the segments."""
        for segment, _, _ in self._segments:
            segment.in_use -= 1

    def _first_at(self, timestamp: int) -> tuple[int, int] | None:
        for segment, size, known in self._segments:
            if segment.newest_time(known) >= timestamp:
                return segment.find_timestamp(timestamp, self._from_offset, size)
        return None

    def _latest(self) -> tuple[int, int] | None:
        timestamps = [(known or segment.time_index.last_entry)[0] for segment, _, known in self._segments]
        timestamp = max(timestamps)
        segment, size, _ = self._segments[timestamps.index(timestamp)]
        return segment.find_timestamp(timestamp, self._from_offset, size) if timestamp >= 0 else None
