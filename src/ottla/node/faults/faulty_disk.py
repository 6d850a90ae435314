"""The real disk, until it is full: then nothing can be written or created, and everything can be read.

The metadata log is spared. A node whose metadata cannot be written stops, as Apache Kafka's does, and a test would
learn nothing more from it; installations that mind have it on a disk of its own (`metadata.log.dir`).
"""

import os
from errno import ENOSPC
from typing import Final

from ottla.base.lent import Seen
from ottla.base.ports import Space
from ottla.log.disk import OsDisk, OsFile

_SPARED: Final = "/__cluster_metadata-"


class FaultyDisk(OsDisk):
    """One for a node. `is_full` may change at any time, while worker threads write."""

    __slots__ = ("is_full",)

    def __init__(self) -> None:
        self.is_full = False

    def open(self, path: str, *, create: bool = False) -> OsFile:
        if create and self.is_full and not self.exists(path):
            self.check_room(path)
        opened = super().open(path, create=create)
        return opened if _SPARED in path else FaultyFile(opened, self, path)

    def make_dirs(self, path: str) -> None:
        if not self.exists(path):
            self.check_room(path)
        super().make_dirs(path)

    def space(self, path: str) -> Space:
        found = super().space(path)
        return Space(found.total_bytes, 0) if self.is_full else found

    def check_room(self, path: str) -> None:
        if self.is_full and _SPARED not in path:
            raise OSError(ENOSPC, os.strerror(ENOSPC), path)


class FaultyFile(OsFile):
    """Takes the descriptor of a file over."""

    __slots__ = ("_disk", "_path")

    def __init__(self, opened: OsFile, disk: FaultyDisk, path: str) -> None:
        super().__init__(os.dup(opened.fileno()))
        opened.close()
        self._disk = disk
        self._path = path

    def write_at(self, position: int, data: Seen) -> None:
        self._disk.check_room(self._path)
        super().write_at(position, data)
