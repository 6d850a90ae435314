"""Buffers of large frames that were read up, kept for the next ones.

Fresh memory for a frame of some megabytes costs more than receiving into it: the system hands it out page by page, and
clears each. A buffer is taken back only when nobody looks into it any more, which Python can tell: a `bytearray` of
which a view is alive cannot be shortened.
"""

from typing import Final

from ottla.base.lent import give_back

LEAST_BYTES: Final = 128 << 10
"""Smaller frames are not worth it."""
_STEP_BYTES: Final = 64 << 10
_MOST_BUFFERS: Final = 4


class SpareBuffers:
    """One client's, of at most so many bytes together."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._buffers: list[bytearray] = []

    @property
    def kept_bytes(self) -> int:
        return sum(map(len, self._buffers))

    def take(self, size: int) -> bytearray:
        """One with room for so many bytes, whatever is in it.

        The one that was given last, because the processor may still have it at hand. A new one has some room to spare,
        as the next frame may be a little larger.
        """
        for index in range(len(self._buffers) - 1, -1, -1):
            if len(self._buffers[index]) >= size:
                return self._buffers.pop(index)
        return bytearray((size // _STEP_BYTES + 2) * _STEP_BYTES)

    def give(self, buffer: bytearray) -> bool:
        """Returns whether it is kept. One that is still in use, or that there is no room for, is not."""
        if len(buffer) < LEAST_BYTES:
            return False
        try:
            del buffer[-1:]
        except BufferError:
            return False
        while self._buffers and (
            len(self._buffers) == _MOST_BUFFERS or self.kept_bytes + len(buffer) > self._most_bytes
        ):
            smallest = min(self._buffers, key=len)
            if len(smallest) >= len(buffer):
                return False
            self._buffers.remove(smallest)
        if len(buffer) > self._most_bytes:
            return False
        give_back(buffer, len(buffer))
        self._buffers.append(buffer)
        return True
