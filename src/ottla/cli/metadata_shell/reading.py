"""From files to the metadata in them: a snapshot, a segment of the log, or a directory with both.

Apache Kafka's shell reads one file. A directory is ours: the newest snapshot in it, and the log from there on, which
is how a node comes to its metadata. A node may be running on it: a batch that is half written ends the log.
"""

import os
from collections.abc import Iterator
from typing import NamedTuple

from ottla.base.errors import OttlaError, ProtocolError
from ottla.log.disk import OsDisk
from ottla.log.scan import scan_batches
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.records.batch import checksum_matches
from ottla.runtime.metadata.storage.metadata_batches import MetadataBatch, read_batch
from ottla.runtime.metadata.storage.snapshots import CHECKPOINT, SnapshotId

METADATA_DIRECTORY = "__cluster_metadata-0"
SEGMENT = ".log"


class UnreadableMetadata(OttlaError):
    """What was named holds no metadata, or is damaged."""


class Metadata(NamedTuple):
    """The metadata, and how far the log was read that it comes from."""

    image: MetadataImage
    offset: int
    epoch: int
    timestamp_ms: int

    def provenance(self) -> str:
        from datetime import UTC, datetime

        seconds, milliseconds = divmod(self.timestamp_ms, 1000)
        moment = datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None).isoformat()
        fraction = f".{milliseconds:03d}".rstrip("0") if milliseconds else ""  # Java leaves zeros at the end out
        return f"offset {self.offset}, epoch {self.epoch}, time {moment}{fraction}Z[UTC]"


def read_metadata(path: str) -> Metadata:
    """Raises `OttlaError` or `OSError` for what cannot be read."""
    return _replayed(_of_directory(path) if os.path.isdir(path) else _batches(path))


def _of_directory(path: str) -> Iterator[MetadataBatch]:
    inner = os.path.join(path, METADATA_DIRECTORY)
    directory = inner if os.path.isdir(inner) else path
    names = sorted(os.listdir(directory))
    segments = [name for name in names if name.endswith(SEGMENT) and name[: -len(SEGMENT)].isdecimal()]
    snapshots = [found for name in names if (found := SnapshotId.of_name(name))]
    if not segments and not snapshots:
        raise UnreadableMetadata(f"{directory}: no snapshot and no segment of a metadata log is in this directory")
    start = 0
    if snapshots:
        newest = max(snapshots)
        start = newest.end_offset
        for batch in _batches(os.path.join(directory, newest.name)):
            # Offsets in a snapshot are its own; what it stands for are all offsets before its end.
            yield batch._replace(base_offset=start - 1, next_offset=start)
    for name in segments:
        for batch in _batches(os.path.join(directory, name)):
            if batch.base_offset >= start:
                yield batch


def _batches(path: str) -> Iterator[MetadataBatch]:
    file = OsDisk().open(path)
    try:
        for position, header, data in scan_batches(file, 0, file.size()):
            if not checksum_matches(data, 0, header):
                raise UnreadableMetadata(f"{path}: the batch at position {position} is damaged")
            yield read_batch(data, 0, header)
    except ProtocolError as problem:
        what = "snapshot" if path.endswith(CHECKPOINT) else "segment"
        raise UnreadableMetadata(f"{path}: not a {what} of a metadata log: {problem}") from problem
    finally:
        file.close()


def _replayed(batches: Iterator[MetadataBatch]) -> Metadata:
    image = MetadataImage()
    offset, epoch, timestamp_ms = -1, -1, 0
    for batch in batches:
        for record in batch.records:
            image.replay(record)
        if batch.records:
            offset, epoch, timestamp_ms = batch.next_offset - 1, batch.leader_epoch, batch.timestamp_ms
    return Metadata(image, offset, epoch, timestamp_ms)
