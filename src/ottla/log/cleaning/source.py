"""Reading what is to be cleaned. Damage must not be copied: the copy would get a checksum that is right."""

from collections.abc import Iterator

from ottla.log.scan import scan_batches
from ottla.log.segment import Segment
from ottla.records.batch import BatchHeader, CorruptBatch, checksum_matches


def sound_batches(segment: Segment, buffer_bytes: int, start: int = 0) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Every batch from position `start` on; `CorruptBatch` for the first that is not what was written."""
    next_offset = segment.base_offset
    for position, header, data in scan_batches(segment.file, start, segment.size, buffer_bytes):
        if header.base_offset < next_offset or not segment.fits(header.last_offset):
            raise CorruptBatch(f"{segment}: the batch at {position} has an offset that cannot be: {header.base_offset}")
        if not checksum_matches(data, 0, header):
            raise CorruptBatch(f"{segment}: the batch at {position} does not match its checksum")
        yield header, data
        next_offset = header.next_offset
