"""What one batch may follow another in a log: offsets and leader epochs rise, and producers keep their order.

The rules are those that a leader holds its producers to (KIP-98). Two things are no damage. A compacted log has lost
batches: sequences are compared only where no offset is missing in between. And a producer that was silent for long may
have been forgotten by its leader: it may continue anywhere.

Memory: what is known of each producer of the partition, some 200 bytes.
"""

from typing import Final, NamedTuple

from ottla.records.control import parse_end_transaction_marker
from ottla.records.header import NO_LEADER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, BatchHeader, CorruptBatch

_FORGOTTEN_AFTER_MS: Final = 3_600_000


class Aborted(NamedTuple):
    """A transaction that an abort marker at `last_offset` has ended; `first_offset` is -1 if its start is not there.

    `last_stable_offset` is the most that it can be: that of one that began before all that is there may be lower.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class _Producer:
    __slots__ = ("epoch", "first_offset", "holes", "last_sequence", "timestamp")

    def __init__(self) -> None:
        self.epoch = -1
        self.last_sequence = NO_SEQUENCE
        self.timestamp = -1
        self.holes = 0
        self.first_offset = -1
        """Of its open transaction."""


class BatchOrder:
    """Takes the batches of a log in their order. `next_offset` is what follows the last one.

    `holes_before`: offsets may be missing before this one, because a cleaner has been there.
    """

    def __init__(self, next_offset: int | None = None, holes_before: int = 0) -> None:
        self.next_offset = next_offset
        self.leader_epoch = NO_LEADER_EPOCH
        self.has_holes = False
        self.last_aborted: Aborted | None = None
        """Set by a batch that is an abort marker, and None after any other."""
        self.holes_before = holes_before
        self._holes = 0
        self._producers: dict[int, _Producer] = {}
        self._open: dict[int, int] = {}
        """The first offset of each open transaction by its producer, in order."""

    def skip(self, header: BatchHeader) -> None:
        """A batch comes now that cannot be trusted: what is missing behind it is its fault, and not reported again."""
        self.lose(header.next_offset)

    def lose(self, until: int) -> None:
        """What is there up to an offset cannot be read, and that has been reported."""
        self.next_offset = max(self.next_offset or 0, until)
        self.has_holes = True
        self._holes += 1
        self.last_aborted = None

    def take(self, header: BatchHeader, batch: memoryview) -> list[str]:
        """What is wrong with a batch that comes now. Its checksum is right."""
        problems: list[str] = []
        if header.last_offset_delta < 0 or header.base_offset < 0:
            return [f"it ends at offset {header.last_offset}, before it begins"]
        if self.next_offset is not None:
            if header.base_offset < self.next_offset:
                problems.append(
                    f"it begins at offset {header.base_offset}, and the batch before it ends at {self.next_offset - 1}"
                )
            elif header.base_offset > self.next_offset:
                self._holes += 1
                self.has_holes = True
                if self.next_offset >= self.holes_before:
                    last = header.base_offset - 1
                    problems.append(
                        f"offsets {self.next_offset} to {last} before it are missing, and no cleaner was there"
                    )
        self.next_offset = max(self.next_offset or 0, header.next_offset)
        if header.magic < 2:
            return problems
        if header.partition_leader_epoch < self.leader_epoch:
            problems.append(f"its leader epoch {header.partition_leader_epoch} comes after epoch {self.leader_epoch}")
        self.leader_epoch = max(self.leader_epoch, header.partition_leader_epoch)
        self.last_aborted = None
        if header.producer_id != NO_PRODUCER_ID:
            problems += self._take_producer(header, batch)
        return problems

    def _take_producer(self, header: BatchHeader, batch: memoryview) -> list[str]:
        producer = self._producers.get(header.producer_id)
        if producer is None:
            producer = self._producers[header.producer_id] = _Producer()
        problems: list[str] = []
        who = f"producer {header.producer_id}"
        if header.producer_epoch < producer.epoch:
            problems.append(f"{who} writes with epoch {header.producer_epoch} after epoch {producer.epoch}")
        if header.is_control:
            problems += self._take_marker(header, batch, producer)
        else:
            problems += self._wrong_sequence(header, producer, who)
            producer.last_sequence = header.last_sequence
            if header.is_transactional and producer.first_offset < 0:
                producer.first_offset = self._open[header.producer_id] = header.base_offset
        if header.producer_epoch > producer.epoch and header.is_control:
            producer.last_sequence = NO_SEQUENCE  # its next transaction has a new epoch (KIP-890)
        producer.epoch = max(producer.epoch, header.producer_epoch)
        producer.timestamp = header.max_timestamp
        producer.holes = self._holes
        return problems

    def _wrong_sequence(self, header: BatchHeader, producer: _Producer, who: str) -> list[str]:
        expected = 0
        if header.producer_epoch == producer.epoch:
            expected = (producer.last_sequence + 1) & 0x7FFFFFFF
        elif producer.epoch < 0:
            return []  # the first that is there
        is_comparable = (
            header.base_sequence != NO_SEQUENCE
            and producer.last_sequence != NO_SEQUENCE
            and producer.holes == self._holes
            and abs(header.max_timestamp - producer.timestamp) < _FORGOTTEN_AFTER_MS
        )
        if not is_comparable or header.base_sequence == expected:
            return []
        return [
            f"{who} goes on with sequence {header.base_sequence} of epoch {header.producer_epoch}, and not {expected}"
        ]

    def _take_marker(self, header: BatchHeader, batch: memoryview, producer: _Producer) -> list[str]:
        try:
            marker = parse_end_transaction_marker(batch, 0, header)
        except CorruptBatch as problem:
            return [f"its marker cannot be read: {problem}"]
        if marker is not None:
            self._open.pop(header.producer_id, None)
            if not marker.committed and (producer.first_offset >= 0 or self._holes):
                stable = next(iter(self._open.values()), header.base_offset + 1)
                self.last_aborted = Aborted(header.producer_id, producer.first_offset, header.base_offset, stable)
            producer.first_offset = -1
        return []
