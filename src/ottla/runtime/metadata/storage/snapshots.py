"""Snapshots: a `.checkpoint` file is the shortest log that leads to the metadata at some offset (KIP-630).

    00000000000000000141-0000000001.checkpoint     everything before offset 141, the last of it written in epoch 1

It begins with a control batch (header; kraft.version and voters where the voters are data) and ends with another
(footer). What is between them are ordinary batches of metadata records, with offsets of their own that begin at 0.
While it is written its name ends in `.part`, so one that has its name is whole. `bootstrap.checkpoint`, which
formatting leaves, has the same format.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from ottla.base.errors import ProtocolError
from ottla.base.ports import Disk, File
from ottla.log.errors import CorruptFile
from ottla.log.scan import scan_batches
from ottla.machines.decision import VersionedRecord
from ottla.machines.raft.voters import DYNAMIC_VOTERS, STATIC_VOTERS, VoterSet
from ottla.records.batch import checksum_matches, peek_header
from ottla.records.control import KraftMessage
from ottla.runtime.metadata.storage.metadata_batches import control_batch, metadata_batches, read_batch
from ottla.wire.message import Message
from ottla.wire.messages import KRaftVersionRecord, SnapshotFooterRecord, SnapshotHeaderRecord, VotersRecord

CHECKPOINT = ".checkpoint"
PART = ".part"
DELETED = ".deleted"
DAMAGED = ".damaged"

_BATCH_BYTES = 1 << 20


class SnapshotId(NamedTuple):
    """The offset that a snapshot ends before, and the epoch of the last record in it."""

    end_offset: int
    epoch: int

    @property
    def name(self) -> str:
        return f"{self.end_offset:020d}-{self.epoch:010d}{CHECKPOINT}"

    @classmethod
    def of_name(cls, name: str) -> "SnapshotId | None":
        """From a file's name; None if it is not a whole snapshot's."""
        offset, dash, epoch = name[:20], name[20:21], name[21:31]
        if name[31:] != CHECKPOINT or dash != "-" or not (offset.isdecimal() and epoch.isdecimal()):
            return None
        return cls(int(offset), int(epoch))


BOOTSTRAP_ID = SnapshotId(0, 0)
"""The snapshot that formatting leaves where the first voters are data: it holds them, and nothing else (KIP-853)."""


class SnapshotRecords:
    """The metadata records of a snapshot, decoded batch by batch each time they are gone through.

    All of them at once would need several times the memory of the image that they make.
    """

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self._path = path

    def __iter__(self) -> Iterator[Message]:
        """Raises `CorruptFile` for a record that cannot be read."""
        try:
            with opened(self._disk, self._path) as file:
                for _, header, data in scan_batches(file, 0, file.size()):
                    if not header.is_control:
                        yield from read_batch(data, 0, header).records
        except ProtocolError as problem:
            raise CorruptFile(f"{self._path}: {problem}") from problem


class Snapshot(NamedTuple):
    last_contained_log_timestamp: int
    kraft_version: int
    voters: VoterSet | None
    records: Iterable[Message]


def snapshot_batches(
    records: Iterable[VersionedRecord],
    now_ms: int,
    *,
    epoch: int = 0,
    last_contained_log_timestamp: int = 0,
    kraft_version: int = STATIC_VOTERS,
    voters: VoterSet | None = None,
) -> Iterator[bytearray]:
    """The batches of a snapshot in order, made as they are asked for."""
    head: list[KraftMessage] = [SnapshotHeaderRecord(last_contained_log_timestamp=last_contained_log_timestamp)]
    if kraft_version >= DYNAMIC_VOTERS:
        head.append(KRaftVersionRecord(k_raft_version=kraft_version))
        if voters is not None:
            head.append(voters.to_record())
    yield control_batch(head, now_ms, leader_epoch=epoch)
    offset = len(head)
    for batch in metadata_batches(records, now_ms, max_bytes=_BATCH_BYTES, base_offset=offset, leader_epoch=epoch):
        offset += peek_header(batch).record_count
        yield batch
    yield control_batch([SnapshotFooterRecord()], now_ms, base_offset=offset, leader_epoch=epoch)


def write_batches(disk: Disk, path: str, batches: Iterable[bytearray], *, part: str = PART) -> int:
    """Writes a file that has its name only when it is whole and durable; returns its size."""
    position = 0
    with opened(disk, path + part, create=True) as file:
        file.truncate(0)
        for batch in batches:
            file.write_at(position, batch)
            position += len(batch)
        file.sync()
    disk.rename(path + part, path)
    disk.sync_dir(path.rpartition("/")[0])
    return position


def read_snapshot(disk: Disk, path: str) -> Snapshot:
    """What a snapshot says, with its records yet to be gone through: the file must stay until then.

    Raises `CorruptFile` for one that is cut short, damaged or something else.
    """
    timestamp, kraft_version, voters = None, STATIC_VOTERS, None
    is_complete = False
    try:
        with opened(disk, path) as file:
            for position, header, data in scan_batches(file, 0, file.size()):
                if is_complete or not checksum_matches(data, 0, header):
                    raise CorruptFile(f"{path}: the batch at position {position} is damaged, or follows the end")
                for message in read_batch(data, 0, header).control if header.is_control else ():
                    match message:
                        case SnapshotHeaderRecord():
                            timestamp = message.last_contained_log_timestamp
                        case KRaftVersionRecord():
                            kraft_version = message.k_raft_version
                        case VotersRecord():
                            voters = VoterSet.of_record(message)
                        case SnapshotFooterRecord():
                            is_complete = True
    except ProtocolError as problem:
        raise CorruptFile(f"{path}: {problem}") from problem
    if timestamp is None or not is_complete:
        raise CorruptFile(f"{path}: a snapshot without its {'footer' if timestamp is not None else 'header'}")
    return Snapshot(timestamp, kraft_version, voters, SnapshotRecords(disk, path))


def last_contained_log_timestamp(disk: Disk, path: str) -> int:
    """What a snapshot's header says of the age of its newest record."""
    with opened(disk, path) as file:
        for _, header, data in scan_batches(file, 0, file.size()):
            for message in read_batch(data, 0, header).control:
                if isinstance(message, SnapshotHeaderRecord):
                    return message.last_contained_log_timestamp
            break
    raise CorruptFile(f"{path}: a snapshot without its header")


@contextmanager
def opened(disk: Disk, path: str, *, create: bool = False) -> Iterator[File]:
    """A file, closed at the end."""
    file = disk.open(path, create=create)
    try:
        yield file
    finally:
        file.close()
