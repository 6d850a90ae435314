"""Finding a record by its time. It may take long: indexes of many segments are read, and a batch is decompressed.

So it is a step that any thread can take, beside appends, rolls and retention: what the log is made of is noted when the
lookup is started, and nothing of that is changed here. The log's owner starts it and is told when it is over
(`ReadableLog.start_time_lookup`, `end`). A truncation meanwhile can make it fail, or find what is gone: its owner asks
whether the partition still leads.
"""

from collections.abc import Sequence

from ottla.log.segment import Segment


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
