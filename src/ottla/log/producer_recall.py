"""Finding again the batches of a producer that a snapshot does not hold.

A snapshot (Kafka's format) has each producer's last batch alone, and a leader needs the last five: that many may be on
their way unanswered, and come again after a clean stop. Taken for out of order, a producer without transactions would
give them another epoch, and they would be in the log twice. So once for each producer that came out of a snapshot, when
it sends what is not in order, the log is read back a little way.
"""

from collections import deque
from collections.abc import Iterator, Sequence

from ottla.base.ports import ColdRead
from ottla.log.producer_state import BATCHES_KEPT, NotedBatch, Producer
from ottla.log.reading import slot_of
from ottla.log.scan import scan_headers
from ottla.log.segment import Segment
from ottla.records.batch import BatchHeader, CorruptBatch

_OFFSETS_READ = 10_000


def recall(producer: Producer, segments: Sequence[Segment], log_start_offset: int) -> bool:
    """Notes what is found; returns whether there was anything. What is not in memory is not waited for."""
    if producer.is_complete or not producer.batches:
        return False
    end_offset = producer.batches[0].first_offset
    start_offset = max(end_offset - _OFFSETS_READ, log_start_offset)
    found: deque[NotedBatch] = deque(maxlen=BATCHES_KEPT - len(producer.batches))
    try:
        for header in _headers(segments, start_offset, end_offset):
            if header.producer_id == producer.producer_id and not header.is_control:
                if header.producer_epoch != producer.epoch:
                    continue
                found.append(
                    NotedBatch(header.last_sequence, header.last_offset, header.last_offset_delta, header.max_timestamp)
                )
    except (ColdRead, CorruptBatch):
        return False
    producer.is_complete = True
    producer.batches.extendleft(reversed(found))
    return bool(found)


def _headers(segments: Sequence[Segment], start_offset: int, end_offset: int) -> Iterator[BatchHeader]:
    """Those of the batches from one offset to before another."""
    for segment in segments[slot_of(segments, start_offset) :]:
        found = segment.find(start_offset)
        if found is None:
            continue
        for _, header in scan_headers(segment.file, found.position, segment.size):
            if header.base_offset >= end_offset:
                return
            yield header
