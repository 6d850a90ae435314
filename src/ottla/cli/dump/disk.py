"""A disk that can only be read: looking at a directory must not change it, nor need the right to."""

import os

from ottla.log.disk import OsDisk, OsFile


class ReadOnlyDisk(OsDisk):
    __slots__ = ()

    def open(self, path: str, *, create: bool = False) -> OsFile:
        """Opens what is there; `create` never creates."""
        return OsFile(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
