"""Which of the oldest segments are no longer kept. Each rule answers how many, counted from the oldest."""

from collections.abc import Sequence
from itertools import takewhile

from ottla.log.segment import Segment


def beyond_start(segments: Sequence[Segment], log_start_offset: int) -> int:
    """Segments that end before the log start offset."""
    return sum(1 for _ in takewhile(lambda following: following.base_offset <= log_start_offset, segments[1:]))


def beyond_size(segments: Sequence[Segment], retention_bytes: int, size: int) -> int:
    """Segments that can go with `retention.bytes` still kept; a segment is not cut to fit."""
    if retention_bytes < 0:
        return 0
    surplus = size - retention_bytes
    count = 0
    for segment in segments:
        surplus -= segment.size
        if surplus < 0:
            break
        count += 1
    return count


def beyond_time(segments: Sequence[Segment], retention_ms: int, now_ms: int) -> int:
    """Segments whose newest record is older than `retention.ms`."""
    if retention_ms < 0:
        return 0
    return sum(1 for _ in takewhile(lambda segment: now_ms - segment.largest_timestamp() > retention_ms, segments))
