"""The files of one segment: its batches, its indexes, their names, and how long they are kept open."""

from contextlib import suppress
from errno import EDQUOT, ENOSPC

from ottla.base.ports import Disk, File
from ottla.log import file_names
from ottla.log.errors import CorruptFile
from ottla.log.files import sync_file
from ottla.log.index import OffsetIndex, TimeIndex
from ottla.log.transaction_index import TransactionIndex

_COPIED_BYTES = 1 << 20


class SegmentFiles:
    """Opened when they are needed.

    `in_use`: so many jobs on other threads need them, and they stay open. The log's owner counts. `has_left`: the
    segment is no part of the log any more; its files get other names, and go when nothing uses them.
    """

    __slots__ = (
        "_directory",
        "_disk",
        "_file",
        "_suffix",
        "base_offset",
        "has_left",
        "in_use",
        "offset_index",
        "time_index",
        "transaction_index",
    )

    def __init__(self, disk: Disk, directory: str, base_offset: int, suffix: str) -> None:
        self._disk = disk
        self._directory = directory
        self._suffix = suffix
        self._file: File | None = None
        self.base_offset = base_offset
        self.in_use = 0
        self.has_left = False
        self.offset_index = OffsetIndex(disk, self.path(file_names.INDEX), base_offset)
        self.time_index = TimeIndex(disk, self.path(file_names.TIME_INDEX), base_offset)
        self.transaction_index = TransactionIndex(disk, self.path(file_names.TRANSACTION_INDEX))

    def path(self, kind: str) -> str:
        return f"{self._directory}/{file_names.file_name(self.base_offset, kind)}{self._suffix}"

    @property
    def file(self) -> File:
        if self._file is None:
            self._file = self._disk.open(self.path(file_names.LOG))
        return self._file

    def create(self) -> None:
        """Makes the files exist, as a new segment's do before its first batch. If it fails, none of them does."""
        try:
            self._file = self._disk.open(self.path(file_names.LOG), create=True)
            self.offset_index.create()
            self.time_index.create()
        except OSError:
            with suppress(OSError):
                self.delete()
            raise

    # Keeping

    def flush(self) -> None:
        """Makes the batches and the indexes durable."""
        self.file.sync()
        self.offset_index.flush()
        self.time_index.flush()
        self.transaction_index.flush()

    def write_indexes(self) -> None:
        """Writes what the indexes have only in memory. Nothing to do, mostly, for a segment that is not active."""
        for index in (self.offset_index, self.time_index, self.transaction_index):
            if not index.is_written:
                index.write()

    def sync(self, *, indexes: bool) -> None:
        """Syncs the batches, and the indexes too if asked: a segment that is not active needs both. On any thread."""
        file = self._file
        if file is not None:
            file.sync()
        else:
            sync_file(self._disk, self.path(file_names.LOG))
        if indexes:
            self.offset_index.sync()
            self.time_index.sync()
            self.transaction_index.sync()

    def write(self) -> list[str]:
        """Writes what the indexes have only in memory, and lets go of the files; returns their paths, to be synced."""
        written = [file_names.LOG, file_names.INDEX, file_names.TIME_INDEX]
        self.offset_index.write()
        self.time_index.write()
        if self.transaction_index.write():
            written.append(file_names.TRANSACTION_INDEX)
        self.close()
        return [self.path(kind) for kind in written]

    # Letting go

    def close(self) -> None:
        """Writes what the indexes have only in memory, and lets go of the files. They are opened again when needed."""
        self.offset_index.close()
        self.time_index.close()
        self.transaction_index.close()
        self._close_file()

    def release(self) -> None:
        """Lets go of the files and writes nothing, for a disk that has failed or files that are about to go."""
        for release in (
            self.offset_index.forget,
            self.time_index.forget,
            self.transaction_index.forget,
            self._close_file,
        ):
            with suppress(OSError):
                release()

    def _close_file(self) -> None:
        if self._file is not None:
            file, self._file = self._file, None
            file.close()

    def rename(self, suffix: str) -> None:
        """Moves the files to names with another suffix (.deleted, .swap or none). Open files stay open."""
        for kind in file_names.SEGMENT_SUFFIXES:
            source = self.path(kind)
            if self._disk.exists(source):
                self._disk.rename(source, f"{source.removesuffix(self._suffix)}{suffix}")
        self._suffix = suffix
        self.moved(self._directory)

    def moved(self, directory: str) -> None:
        """The directory has been renamed."""
        self._directory = directory
        self.offset_index.moved(self.path(file_names.INDEX))
        self.time_index.moved(self.path(file_names.TIME_INDEX))
        self.transaction_index.moved(self.path(file_names.TRANSACTION_INDEX))

    def delete(self) -> None:
        """Removes the files. Those already gone are no error: a crash may have come between them."""
        self.release()
        for kind in file_names.SEGMENT_SUFFIXES:
            if self._disk.exists(self.path(kind)):
                self._disk.remove(self.path(kind))

    def set_aside(self) -> str:
        """Keeps the batches under a name that is no segment's, and returns it. The indexes go: they can be rebuilt."""
        target = self._path_aside()
        self.release()
        self._disk.rename(self.path(file_names.LOG), target)
        self.delete()
        return target

    def copy_aside(self) -> str:
        """Makes a copy of the batches, damage included, under a name that is no segment's, and returns it. Durable.

        Raises `CorruptFile` if there is no room: for want of it this log cannot be put right, and others can.
        """
        target = self._path_aside()
        copy = self._disk.open(target, create=True)
        try:
            for position in range(0, self.file.size(), _COPIED_BYTES):
                copy.write_at(position, self.file.read_at(position, _COPIED_BYTES))
            copy.sync()
        except OSError as problem:
            if problem.errno not in (ENOSPC, EDQUOT):
                raise
            self._disk.remove(target)
            path = self.path(file_names.LOG)
            raise CorruptFile(f"{path} is damaged, and there is no room to keep a copy of it: {problem}") from problem
        finally:
            copy.close()
        self._disk.sync_dir(self._directory)
        return target

    def _path_aside(self) -> str:
        path = self.path(file_names.LOG)
        numbers = ("", *map(str, range(1, len(self._disk.list_dir(self._directory)) + 1)))
        return next(free for number in numbers if not self._disk.exists(free := f"{path}{file_names.CUT}{number}"))
