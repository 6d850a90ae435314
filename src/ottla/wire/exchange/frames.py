"""Bytes as they arrive to whole frames.

Theory of operation. Bytes are received into a scratch buffer that all connections may share. Frames that are whole in
it are handed on where they lie; only the beginning of one that is still arriving is copied, into a buffer of its own,
which grows with what has arrived and not with what was announced. So ten thousand idle connections, or a thousand that
announce two gigabytes and send nothing, cost next to nothing. The rest of a frame that has begun is received straight
into its buffer, and no further than its end.

The taker of a frame may ask for no more: what was received beyond it waits, and comes first when it is asked for.
"""

from collections.abc import Callable
from struct import Struct
from typing import Final

from ottla.base.errors import RemoteProtocolError
from ottla.base.lent import Lent, Seen, give_back, lend

# Buffers of large frames that were read up, kept for the next ones.
#
# Fresh memory for a frame of some megabytes costs more than receiving into it: the system hands it out page by page,
# and clears each. A buffer is taken back only when nobody looks into it any more, which Python can tell: a `bytearray`
# of which a view is alive cannot be shortened.

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


_unpack_size = Struct(">i").unpack_from
_SIZE = 4
# So many are looked for at a time. A taker may stop at any of them, and come again for each few that are left: what was
# found behind them would be found anew each time, and a megabyte has thirty thousand small ones.
_MOST_AT_ONCE = 32
_FIRST_BUFFER = 16 << 10
_GROWTH = 7
_TLS_HANDSHAKE = 0x1603
_NOTHING = memoryview(b"")

TakeFrame = Callable[[Lent], bool]
"""Is lent a frame without its size: the next bytes may overwrite it. Returns whether it takes more."""
TakeOwnFrame = Callable[[memoryview], bool]
"""The same for a frame that has a buffer of its own, and may be kept."""


def whole_frames_in_python(received: Lent, at: int, most_bytes: int, most: int) -> tuple[list[Lent], int]:
    """The frames from `at` on, without their sizes, that all bytes of `received` are there of, at most so many; and
    where the first other begins: one more, or one that is cut off, or whose size is negative or more than `most_bytes`.
    """
    frames, count = list[Lent](), len(received)
    while count - at >= _SIZE and len(frames) < most:
        (size,) = _unpack_size(received, at)
        end = at + _SIZE + size
        if not 0 <= size <= most_bytes or end > count:
            break
        frames.append(received[at + _SIZE : end])
        at = end
    return frames, at


try:
    from ottla.wire._native import whole_frames
except ImportError:  # there was no C compiler when the package was installed
    whole_frames = whole_frames_in_python


class FrameTooLarge(RemoteProtocolError):
    """The size in front of a frame is negative, or beyond what is allowed."""


class LooksLikeTls(FrameTooLarge):
    """What would be a size is the beginning of a TLS handshake."""


class Frames:
    """One connection's. `limit_name` is the setting that an error names.

    `partial` is what there is of a frame that is still arriving, or None.

    `trusted_bytes`: a frame that announces so many or fewer gets its buffer at once. A client trusts its broker so far:
    growing by copying costs it as much as receiving. `spare` has buffers for large ones, if they are used again.
    """

    __slots__ = ("_limit_name", "_max_bytes", "_received", "_spare", "_trusted_bytes", "_waiting", "_wants", "partial")

    def __init__(
        self,
        max_bytes: int,
        limit_name: str,
        trusted_bytes: int = _FIRST_BUFFER,
        spare: SpareBuffers | None = None,
    ) -> None:
        self._max_bytes = max_bytes
        self._spare = spare
        self._trusted_bytes = trusted_bytes
        self._limit_name = limit_name
        self.partial: bytearray | None = None
        self._received = 0
        self._wants = 0
        self._waiting = _NOTHING

    @property
    def has_begun(self) -> bool:
        """Whether a frame is still arriving: then its rest goes into `room`, else what comes goes to `take`."""
        return self.partial is not None

    @property
    def has_waiting(self) -> bool:
        """Whether received bytes wait to be asked for."""
        return bool(self._waiting)

    @property
    def kept_bytes(self) -> int:
        """How much memory a frame that is still arriving has."""
        return 0 if self.partial is None else len(self.partial)

    def set_limit(self, max_bytes: int, limit_name: str) -> None:
        """For the frames that are taken from now on; not within `take`, whose taker has to ask for no more first."""
        self._max_bytes = max_bytes
        self._limit_name = limit_name

    def take(self, received: Lent, take_frame: TakeFrame) -> None:
        """Hands on the whole frames in `received`, and keeps what is left of it. Raises `FrameTooLarge`."""
        end = self._hand_on(received, take_frame)
        if end < len(received):
            self._waiting = memoryview(bytearray(received[end:]))  # A batch in it may be given its offset in place.

    def take_waiting(self, take_frame: TakeFrame) -> None:
        """As `take`, for what a taker did not take before."""
        waiting, self._waiting = self._waiting, _NOTHING
        end = self._hand_on(lend(waiting), take_frame)
        left = len(waiting) - end
        if left:
            # What is left stays where it is, until it is the smaller part: each byte is copied a few times at most,
            # however small the steps are, and a client that stops for long keeps little.
            is_small = left * 2 <= memoryview(waiting.obj).nbytes
            self._waiting = memoryview(bytearray(waiting[end:])) if is_small else waiting[end:]

    def _hand_on(self, received: Lent, take_frame: TakeFrame) -> int:
        """Hands whole frames on, and begins with one that is not. Returns where the taker has stopped, if it has, and
        else the end.
        """
        at = 0
        while True:
            frames, rest_at = whole_frames(received, at, self._max_bytes, _MOST_AT_ONCE)
            for number, frame in enumerate(frames, 1):
                if not take_frame(frame):
                    return at + sum(map(len, frames[:number])) + _SIZE * number
            at = rest_at
            if len(frames) < _MOST_AT_ONCE:
                break
        if at < len(received):
            self._begin(received[at:])
        return len(received)

    def room(self) -> memoryview:
        """Where the next bytes of the frame that has begun belong. To be released before `fill`."""
        partial = self.partial
        assert partial is not None, "no frame has begun"
        if self._received == len(partial):
            partial.extend(bytes(min(self._wants - self._received, self._received * _GROWTH)))
        return memoryview(partial)[self._received : self._wants]

    def fill(self, count: int, take_frame: TakeOwnFrame) -> None:
        """So many bytes have come into `room`."""
        partial = self.partial
        assert partial is not None, "no frame has begun"
        self._received += count
        if self._received < self._wants:
            return
        if self._wants == _SIZE:
            self._wants += self._announced(partial, 0)
            if self._wants > _SIZE:
                if self._wants <= self._trusted_bytes:
                    partial.extend(bytes(self._wants - _SIZE))
                return
        self.partial = None
        take_frame(memoryview(partial)[_SIZE : self._wants])

    def clear(self) -> None:
        """Forgets what has arrived: the connection is closed."""
        self.partial = None
        self._waiting = _NOTHING

    def _announced(self, data: Seen, at: int) -> int:
        size: int = _unpack_size(data, at)[0]
        if not 0 <= size <= self._max_bytes:
            raise self._too_large(size)
        return size

    def _too_large(self, size: int) -> FrameTooLarge:
        if size >> 16 == _TLS_HANDSHAKE:
            return LooksLikeTls("the other side speaks TLS, and this is a listener for plain text (security.protocol)")
        return FrameTooLarge(f"a frame of {size} bytes is not within {self._limit_name}={self._max_bytes}")

    def _begin(self, rest: Lent) -> None:
        """A frame is not whole; or it is, and its size is not allowed."""
        self._wants = _SIZE + self._announced(rest, 0) if len(rest) >= _SIZE else _SIZE
        first = self._wants if self._wants <= self._trusted_bytes else _FIRST_BUFFER
        if self._spare is not None and LEAST_BYTES <= self._wants <= self._trusted_bytes:
            self.partial = self._spare.take(self._wants)
        else:
            self.partial = bytearray(max(min(self._wants, first), len(rest)))
        memoryview(self.partial)[: len(rest)] = memoryview(rest)
        self._received = len(rest)
