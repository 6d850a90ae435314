"""Buffers of large frames that were read up, kept for the next ones.

Fresh memory for a frame of some megabytes costs more than receiving into it: the system hands it out page by page, and
clears each. A buffer is taken back only when nobody looks into it any more, which Python can tell: a `bytearray` of
which a view is alive cannot be shortened.
"""

from typing import Final

LEAST_BYTES: Final = 128 << 10
"""Smaller frames are not worth it."""


class SpareBuffers:
    """One client's, of at most so many bytes together."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._buffers: list[bytearray] = []

    @property
    def kept_bytes(self) -> int:
        return sum(map(len, self._buffers))

    def take(self, size: int) -> bytearray | None:
        """One with room for so many bytes, whatever is in it; None if there is none."""
        for index, buffer in enumerate(self._buffers):
            if len(buffer) >= size:
                del self._buffers[index]
                return buffer
        return None

    def give(self, buffer: bytearray) -> bool:
        """Returns whether it is kept. One that is still in use, or that there is no room for, is not."""
        if len(buffer) < LEAST_BYTES:
            return False
        try:
            del buffer[-1:]
        except BufferError:
            return False
        while self._buffers and self.kept_bytes + len(buffer) > self._most_bytes:
            smallest = min(self._buffers, key=len)
            if len(smallest) >= len(buffer):
                return False
            self._buffers.remove(smallest)
        if len(buffer) > self._most_bytes:
            return False
        self._buffers.append(buffer)
        return True
