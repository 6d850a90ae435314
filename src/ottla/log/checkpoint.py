"""The small text files of the data directory, in Apache Kafka's format, replaced atomically.

    0               version
    2               how many entries follow
    orders 0 4711   an entry a line: topic, partition and offset, or leader epoch and start offset

A crash while one is replaced leaves the old or the new content, never a mixture.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Lock

from ottla.base.ids import TopicPartition, Uuid, parse_uuid, uuid_text
from ottla.base.ports import Disk
from ottla.log import file_names
from ottla.log.errors import CorruptFile
from ottla.log.files import read_file, replace_file


def format_checkpoint(entries: Iterable[str]) -> bytes:
    lines = list(entries)
    return "".join(f"{line}\n" for line in ("0", str(len(lines)), *lines)).encode()


def parse_checkpoint(content: bytes, path: str) -> list[list[str]]:
    """The words of every entry. Raises `CorruptFile` when the version or the number of entries is not right.

    An empty file has none: Apache Kafka leaves one for a replica that has not heard of an epoch.
    """
    lines = content.decode("utf-8", "replace").splitlines()
    if not lines:
        return []
    if lines[0] != "0":
        raise CorruptFile(f"{path}: a checkpoint of version 0 starts with 0, not {lines[0]!r}")
    if len(lines) < 2 or not lines[1].isdecimal() or int(lines[1]) != len(lines) - 2:
        raise CorruptFile(f"{path}: announces {lines[1:2]} entries but has {len(lines) - 2}")
    return [line.split() for line in lines[2:]]


def read_offsets(disk: Disk, path: str) -> dict[TopicPartition, int]:
    """A checkpoint of one offset per partition; empty when there is no file, or an empty one, as Kafka starts with."""
    if not disk.exists(path) or disk.size(path) == 0:
        return {}
    return parse_offsets(read_file(disk, path), path)


def parse_offsets(content: bytes, path: str) -> dict[TopicPartition, int]:
    try:
        return {
            TopicPartition(topic, int(partition)): int(offset)
            for topic, partition, offset in parse_checkpoint(content, path)
        }
    except ValueError as problem:
        raise CorruptFile(f"{path}: an entry is not 'topic partition offset': {problem}") from problem


def write_offsets(disk: Disk, path: str, offsets: Mapping[TopicPartition, int]) -> None:
    lines = (f"{partition.topic} {partition.partition} {offset}" for partition, offset in offsets.items())
    replace_file(disk, path, format_checkpoint(lines))


def parse_leader_epochs(content: bytes, path: str) -> list[tuple[int, int]]:
    """(epoch, start offset) pairs in the order of the file."""
    try:
        return [(int(epoch), int(start)) for epoch, start in parse_checkpoint(content, path)]
    except ValueError as problem:
        raise CorruptFile(f"{path}: an entry is not 'epoch offset': {problem}") from problem


def format_leader_epochs(entries: Sequence[tuple[int, int]]) -> bytes:
    return format_checkpoint(f"{epoch} {start}" for epoch, start in entries)


def format_partition_metadata(topic_id: Uuid) -> bytes:
    return f"version: 0\ntopic_id: {uuid_text(topic_id)}".encode()


def parse_partition_metadata(content: bytes, path: str) -> Uuid:
    words = dict(line.split(": ", 1) for line in content.decode("utf-8", "replace").splitlines() if ": " in line)
    try:
        if int(words["version"]) != 0:
            raise ValueError(f"version {words['version']}")
        return parse_uuid(words["topic_id"])
    except (KeyError, ValueError) as problem:
        raise CorruptFile(f"{path}: not a partition.metadata of version 0: {problem}") from problem


def read_topic_id(disk: Disk, directory: str) -> Uuid | None:
    path = f"{directory}/{file_names.PARTITION_METADATA}"
    return parse_partition_metadata(read_file(disk, path), path) if disk.exists(path) else None


# One checkpoint of a log directory: an offset for each of its partitions, in memory as in the file.
#
# Two threads change it: a disk thread, which writes down how far all logs are, and the owner of a log that is about to
# be cut, who lowers what is said of it. They take turns, since both write to the same temporary file first, and since
# each goes by what the other has written.
#
# A lowered offset wins. Who writes down how far logs are reads it from them while nobody else writes (`change`), and
# the owner of a log lowers it there before it is lowered here (`PartitionLog.truncate_to`). So whichever of the two
# comes last, the file says nothing of what has been cut away.

Offsets = dict[TopicPartition, int]


class OffsetCheckpoint:
    """A failing write raises `OSError`, and leaves memory as it was. Any thread may call anything."""

    __slots__ = ("_disk", "_offsets", "_path", "_writing")

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self._path = path
        self._offsets: Offsets = {}
        self._writing = Lock()

    def read(self) -> None:
        """Takes up what the file says; `CorruptFile` if that cannot be read."""
        self._offsets = read_offsets(self._disk, self._path)

    def get(self, partition: TopicPartition) -> int | None:
        return self._offsets.get(partition)

    def change(self, changed: Callable[[Offsets], Offsets]) -> None:
        """Makes durable what `changed` makes of the offsets. It is called while nobody else writes."""
        with self._writing:
            self._write(changed(self._offsets))

    def lower(self, limits: Offsets) -> None:
        """Nothing said of these partitions is beyond these offsets when this returns, durably."""
        with self._writing:
            saved = self._offsets
            lowered = {name: offset for name, offset in limits.items() if offset < saved.get(name, 0)}
            if lowered:
                self._write({**saved, **lowered})

    def forget(self, *partitions: TopicPartition) -> None:
        """Nothing is said of these partitions when this returns, durably."""
        with self._writing:
            if not self._offsets.keys().isdisjoint(partitions):
                self._write({name: offset for name, offset in self._offsets.items() if name not in partitions})

    def _write(self, offsets: Offsets) -> None:
        write_offsets(self._disk, self._path, offsets)
        self._offsets = offsets
