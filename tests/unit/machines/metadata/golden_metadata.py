"""The metadata logs and snapshots that Apache Kafka 4.3.1 wrote, as records."""

from collections.abc import Iterator
from pathlib import Path

from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.records.batch import complete_batches
from ottla.records.reader import read_records
from ottla.wire.message import Message
from ottla.wire.record_values import decode_metadata_record

GOLDEN = Path(__file__).resolve().parents[3] / "golden" / "kafka-4.3.1"


def records_of(file: Path) -> Iterator[tuple[int, Message, int]]:
    """Offset, record and the version it was written in; control records left out."""
    data = file.read_bytes()
    for position, header in complete_batches(data):
        if not header.is_control:
            for record in read_records(data, position, header):
                assert record.value is not None
                yield record.offset, *decode_metadata_record(record.value)


def image_of_log(directory: str, until: int | None = None) -> MetadataImage:
    """Replays a directory's log from its beginning, up to an offset."""
    image = MetadataImage()
    for segment in sorted((GOLDEN / directory / "__cluster_metadata-0").glob("*.log")):
        for offset, record, _ in records_of(segment):
            if until is None or offset < until:
                image.replay(record)
    return image


def image_of_snapshot(file: Path) -> MetadataImage:
    image = MetadataImage()
    for _, record, _ in records_of(file):
        image.replay(record)
    return image
