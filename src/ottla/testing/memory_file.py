"""An open file of a disk in memory."""

import errno
from random import Random
from typing import TYPE_CHECKING

from ottla.base.lent import Seen
from ottla.base.ports import ColdRead
from ottla.testing.crash_model import Content, Truncate, Write

if TYPE_CHECKING:
    from ottla.testing.memory_disk import MemoryDisk


class MemoryFile:
    def __init__(self, disk: "MemoryDisk", content: Content, path: str) -> None:
        self._disk = disk
        self._content = content
        self._path = path
        """As it was opened. Renames stay within the directories that may fail."""
        self._open = True

    def read_at(self, position: int, size: int) -> bytes:
        self._disk.call("read")
        self._alive()
        self._disk.dead.check(self._path)
        if self._content.is_cold:
            if not self._disk.may_wait:
                raise ColdRead(lambda: self._warm(position, size))
            self._content.is_cold = False
        self._disk.step_of_reading()
        return bytes(self._content.data[position : position + size])

    def _warm(self, position: int, size: int) -> None:
        MemoryFile(self._disk, self._content, self._path).read_at(position, size)

    def read_into(self, position: int, buffer: bytearray | memoryview) -> int:
        data = self.read_at(position, len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def write_at(self, position: int, data: Seen) -> None:
        self._disk.call("write")
        self._alive()
        self._disk.dead.check(self._path)
        write = Write(position, bytes(data))
        growth = position + len(write.data) - len(self._content.data)
        self._disk.take_space(growth)
        self._disk.step("write", partly=lambda random: self._content.change(write.torn(random)))
        self._content.change(write)
        self._content.modified_ms = self._disk.now_ms

    def size(self) -> int:
        self._disk.call("size")
        self._alive()
        return len(self._content.data)

    def truncate(self, size: int) -> None:
        self._disk.call("truncate")
        self._alive()
        self._disk.dead.check(self._path)
        self._disk.step("truncate")
        self._content.change(Truncate(size))

    def reserve(self, position: int, size: int) -> bool:
        return False

    def sync(self) -> None:
        self._disk.call("sync file")
        self._alive()
        self._disk.check_sync(self._path, self._lose)
        self._disk.step("sync file", partly=self._lose)
        self._content.sync()
        self._disk.call("after sync file")

    def _lose(self, random: Random) -> None:
        if self._disk.syncs_lose_pages:
            self._content.lose_unsynced(random)

    def fileno(self) -> int:
        raise OSError(errno.ENOTSUP, "a file in memory has no descriptor")

    def pin(self) -> None:
        """Nothing to do: what is in memory stays readable."""

    def unpin(self) -> None:
        """See `pin`."""

    def close(self) -> None:
        self._disk.call("close")
        self._alive()
        self._open = False
        self._disk.open_files -= 1

    def _alive(self) -> None:
        if not self._open:
            raise OSError(errno.EBADF, "the file is closed")
        self._disk.check_running()
