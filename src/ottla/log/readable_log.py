"""A partition's log as readers see it: a row of segments, and the offsets that say what of it may be read.

Offsets, in the order in which they always are:

    log_start_offset <= last_stable_offset <= high_watermark <= log_end_offset

Nothing here writes to the disk. `PartitionLog` is what appends, deletes and keeps.
"""

from ottla.log.errors import OffsetOutOfRange
from ottla.log.leader_epochs import LeaderEpochs
from ottla.log.outcomes import FileSlice, TimestampAndOffset
from ottla.log.producer_state import ProducerState
from ottla.log.reading import TimeLookup, aborted_transactions, offset_past, read
from ottla.log.segment import Segment
from ottla.log.transaction_index import AbortedTransaction


class ReadableLog:
    """The last of `segments` is the active one, which alone grows."""

    __slots__ = (
        "__weakref__",
        "epochs",
        "high_watermark",
        "log_end_offset",
        "log_start_offset",
        "producers",
        "segments",
    )

    def __init__(
        self,
        segments: list[Segment],
        epochs: LeaderEpochs,
        producers: ProducerState,
        log_start_offset: int,
        log_end_offset: int,
    ) -> None:
        self.segments = segments
        self.epochs = epochs
        self.producers = producers
        self.log_start_offset = log_start_offset
        self.high_watermark = log_start_offset
        self.log_end_offset = log_end_offset

    @property
    def active(self) -> Segment:
        return self.segments[-1]

    @property
    def size(self) -> int:
        return sum(segment.size for segment in self.segments)

    # Reading

    def read(self, offset: int, max_bytes: int, upper_bound: int, *, min_one_batch: bool = False) -> FileSlice:
        """At most `max_bytes` of batches from the one that holds `offset`, none of them at or after `upper_bound`.

        With `min_one_batch` the first batch is whole even if it is larger than `max_bytes` (KIP-74).
        """
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise OffsetOutOfRange(offset, self.log_start_offset, self.log_end_offset)
        return read(self.segments, self.log_end_offset, offset, max_bytes, upper_bound, min_one_batch=min_one_batch)

    def aborted_in(self, from_offset: int, part: FileSlice, upper_bound: int) -> list[AbortedTransaction]:
        """The aborted transactions that a reader of `part` must leave out, which was read from `from_offset` on.

        As Kafka, they are listed up to the next entry of the offset index: some may be just past the part.
        """
        past = offset_past(self.segments, self.log_end_offset, from_offset, part)
        return self.aborted_transactions(from_offset, min(past, upper_bound))

    def aborted_transactions(self, from_offset: int, upper_bound: int) -> list[AbortedTransaction]:
        """The aborted transactions that a reader of [from_offset, upper_bound) must leave out."""
        return aborted_transactions(self.segments, from_offset, upper_bound)

    def offset_for_timestamp(self, timestamp: int) -> TimestampAndOffset | None:
        """The first record at or after `timestamp` (offsetsForTimes)."""
        return self._look_up(timestamp)

    def offset_of_max_timestamp(self) -> TimestampAndOffset | None:
        """The first of the records with the largest timestamp (KIP-734)."""
        return self._look_up(None)

    def _look_up(self, timestamp: int | None) -> TimestampAndOffset | None:
        lookup = self.start_time_lookup(timestamp)
        try:
            return self.with_epoch(lookup.run())
        finally:
            lookup.end()

    def start_time_lookup(self, timestamp: int | None) -> TimeLookup:
        """A lookup of a timestamp, or of the largest one, that another thread can `run`. Its caller ends it."""
        return TimeLookup(self.segments, self.log_start_offset, timestamp)

    def with_epoch(self, found: tuple[int, int] | None) -> TimestampAndOffset | None:
        """What a lookup has found, as the log's owner tells it."""
        return TimestampAndOffset(found[0], found[1], self.epochs.epoch_at(found[1])) if found else None

    # Watermarks

    def advance_high_watermark(self, high_watermark: int) -> None:
        assert high_watermark <= self.log_end_offset, "the high watermark cannot pass the end of the log"
        self.high_watermark = high_watermark
        if self.producers.unreplicated:
            self.producers.on_high_watermark(high_watermark)

    @property
    def last_stable_offset(self) -> int:
        """Up to here every transaction is decided, and the decision replicated."""
        unstable = self.producers.first_unstable_offset
        if unstable is None or unstable >= self.high_watermark:
            return self.high_watermark
        return max(unstable, self.log_start_offset)

    def advance_log_start_offset(self, offset: int) -> bool:
        """DeleteRecords and retention: what is before `offset` is gone. Files follow with `apply_retention`."""
        if offset > self.high_watermark:
            raise OffsetOutOfRange(offset, self.log_start_offset, self.high_watermark)
        if offset <= self.log_start_offset:
            return False
        self.log_start_offset = offset
        self.epochs.truncate_from_start(offset)
        self.producers.on_high_watermark(offset)
        return True
