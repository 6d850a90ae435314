"""What a connection still has to send: byte strings, and parts of files that go out with `sendfile`.

A part of a file that is not in the page cache would stop the whole loop in `sendfile`, so it is looked for first (a
read that may not wait) and, if need be, read ahead on a disk thread while the connection waits and the others go on.
Whoever is sent a large part will want the next one too: what comes after is brought into memory while it is sent, so
that a reader of old records waits for the disk once and not at every part.
"""

import os
import socket
from collections import deque
from collections.abc import Callable
from typing import Protocol

from ottla.base.ports import Buffer, File

_MAX_PARTS = 64
# Linux reads ahead by about this much: where one byte of it is in memory, the rest is or soon will be.
_PROBE_STRIDE = 128 << 10
_NO_WAIT = getattr(os, "RWF_NOWAIT", None)
_LARGE_BYTES = 256 << 10
_AHEAD_BYTES = 4 << 20
# The kernel takes no more than about this much of one piece of advice.
_ADVICE_BYTES = 1 << 20


class FilePart(Protocol):
    """A part of a file, to be sent as it is."""

    @property
    def file(self) -> File | None: ...
    @property
    def position(self) -> int: ...
    @property
    def size(self) -> int: ...


class Region:
    """What is left to send of a part of a file. The file stays open until it is sent, or released."""

    __slots__ = ("file", "is_begun", "is_warm", "left", "position")

    def __init__(self, part: FilePart) -> None:
        assert part.file is not None, "a part of no file has no bytes, and is not sent as one"
        self.file = part.file
        self.file.pin()
        self.position = part.position
        self.left = part.size
        self.is_begun = False
        self.is_warm = _NO_WAIT is None

    def probe(self) -> bool:
        """Whether all of it is in memory, as far as a few looks can tell."""
        if not self.is_warm:
            self.is_warm = _in_page_cache(self.file.fileno(), self.position, self.left)
        return self.is_warm

    def read_ahead(self) -> None:
        """Brings it into memory. For a disk thread."""
        position, end = self.position, self.position + self.left
        _will_need(self.file.fileno(), position, self.left)
        while position < end and self.file.read_at(position, min(_PROBE_STRIDE, end - position)):
            position += _PROBE_STRIDE

    def runs_out(self) -> bool:
        """Whether a reader who goes on after this part will soon come to what is not in memory."""
        if self.left < _LARGE_BYTES or _NO_WAIT is None:
            return False
        return not _in_page_cache(self.file.fileno(), self.position + self.left + _AHEAD_BYTES // 2, 1)

    def prefetch(self) -> Callable[[], None]:
        """Work for a disk thread: to have what comes after it brought into memory. The file is to be pinned."""
        fd, position = self.file.fileno(), self.position + self.left
        return lambda: _will_need(fd, position, _AHEAD_BYTES)


def hold(part: Buffer | FilePart) -> "Buffer | Region":
    """Makes a part safe to keep until its turn comes: bytes are, and a file is kept open, even if its log goes."""
    return part if isinstance(part, bytes | bytearray | memoryview) else Region(part)


def release(part: "Buffer | Region") -> None:
    """Lets go of a part that will not be sent."""
    if isinstance(part, Region):
        part.file.unpin()


class Outbox:
    """Parts in order, each made safe with `hold`. `send` sends what the socket takes, and says why it stopped.

    `prefetch` is told of a part after which there is something to bring into memory.
    """

    __slots__ = ("_parts", "_prefetch", "buffered", "sent")

    def __init__(self, prefetch: Callable[[Region], None]) -> None:
        self._parts: deque[Buffer | Region] = deque()
        self._prefetch = prefetch
        self.buffered = 0
        self.sent = 0

    def __bool__(self) -> bool:
        return bool(self._parts)

    def add(self, part: Buffer | Region) -> None:
        if isinstance(part, Region):
            if part.left:
                self._parts.append(part)
            else:
                release(part)
        elif len(part):
            self._parts.append(part)
            self.buffered += len(part)

    def send(self, sock: socket.socket) -> Region | None:
        """Sends until the socket would wait (then parts are left) or until a region must be read ahead (returned)."""
        parts = self._parts
        while parts:
            first = parts[0]
            if isinstance(first, Region):
                if not first.is_begun:
                    first.is_begun = True
                    if first.runs_out():
                        self._prefetch(first)
                if not first.probe():
                    return first
                if not self._send_region(sock, first):
                    return None
            elif not self._send_bytes(sock):
                return None
        return None

    def _send_bytes(self, sock: socket.socket) -> bool:
        run: list[Buffer] = []
        flags = 0
        for part in self._parts:
            if isinstance(part, Region):
                flags = socket.MSG_MORE if hasattr(socket, "MSG_MORE") else 0
                break
            run.append(part)
            if len(run) == _MAX_PARTS:
                break
        try:
            count = sock.send(run[0], flags) if len(run) == 1 else sock.sendmsg(run, (), flags)
        except BlockingIOError:
            return False
        self.sent += count
        self.buffered -= count
        whole = True
        for part in run:
            if count < len(part):
                self._parts[0] = memoryview(part)[count:]
                whole = False
                break
            count -= len(part)
            self._parts.popleft()
        return whole

    def _send_region(self, sock: socket.socket, region: Region) -> bool:
        try:
            count = os.sendfile(sock.fileno(), region.file.fileno(), region.position, region.left)
        except BlockingIOError:
            return False
        if count == 0:
            raise ConnectionAbortedError("a file ended before the part of it that was promised")
        self.sent += count
        region.position += count
        region.left -= count
        if region.left == 0:
            self._parts.popleft()
            region.file.unpin()
        return True

    def clear(self) -> None:
        """Lets go of everything: the connection is closed."""
        for part in self._parts:
            release(part)
        self._parts.clear()
        self.buffered = 0


def _will_need(fd: int, position: int, size: int) -> None:
    """Lets the kernel begin to read, in pieces as large as it takes."""
    if hasattr(os, "posix_fadvise"):
        for at in range(position, position + size, _ADVICE_BYTES):
            os.posix_fadvise(fd, at, min(_ADVICE_BYTES, position + size - at), os.POSIX_FADV_WILLNEED)


def _in_page_cache(fd: int, position: int, size: int) -> bool:
    assert _NO_WAIT is not None
    probe = bytearray(1)
    end = position + size
    try:
        for at in (*range(position, end, _PROBE_STRIDE), end - 1):
            os.preadv(fd, [probe], at, _NO_WAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True  # A file system that cannot tell: better to send than never to.
    return True
