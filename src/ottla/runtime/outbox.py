"""What a connection still has to send: byte strings, and parts of files that go out with `sendfile`.

A part of a file that is not in the page cache would stop the whole loop in `sendfile`, so it is looked for first (a
read that may not wait). If it is not there, a disk thread sends it: `ColdSend`, while the connection waits and the
others go on. That is as quick as the system can be: it reads ahead while it sends, and nothing is read twice.
"""

import os
import select
import socket
from collections import deque
from typing import Protocol

from ottla.base.ports import Buffer, File

_MAX_PARTS = 64
# Linux reads ahead by about this much: where one byte of it is in memory, the rest is or soon will be.
_PROBE_STRIDE = 128 << 10
_NO_WAIT = getattr(os, "RWF_NOWAIT", None)
# How long a disk thread waits for a client to take what is there. Others need the thread, too.
_PATIENCE_MS = 5


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

    __slots__ = ("file", "is_warm", "left", "position")

    def __init__(self, part: FilePart) -> None:
        assert part.file is not None, "a part of no file has no bytes, and is not sent as one"
        self.file = part.file
        self.file.pin()
        self.position = part.position
        self.left = part.size
        self.is_warm = _NO_WAIT is None

    def probe(self) -> bool:
        """Whether all of it is in memory, as far as a few looks can tell."""
        if not self.is_warm:
            self.is_warm = _in_page_cache(self.file.fileno(), self.position, self.left)
        return self.is_warm


class ColdSend:
    """A region that a disk thread sends, as far as the client takes it without making the thread wait.

    It has descriptors of its own: the connection may be closed meanwhile. `end` lets go of them, when `run` is over.
    Making one raises `OSError` when there are no more descriptors.
    """

    def __init__(self, sock: socket.socket, region: Region) -> None:
        self._socket = os.dup(sock.fileno())
        self._file = region.file
        self._file.pin()
        self._position = region.position
        self._left = region.left

    def run(self) -> int:
        """Returns how many bytes were sent."""
        sent = 0
        writable = select.poll()
        writable.register(self._socket, select.POLLOUT)
        while sent < self._left:
            try:
                sent += send_file(self._socket, self._file, self._position + sent, self._left - sent)
            except BlockingIOError:
                if not writable.poll(_PATIENCE_MS):
                    break
        return sent

    def end(self) -> None:
        os.close(self._socket)
        self._file.unpin()


def send_file(socket_fd: int, file: File, position: int, size: int) -> int:
    count = os.sendfile(socket_fd, file.fileno(), position, size)
    if count == 0:
        raise ConnectionAbortedError("a file ended before the part of it that was promised")
    return count


def hold(part: Buffer | FilePart) -> "Buffer | Region":
    """Makes a part safe to keep until its turn comes: bytes are, and a file is kept open, even if its log goes."""
    return part if isinstance(part, bytes | bytearray | memoryview) else Region(part)


def release(part: "Buffer | Region") -> None:
    """Lets go of a part that will not be sent."""
    if isinstance(part, Region):
        part.file.unpin()


class Outbox:
    """Parts in order, each made safe with `hold`. `send` sends what the socket takes, and says why it stopped."""

    __slots__ = ("_parts", "buffered", "sent")

    def __init__(self) -> None:
        self._parts: deque[Buffer | Region] = deque()
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
        """Sends until the socket would wait (then parts are left) or until the disk would (that region is returned)."""
        parts = self._parts
        while parts:
            first = parts[0]
            if isinstance(first, Region):
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
            count = send_file(sock.fileno(), region.file, region.position, region.left)
        except BlockingIOError:
            return False
        self.advance(count)
        return True

    def advance(self, count: int) -> None:
        """So many bytes of the region that comes first have been sent."""
        region = self._parts[0]
        assert isinstance(region, Region), "bytes are not sent from files"
        self.sent += count
        region.position += count
        region.left -= count
        if region.left == 0:
            self._parts.popleft()
            region.file.unpin()

    def clear(self) -> None:
        """Lets go of everything: the connection is closed."""
        for part in self._parts:
            release(part)
        self._parts.clear()
        self.buffered = 0


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
