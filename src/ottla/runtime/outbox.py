"""What a connection still has to send: byte strings, and parts of files.

Where the transport can send from files, their bytes never come into this process (`sendfile`); where it cannot (TLS,
the network in memory), they are read a piece at a time and sent as bytes. Either way the loop must not wait for the
disk, so a part of a file is first looked for in the page cache (a read that may not wait). If it is not there, a disk
thread sends or reads it while the connection waits and the others continue (`OnDiskThread`). Sending is as quick as the
system can be: it reads ahead while it sends, and nothing is read twice.
"""

import os
from collections import deque
from collections.abc import Callable
from typing import Protocol

from ottla.base.ports import Buffer, File, Transport

_MAX_PARTS = 64
# Linux reads ahead by about this much: where one byte of it is in memory, the rest is or soon will be.
_PROBE_STRIDE = 128 << 10
_NO_WAIT = getattr(os, "RWF_NOWAIT", None)
# Of a reply with files in it, at most so much is read and sent as bytes.
LITTLE_BYTES = 16 << 10
# And so much if it has been read already.
_COPIED_BYTES = 1 << 20
# What is read at a time where files cannot be sent: about what a socket takes.
_READ_BYTES = 256 << 10


class FilePart(Protocol):
    """A part of a file, to be sent as it is. `data` are its bytes, if they have been read; else there is nothing."""

    @property
    def file(self) -> File | None: ...
    @property
    def position(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def data(self) -> bytes: ...


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
            self.is_warm = _in_page_cache(self.file, self.position, self.left)
        return self.is_warm

    def read(self) -> bytes:
        """The next piece, for a transport that cannot send files."""
        data = self.file.read_at(self.position, min(self.left, _READ_BYTES))
        if not data:
            raise _ended()
        return data


def pinned(part: Buffer | FilePart) -> "Buffer | Region":
    """Makes a part safe to keep until its turn comes: bytes are, and a file is kept open, even if its log goes."""
    return part if isinstance(part, bytes | bytearray | memoryview) else Region(part)


def pin_all(parts: list[Buffer | FilePart]) -> list[Buffer | Region]:
    """Holds every part that has bytes, or none: if one cannot be held, the others are let go of.

    A little of a file, if it is in memory, is taken out of it here: what is all bytes is sent in one call, where a file
    would take four.
    """
    held: list[Buffer | Region] = []
    has_files, to_read, to_copy = False, LITTLE_BYTES, _COPIED_BYTES
    try:
        for part in parts:
            size = len(part)  # type: ignore[arg-type]
            if isinstance(part, bytes | bytearray | memoryview):
                if size:
                    held.append(part)
            elif size:
                little = _read_already(part, to_copy) or (read_from_memory(part) if size <= to_read else None)
                if little is None:
                    has_files = True
                    held.append(Region(part))
                else:
                    to_read, to_copy = to_read - size, to_copy - size
                    held.append(little)
    except Exception:
        for kept in held:
            release(kept)
        raise
    return held if has_files else [b"".join(held)]  # type: ignore[arg-type]


def _read_already(part: FilePart, most_bytes: int) -> bytes | None:
    return part.data if part.size <= most_bytes else None


def read_from_memory(part: FilePart) -> bytearray | None:
    """The bytes of a small part of a file, if they are in the page cache; None if not."""
    if _NO_WAIT is None or part.file is None:
        return None
    data = bytearray(part.size)
    try:
        count = os.preadv(part.file.fileno(), [data], part.position, _NO_WAIT)
    except OSError:
        return None  # Not in memory, or nothing that can tell.
    return data if count == part.size else None


def release(part: "Buffer | Region") -> None:
    """Lets go of a part that will not be sent."""
    if isinstance(part, Region):
        part.file.unpin()


class Outbox:
    """`parts` in order, each made safe with `pinned`. `send` sends what the transport takes, and says why it stops."""

    __slots__ = ("buffered", "parts", "sent")

    def __init__(self) -> None:
        self.parts: deque[Buffer | Region] = deque()
        self.buffered = 0
        self.sent = 0

    def __bool__(self) -> bool:
        return bool(self.parts)

    def add(self, part: Buffer | Region) -> None:
        if isinstance(part, Region):
            if part.left:
                self.parts.append(part)
            else:
                release(part)
        elif len(part):
            self.parts.append(part)
            self.buffered += len(part)

    def send(self, transport: Transport) -> Region | None:
        """Sends until the transport would wait (then parts are left) or the disk would (that region is returned)."""
        parts = self.parts
        while parts:
            first = parts[0]
            if isinstance(first, Region):
                if not first.probe():
                    return first
                if not transport.can_send_files:
                    self._put_read(first.read())
                elif not self._send_region(transport, first):
                    return None
            elif not self._send_bytes(transport):
                return None
        return None

    def _send_bytes(self, transport: Transport) -> bool:
        run: list[Buffer] = []
        more = False
        for part in self.parts:
            if isinstance(part, Region):
                more = True
                break
            run.append(part)
            if len(run) == _MAX_PARTS:
                break
        try:
            count = transport.send(run[0]) if len(run) == 1 and not more else transport.send_parts(run, more=more)
        except BlockingIOError:
            return False
        self.sent += count
        self.buffered -= count
        whole = True
        for part in run:
            if count < len(part):
                self.parts[0] = memoryview(part)[count:]
                whole = False
                break
            count -= len(part)
            self.parts.popleft()
        return whole

    def _send_region(self, transport: Transport, region: Region) -> bool:
        try:
            count = transport.send_file(region.file, region.position, region.left)
        except BlockingIOError:
            return False
        self._on_sent(count)
        return True

    def _on_sent(self, count: int) -> None:
        self.sent += count
        self._advance(count)

    def _advance(self, count: int) -> None:
        """So many bytes of the region that comes first are done with."""
        region = self.parts[0]
        assert isinstance(region, Region), "bytes are not sent from files"
        region.position += count
        region.left -= count
        if region.left == 0:
            self.parts.popleft()
            region.file.unpin()

    def _put_read(self, data: bytes) -> None:
        """The beginning of the region that comes first has become bytes."""
        self._advance(len(data))
        self.parts.appendleft(data)
        self.buffered += len(data)

    def clear(self) -> None:
        """Lets go of everything: the connection is closed."""
        for part in self.parts:
            release(part)
        self.parts.clear()
        self.buffered = 0


class OnDiskThread:
    """Gets a region that is not in memory on its way. Making one raises `OSError` when there are no descriptors.

    `run` on a disk thread; then `finish` with what it returned, if the outbox is still wanted, and `end` in any case.
    `finish` says whether the client takes more at once: if not, it has to be waited for, and the thread is not.
    """

    __slots__ = ("_outbox", "_size", "end", "run")

    def __init__(self, outbox: Outbox, transport: Transport, region: Region) -> None:
        self._outbox = outbox
        self._size = region.left
        self.run: Callable[[], int | bytes]
        self.end: Callable[[], None]
        if transport.can_send_files:
            send = transport.cold_send(region.file, region.position, region.left)
            self.run, self.end = send.run, send.end
        else:
            region.file.pin()
            self.run, self.end = region.read, region.file.unpin

    def finish(self, done: int | bytes) -> bool:
        if isinstance(done, int):
            self._outbox._on_sent(done)
            return done == self._size
        self._outbox._put_read(done)
        return True


def _ended() -> OSError:
    return ConnectionAbortedError("a file ended before the part of it that was promised")


def send_file(socket_fd: int, file: File, position: int, size: int) -> int:
    count = os.sendfile(socket_fd, file.fileno(), position, size)
    if count == 0:
        raise _ended()
    return count


def _in_page_cache(file: File, position: int, size: int) -> bool:
    assert _NO_WAIT is not None
    probe = bytearray(1)
    end = position + size
    try:
        fd = file.fileno()
        for at in (*range(position, end, _PROBE_STRIDE), end - 1):
            os.preadv(fd, [probe], at, _NO_WAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True  # No descriptor, or a file system that cannot tell: better to send than never to.
    return True
