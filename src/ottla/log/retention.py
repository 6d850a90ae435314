"""Which of the oldest segments are no longer kept. Each rule answers how many, counted from the oldest."""

from collections.abc import Sequence
from contextlib import suppress
from itertools import takewhile

from ottla.base.ports import Disk
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


# Files that are no longer part of the log and wait for their removal (`file.delete.delay.ms`).
#
# They carry the suffix .deleted. A crash while they wait is nothing special: opening the log removes them.


class RetiredFiles:
    """Segments that have left, each with its producer snapshot if it had one."""

    __slots__ = ("_disk", "_waiting")

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._waiting: list[tuple[int, Segment, str | None]] = []

    def add(self, due_ms: int, segment: Segment, snapshot_path: str | None) -> None:
        segment.has_left = True
        self._waiting.append((due_ms, segment, snapshot_path))

    def release(self) -> None:
        """Closes them, for a directory that is about to go or has failed. What is in it is found at the next start."""
        for _, segment, _ in self._waiting:
            segment.release()
        self._waiting.clear()

    def remove(self, now_ms: int | None) -> bool:
        """Removes those that are due, or with None all. If the disk fails, the rest is tried again the next time.

        Returns whether some are due, and in use by another thread: it is to be called again. A worker may call it while
        the loop calls `release`, because the directory has failed.
        """
        due = [entry for entry in self._waiting if now_ms is None or entry[0] <= now_ms]
        is_any_in_use = False
        for entry in due:
            _, segment, snapshot_path = entry
            if segment.in_use and now_ms is not None:
                is_any_in_use = True
                continue
            segment.delete()
            if snapshot_path and self._disk.exists(snapshot_path):
                self._disk.remove(snapshot_path)
            with suppress(ValueError):  # The loop has released them all meanwhile.
                self._waiting.remove(entry)
        return is_any_in_use
