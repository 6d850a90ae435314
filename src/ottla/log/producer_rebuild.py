"""Rebuilding what a partition knows of its producers from the newest sound snapshot and the log after it."""

from collections.abc import Sequence

from ottla.log.producer_snapshots import ProducerSnapshots
from ottla.log.producer_state import CompletedTransaction, ProducerState
from ottla.log.scan import scan_headers
from ottla.log.segment import Segment
from ottla.records.batch import BatchHeader
from ottla.records.control import parse_end_transaction_marker


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
