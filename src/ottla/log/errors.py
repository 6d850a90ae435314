"""What can be wrong with what is on the disk."""

from errno import EDQUOT, EMFILE, ENFILE, ENOMEM, ENOSPC

from ottla.base.errors import StorageError
from ottla.records.header import CorruptBatch


class CorruptFile(StorageError):
    """A file of the data directory whose content cannot be what was written. The message names the file."""


class DirectoryInUse(StorageError):
    """Another process holds the directory's lock."""


class OffsetOutOfRange(StorageError):
    """An offset outside of what the log holds."""

    def __init__(self, offset: int, log_start_offset: int, log_end_offset: int) -> None:
        super().__init__(f"offset {offset} is not within {log_start_offset} to {log_end_offset}")
        self.offset = offset


DISK_IS_FULL = frozenset({ENOSPC, EDQUOT})
OUT_OF_DESCRIPTORS = frozenset({EMFILE, ENFILE})
PASSING = DISK_IS_FULL | OUT_OF_DESCRIPTORS | {ENOMEM}
"""What the system lacks for now. It is no word about the health of a disk."""

STORAGE_PROBLEMS = (OSError, CorruptFile, CorruptBatch)
"""What a log may raise because of its disk, or of what is on it."""
