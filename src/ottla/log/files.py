"""Whole files and directories, made durable step by step."""

from collections.abc import Callable
from contextlib import suppress
from itertools import count

from ottla.base.ids import TopicPartition
from ottla.base.ports import Disk
from ottla.log import file_names

_TEMPORARY = ".tmp"


def replace_file(disk: Disk, path: str, content: bytes) -> None:
    """Makes `content` the file's content: write beside it, fsync, rename, fsync of the directory."""
    sync_file(disk, write_beside(disk, path, content))
    put_in_place(disk, path)
    disk.sync_dir(path.rpartition("/")[0])


def write_beside(disk: Disk, path: str, content: bytes) -> str:
    """Writes what is to be the file's content to a temporary file, and returns its path. Nothing is synced."""
    temporary = path + _TEMPORARY
    write_file(disk, temporary, content)
    return temporary


def put_in_place(disk: Disk, path: str) -> None:
    """Gives the file the content that has been written beside it, which must be durable by now."""
    disk.rename(path + _TEMPORARY, path)


def write_file(disk: Disk, path: str, content: bytes) -> None:
    """Writes a new file, not durably: it is there after a power cut only if somebody syncs it."""
    file = disk.open(path, create=True)
    try:
        file.truncate(0)
        file.write_at(0, content)
    finally:
        file.close()


def sync_file(disk: Disk, path: str) -> None:
    file = disk.open(path)
    try:
        file.sync()
    finally:
        file.close()


def read_file(disk: Disk, path: str) -> bytes:
    file = disk.open(path)
    try:
        return file.read_at(0, file.size())
    finally:
        file.close()


def size_if_there(disk: Disk, path: str) -> int:
    """The size of a file, or 0 if there is none, in one look at the disk: a node opens tens of thousands."""
    try:
        return disk.size(path)
    except FileNotFoundError:
        return 0


def make_dirs(disk: Disk, path: str) -> None:
    """Makes a directory, and those above it, that a power cut does not take away again."""
    missing: list[str] = []
    while path and not disk.is_dir(path):
        missing.append(path)
        path = path.rpartition("/")[0]
    for directory in reversed(missing):
        disk.make_dirs(directory)
        try:
            disk.sync_dir(directory.rpartition("/")[0] or "/")
        except OSError:
            # The next attempt would find it, and take it for durable.
            with suppress(OSError):
                disk.remove_dir(directory)
            raise


# Names for the directories of logs that come or go: `orders-0.<32 digits>-delete`, `-future`, `-stray`.
#
# The digits keep such directories apart, those that an earlier life of the node has left included. Kafka takes a random
# UUID. Without a source of such names they are counted; either way one that a directory here has already is passed
# over.


class MarkedDirs:
    """Those of one log directory. May be asked from several threads: no name is given out twice."""

    def __init__(self, disk: Disk, path: str, unique_name: Callable[[], str] | None = None) -> None:
        self._disk = disk
        self._path = path
        self._unique_name = unique_name or map("{:032x}".format, count()).__next__

    def path_for(self, partition: TopicPartition, mark: str) -> str:
        """A path that nothing is at."""
        while self._disk.exists(path := f"{self._path}/{file_names.marked_dir(partition, self._unique_name(), mark)}"):
            pass
        return path
