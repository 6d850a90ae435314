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
