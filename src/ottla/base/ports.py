"""The ports through which the world comes in: everything below `runtime` sees only these.

Each has a real implementation and one for tests, so that a crash, a full disk or a clock that
jumps is an ordinary test case.
"""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

Buffer = bytes | bytearray | memoryview


class Clock(Protocol):
    def now_ms(self) -> int:
        """Milliseconds since 1970, as records carry them. May jump."""
        ...


class File(Protocol):
    """One open file. Positions are explicit, so one handle serves concurrent readers."""

    def read_at(self, position: int, size: int) -> bytes:
        """At most `size` bytes from `position`; fewer only at the end of the file."""
        ...

    def read_into(self, position: int, buffer: bytearray | memoryview) -> int:
        """Fills `buffer` from `position`; returns how many bytes there were."""
        ...

    def write_at(self, position: int, data: Buffer) -> None:
        """Writes all of `data`, or raises `OSError` having written any part of it."""
        ...

    def size(self) -> int: ...

    def truncate(self, size: int) -> None: ...

    def sync(self) -> None:
        """Returns once the file's bytes and size would survive a power cut. Its name needs `Disk.sync_dir`."""
        ...

    def fileno(self) -> int:
        """The descriptor, for `sendfile`. Raises `OSError` where there is none."""
        ...

    def pin(self) -> None:
        """Keeps the file open beyond `close`, until `unpin`: a part of it is on its way to a client."""
        ...

    def unpin(self) -> None: ...

    def close(self) -> None: ...


@runtime_checkable
class Lock(Protocol):
    def release(self) -> None: ...


class Disk(Protocol):
    """The file operations the log needs, and no others. Paths are absolute strings.

    Every method raises `OSError` (with `errno`) when the operating system does. Creations, renames and
    removals survive a power cut only after `sync_dir` of their directory.
    """

    def open(self, path: str, *, create: bool = False) -> File:
        """Opens for reading and writing; with `create`, makes an empty file if there is none."""
        ...

    def exists(self, path: str) -> bool: ...

    def is_dir(self, path: str) -> bool: ...

    def size(self, path: str) -> int: ...

    def modified_ms(self, path: str) -> int: ...

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        """Makes a file as old as another that it stands for."""
        ...

    def list_dir(self, path: str) -> Sequence[str]:
        """Names in a directory, sorted."""
        ...

    def make_dirs(self, path: str) -> None: ...

    def rename(self, source: str, target: str) -> None:
        """Atomic; replaces a `target` file."""
        ...

    def remove(self, path: str) -> None: ...

    def remove_dir(self, path: str) -> None:
        """Removes an empty directory."""
        ...

    def sync_dir(self, path: str) -> None: ...

    def sync_all(self, paths: Sequence[str]) -> None:
        """Syncs each of these, files as `File.sync` does and directories as `sync_dir`, in any order.

        Thousands at once cost little more than one, where the system can sync a whole file system.
        """
        ...

    def lock(self, path: str) -> Lock:
        """Takes the advisory lock on a file, creating it; raises `BlockingIOError` when another process holds it."""
        ...
