"""What is known of producers, found again in the log: all of it, or the batches that a snapshot does not have."""

from collections import deque
from collections.abc import Iterator, Sequence

from ottla.base.ports import ColdRead
from ottla.log.producer_snapshots import ProducerSnapshots
from ottla.log.producer_state import BATCHES_KEPT, CompletedTransaction, NotedBatch, Producer, ProducerState
from ottla.log.reading import slot_of
from ottla.log.scan import scan_headers
from ottla.log.segment import Segment
from ottla.records.batch import BatchHeader, CorruptBatch
from ottla.records.control import parse_end_transaction_marker

# Rebuilding what a partition knows of its producers from the newest sound snapshot and the log after it.


def rebuild_producers(
    snapshots: ProducerSnapshots,
    segments: Sequence[Segment],
    log_start_offset: int,
    end_offset: int,
    silent_since_ms: int,
) -> ProducerState:
    """The state as of `end_offset`, where the last of `segments` ends. Snapshots that are of no use are removed."""
    state = ProducerState()
    _note_after(snapshots.load(state, log_start_offset, end_offset, silent_since_ms), state, segments, end_offset)
    return state


def producers_before(
    snapshots: ProducerSnapshots, segments: Sequence[Segment], log_start_offset: int, end_offset: int
) -> ProducerState:
    """The same for an offset within the log: the snapshots stay as they are."""
    state = ProducerState()
    _note_after(snapshots.read(state, log_start_offset, end_offset, 0), state, segments, end_offset)
    return state


def _note_after(offset: int, state: ProducerState, segments: Sequence[Segment], end_offset: int) -> None:
    """Notes what `segments`, the last of which ends at `end_offset`, hold from `offset` on."""
    for slot, segment in enumerate(segments):
        ends = segments[slot + 1].base_offset if slot + 1 < len(segments) else end_offset
        if ends > offset and (found := segment.find(offset)):
            for position, header in scan_headers(segment.file, found[0], segment.size):
                if header.producer_id >= 0:
                    note_written(state, header, segment, position)


def note_written(
    state: ProducerState, header: BatchHeader, segment: Segment, position: int
) -> CompletedTransaction | None:
    """Notes a producer's batch that is in a segment; returns the transaction that it completes, if it is a marker."""
    if not header.is_control:
        state.note(header)
        return None
    # A control batch without records is what cleaning leaves of a marker whose transaction is gone.
    marker = parse_end_transaction_marker(segment.file.read_at(position, header.size))
    return state.note_marker(header, marker) if marker else None


# Finding again the batches of a producer that a snapshot does not hold.
#
# A snapshot (Kafka's format) has each producer's last batch alone, and a leader needs the last five: that many may be
# on their way unanswered, and come again after a clean stop. Taken for out of order, a producer without transactions
# would give them another epoch, and they would be in the log twice. So once for each producer that came out of a
# snapshot, when it sends what is not in order, the log is read back a little way.

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
