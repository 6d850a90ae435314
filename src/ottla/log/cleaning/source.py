"""Reading what is to be cleaned. Damage must not be copied: the copy would get a checksum that is right."""

from ottla.log.index import MAX_RELATIVE_OFFSET
from ottla.log.scan import batch_size
from ottla.log.segment import Segment
from ottla.records.batch import MAGIC_POSITION, BatchHeader, CorruptBatch, checksum_matches, read_header


class SegmentReader:
    """Goes through the batches of a segment: one at a time with `take`, or as many of `window` as one likes.

    Views are of a buffer that is used again: a caller that keeps them copies them.
    """

    def __init__(self, segment: Segment, buffer_bytes: int, position: int = 0) -> None:
        self._segment = segment
        self._buffer = bytearray(buffer_bytes)
        self._start = self._filled = 0
        self._position = self._start = position
        self.next_offset = segment.base_offset
        """The least that the offset of the next batch can be."""
        self.limit = segment.base_offset + MAX_RELATIVE_OFFSET
        """The most that an offset can be."""

    @property
    def is_at_end(self) -> bool:
        return self._position >= self._segment.size

    def window(self) -> memoryview:
        """What has been read from where the reader is: a whole batch at least."""
        at = self._position - self._start
        if self._filled - at <= MAGIC_POSITION:
            at = self._fill()
        size = batch_size(self._buffer, at, self._position, self._segment.size)
        if at + size > self._filled:
            if size > len(self._buffer):
                self._buffer = bytearray(size)
            at = self._fill()
            if size > self._filled:
                raise CorruptBatch(f"{self._segment}: the batch at {self._position} is cut off")
        return memoryview(self._buffer)[at : self._filled]

    def skip(self, size: int, next_offset: int) -> None:
        """Whole batches, which are sound, have been dealt with."""
        self._position += size
        self.next_offset = next_offset

    def take(self) -> tuple[BatchHeader, memoryview]:
        """The next batch; `CorruptBatch` if it is not what was written."""
        window, position = self.window(), self._position
        header = read_header(window)
        data = window[: header.size]
        if not self.next_offset <= header.base_offset <= header.last_offset <= self.limit:
            offset = header.base_offset
            raise CorruptBatch(f"{self._segment}: the batch at {position} has an offset that cannot be: {offset}")
        if not checksum_matches(data, 0, header):
            raise CorruptBatch(f"{self._segment}: the batch at {position} does not match its checksum")
        self.skip(header.size, header.next_offset)
        return header, data

    def _fill(self) -> int:
        """Reads as much as there is room for; returns where in the buffer the reader is now."""
        self._start = self._position
        left = self._segment.size - self._position
        self._filled = self._segment.file.read_into(self._position, memoryview(self._buffer)[:left])
        return 0
