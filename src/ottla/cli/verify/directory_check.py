"""A data directory, of ours or Apache Kafka's: its checkpoints, and each of its partitions. Nothing in it is changed.

A node may run on it. Then a segment may be cleaned, deleted or cut between one look and the next, so what is found in a
partition counts only if it is found again: three looks at most, and what all of them tell.
"""

import fcntl
import os
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Final, NamedTuple

from ottla.base.errors import OttlaError
from ottla.cli.verify.partition_check import Checkpoints, Circumstances, check_partition, segments_of
from ottla.cli.verify.problems import DAMAGE, FORGET, Problem, Tell
from ottla.log import file_names
from ottla.log.checkpoint import parse_offsets
from ottla.log.errors import CorruptFile

_LOOKS: Final = 3
_FLOCK: Final = "hhlli"
"""`struct flock` of Linux: type, whence, start, length, process."""


class NotADataDirectory(OttlaError, ValueError):
    """There is nothing of Kafka's in it."""


class PartitionDir(NamedTuple):
    name: str
    path: str
    size_bytes: int


def is_in_use(path: str) -> bool:
    """Whether a node, of ours or Apache Kafka's, runs on it. The lock is asked after, and not taken."""
    try:
        lock = os.open(f"{path}/{file_names.LOCK}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        found = fcntl.fcntl(lock, fcntl.F_GETLK, struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
    except OSError:
        return False
    finally:
        os.close(lock)
    return bool(struct.unpack(_FLOCK, found)[0] != fcntl.F_UNLCK)


class DataDirectory:
    """`path` may also be that of a single partition. Raises `NotADataDirectory`, or `OSError`."""

    def __init__(self, path: str, topics: Callable[[str], bool] = lambda _topic: True, *, deep: bool = False) -> None:
        self._path = os.path.abspath(path)
        self._topics = topics
        self.partitions: list[PartitionDir] = []
        if not os.path.isdir(self._path):
            raise NotADataDirectory(f"{path}: there is no such directory")
        if file_names.parse_partition_dir(os.path.basename(self._path)) is not None and segments_of(self._path):
            self._parent = os.path.dirname(self._path)
            found: Iterable[str] = [os.path.basename(self._path)]
        else:
            self._parent = self._path
            found = sorted(os.listdir(self._path))
        self.partitions = list(self._dirs(found))
        has_logs = any(segments_of(partition.path) for partition in self.partitions)
        if not has_logs and not os.path.exists(f"{self._parent}/{file_names.META_PROPERTIES}"):
            raise NotADataDirectory(f"{path}: neither a data directory nor a partition of one")
        is_live = is_in_use(self._parent)
        was_closed = os.path.exists(f"{self._parent}/{file_names.CLEAN_SHUTDOWN}") and not is_live
        self.given = Circumstances(is_live, was_closed, deep)

    @property
    def size_bytes(self) -> int:
        return sum(partition.size_bytes for partition in self.partitions)

    def check(self, tell: Tell, progress: Callable[[str, int], None]) -> None:
        """`progress` hears of the partition and of bytes that have been looked at."""
        kept = self._checkpoints(tell)
        for partition in self.partitions:
            progress(partition.name, 0)
            for problem in self._look(partition, kept, progress):
                tell(problem)

    def _look(
        self, partition: PartitionDir, kept: dict[str, dict[str, int]], progress: Callable[[str, int], None]
    ) -> list[Problem]:
        found = self._look_once(partition, kept, lambda count: progress(partition.name, count))
        for _ in range(_LOOKS - 1):
            if not (found and self.given.is_live):
                break
            again = {_same(one) for one in self._look_once(partition, self._checkpoints(_nobody), _nothing)}
            found = [one for one in found if _same(one) in again]
        return found

    def _look_once(
        self, partition: PartitionDir, kept: dict[str, dict[str, int]], progress: Callable[[int], None]
    ) -> list[Problem]:
        found: list[Problem] = []
        name = partition.name
        checkpoints = Checkpoints(
            kept[file_names.RECOVERY_POINTS].get(name),
            kept[file_names.HIGH_WATERMARKS].get(name),
            kept[file_names.LOG_START_OFFSETS].get(name),
            kept[file_names.CLEANER_OFFSETS].get(name),
        )
        try:
            check_partition(name, partition.path, checkpoints, self.given, found.append, progress)
        except FileNotFoundError as gone:
            # A running node may have deleted it. If it is named and missing the next time, too, that is damage.
            found.append(Problem(DAMAGE, name, str(gone.filename), -1, -1, "it is gone while it was looked at"))
            if self.given.is_live and not os.path.exists(partition.path):
                return []
        except OSError as problem:
            what = f"it cannot be read: {problem.strerror or problem}"
            advice = "Look at the disk and at who may read the file."
            found.append(Problem(DAMAGE, name, str(problem.filename or partition.path), -1, -1, what, advice))
        return found

    def _dirs(self, found: Iterable[str]) -> Iterator[PartitionDir]:
        for name in found:
            parsed = file_names.parse_partition_dir(name)
            path = f"{self._parent}/{name}"
            if parsed is None or parsed[1] or not self._topics(parsed[0].topic) or not os.path.isdir(path):
                continue  # on its way out, moving in, or stray: no log of the cluster
            with suppress(FileNotFoundError):  # a running node has deleted it
                yield PartitionDir(name, path, sum(size for _, size in segments_of(path)))

    def _checkpoints(self, tell: Tell) -> dict[str, dict[str, int]]:
        return {
            name: self._offsets(name, tell)
            for name in (
                file_names.RECOVERY_POINTS,
                file_names.HIGH_WATERMARKS,
                file_names.LOG_START_OFFSETS,
                file_names.CLEANER_OFFSETS,
            )
        }

    def _offsets(self, name: str, tell: Tell) -> dict[str, int]:
        path = f"{self._parent}/{name}"
        try:
            with open(path, "rb") as file:
                return {str(partition): offset for partition, offset in parse_offsets(file.read(), path).items()}
        except FileNotFoundError:
            return {}
        except CorruptFile as problem:
            tell(Problem(DAMAGE, "", path, -1, -1, str(problem).removeprefix(f"{path}: "), FORGET))
            return {}


def _same(problem: Problem) -> tuple[str, str, int, int]:
    return problem.partition, problem.file, problem.position, problem.offset


def _nobody(_problem: Problem) -> None:
    pass


def _nothing(_count: int) -> None:
    pass
