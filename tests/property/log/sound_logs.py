"""What must be true of every log that has been opened, whatever happened before: its parts agree with its batches."""

from ottla.log.partition_log import PartitionLog
from ottla.log.producer_recovery import note_written
from ottla.log.producer_state import ProducerState
from ottla.log.segment import Segment
from ottla.log.transaction_index import AbortedTransaction
from ottla.records.batch import BatchHeader, batches


def batches_of(segment: Segment) -> list[tuple[int, BatchHeader]]:
    """Position and header of every batch, read without the indexes and other code of the log."""
    return list(batches(segment.file.read_at(0, segment.size)))


def check_sound(log: PartitionLog, deleted_before: int) -> None:
    """`deleted_before` is the highest offset before which records were ever deleted: some of those may be back."""
    check_offsets(log)
    check_indexes(log)
    check_epochs(log, deleted_before)
    check_producers(log, deleted_before)


def check_offsets(log: PartitionLog) -> None:
    assert log.segments[0].base_offset <= log.log_start_offset
    assert log.log_start_offset <= log.last_stable_offset <= log.high_watermark <= log.log_end_offset
    assert log.recovery_point <= log.log_end_offset


def check_indexes(log: PartitionLog) -> None:
    for segment in log.segments:
        found = dict(batches_of(segment))
        by_last_offset = {header.last_offset: header for header in found.values()}
        for slot in range(len(segment.offset_index)):
            last_offset, position = segment.offset_index.entry(slot)
            assert found[position].last_offset == last_offset
        for slot in range(len(segment.time_index)):
            timestamp, offset = segment.time_index.entry(slot)
            assert by_last_offset[offset].max_timestamp == timestamp
        latest = max((header.max_timestamp for header in found.values()), default=-1)
        assert segment.max_timestamp[0] == latest


def check_epochs(log: PartitionLog, deleted_before: int) -> None:
    """Deleted records that are back, because the crash came before their deletion was durable, may have no epoch."""
    start = max(log.log_start_offset, deleted_before)
    for segment in log.segments:
        for _, header in batches_of(segment):
            if header.last_offset >= start:
                known = log.epochs.epoch_at(max(header.base_offset, start))
                assert known == header.partition_leader_epoch


def check_producers(log: PartitionLog, deleted_before: int) -> None:
    """The state must be what the log's batches say. Producers that are only in deleted ones may be known besides."""
    start = max(log.log_start_offset, deleted_before)
    state = ProducerState()
    for segment in log.segments:
        aborted: list[AbortedTransaction] = []
        for position, header in batches_of(segment):
            if header.producer_id >= 0 and header.last_offset >= start:
                completed = note_written(state, header, segment, position)
                if completed and completed.aborted:
                    aborted.append(state.aborted(completed))
        indexed = {entry.last_offset: entry for entry in segment.transaction_index.entries()}
        for entry in aborted:
            known = indexed.pop(entry.last_offset, None)
            assert known is not None, "an aborted transaction that is not in the index"
            assert known.producer_id == entry.producer_id
            assert known.first_offset <= entry.first_offset
        for entry in indexed.values():
            assert entry.first_offset < start, "an aborted transaction that never was"
    if state.first_undecided_offset is not None:
        undecided = log.producers.first_undecided_offset
        assert undecided is not None
        assert undecided <= state.first_undecided_offset
    for producer in state:
        noted = log.producers.get(producer.producer_id)
        assert noted is not None
        assert (noted.epoch, noted.last_timestamp) == (producer.epoch, producer.last_timestamp)
        if producer.batches:
            # A snapshot keeps the time of the last marker, not of the last batch; sequence and offset are what counts.
            assert noted.batches[-1][:3] == producer.batches[-1][:3]
