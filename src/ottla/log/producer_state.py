"""What a partition knows of its producers: enough to take every batch once, in order, and to know open transactions.

Theory of operation (KIP-98, KIP-360, KIP-890): for each producer id the partition keeps its epoch and the last five
batches. A batch is checked first (`check`, changes nothing), then written to the log, then noted (`note`); a crash
between the last two loses nothing, because the state is rebuilt from the log. The state as of an offset is saved in a
snapshot file when a segment is rolled and when the log is closed, so a rebuild reads only what came after the newest.

    check -> NONE                          append it
          -> NONE, with a `NotedBatch`     a repetition: acknowledge with the offsets of the first time
          -> OUT_OF_ORDER_SEQUENCE_NUMBER  something between is missing
          -> INVALID_PRODUCER_EPOCH        a zombie
          -> INVALID_TXN_STATE             a plain batch inside of an open transaction
          -> TRANSACTION_COORDINATOR_FENCED  a marker from a coordinator that has been replaced
"""

from collections import deque
from collections.abc import Iterable, Iterator
from enum import Enum
from functools import partial
from struct import Struct
from typing import NamedTuple

from ottla.base.checksum import crc32c
from ottla.base.ports import Buffer
from ottla.log.errors import CorruptFile
from ottla.log.transaction_index import AbortedTransaction
from ottla.records.batch import NO_PRODUCER_EPOCH, NO_SEQUENCE, NO_TIMESTAMP, BatchHeader
from ottla.records.control import EndTransactionMarker
from ottla.wire.errors import ErrorCode

# The `.snapshot` files: what a partition knows of its producers as of the offset in the file's name.
#
# int16 version (1), uint32 CRC-32C of the rest, int32 count, then 46 bytes a producer
#
# A snapshot that does not read back is thrown away, and the state rebuilt from an older one and the log.

_VERSION = 1
_HEAD = Struct(">hIi")
_CHECKED_FROM = 6
_ENTRY = Struct(">qhiqiqiq")
_JAVA_MIN_TABLE = 16


class ProducerRecord(NamedTuple):
    """One producer as a snapshot keeps it; -1 stands for none."""

    producer_id: int
    epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    current_txn_first_offset: int


def format_snapshot(producers: Iterable[ProducerRecord]) -> bytes:
    records = _in_java_order(list(producers))
    body = b"".join(_ENTRY.pack(*record) for record in records)
    head = bytearray(_HEAD.pack(_VERSION, 0, len(records)))
    checksum = crc32c(body, crc32c(bytes(head[_CHECKED_FROM:])))
    head[2:_CHECKED_FROM] = checksum.to_bytes(4, "big")
    return bytes(head) + body


def parse_snapshot(data: Buffer, path: str) -> Iterator[ProducerRecord]:
    if len(data) < _HEAD.size:
        raise CorruptFile(f"{path}: {len(data)} bytes are too few for a producer snapshot")
    version, checksum, count = _HEAD.unpack_from(data)
    if version != _VERSION:
        raise CorruptFile(f"{path}: a producer snapshot has version {_VERSION}, not {version}")
    if crc32c(memoryview(data)[_CHECKED_FROM:]) != checksum:
        raise CorruptFile(f"{path}: the checksum does not match the content")
    if len(data) != _HEAD.size + count * _ENTRY.size:
        raise CorruptFile(f"{path}: announces {count} producers but has {len(data)} bytes")
    return map(ProducerRecord._make, _ENTRY.iter_unpack(memoryview(data)[_HEAD.size :]))


def _in_java_order(records: list[ProducerRecord]) -> list[ProducerRecord]:
    """The order in which Java's HashMap hands out these producer ids, so that the bytes are Apache Kafka's."""
    table = _JAVA_MIN_TABLE
    while len(records) > table * 3 // 4:
        table *= 2

    def bucket(record: ProducerRecord) -> int:
        hash_code = (record.producer_id ^ (record.producer_id >> 32)) & 0xFFFFFFFF
        return (hash_code ^ (hash_code >> 16)) & (table - 1)

    return sorted(records, key=bucket)


BATCHES_KEPT = 5
_MAX_SEQUENCE = 0x7FFFFFFF


class AppendOrigin(Enum):
    """Who wants to append: what the leader of a partition checks, a follower takes as decided."""

    CLIENT = "client"
    COORDINATOR = "coordinator"
    REPLICATION = "replication"


class NotedBatch(NamedTuple):
    """A batch that was taken."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta

    @property
    def first_sequence(self) -> int:
        return (self.last_sequence - self.offset_delta) & _MAX_SEQUENCE


_as_noted = partial(tuple.__new__, NotedBatch)
"""All four fields as one tuple: half the time of the constructor."""


class CompletedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    aborted: bool


class Producer:
    """One producer id as this partition knows it."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "current_txn_first_offset",
        "epoch",
        "is_complete",
        "last_timestamp",
        "producer_id",
    )

    def __init__(self, producer_id: int) -> None:
        self.producer_id = producer_id
        self.epoch = NO_PRODUCER_EPOCH
        self.coordinator_epoch = -1
        self.last_timestamp = NO_TIMESTAMP
        self.current_txn_first_offset = -1
        self.batches: deque[NotedBatch] = deque(maxlen=BATCHES_KEPT)
        self.is_complete = True
        """Whether `batches` are the last that the log has of it; if not, the log may have some before them."""

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    def repetition_of(self, header: BatchHeader) -> NotedBatch | None:
        if header.producer_epoch != self.epoch:
            return None
        for noted in self.batches:
            if noted.last_sequence == header.last_sequence and noted.first_sequence == header.base_sequence:
                return noted
        return None

    def takes_sequence(self, header: BatchHeader) -> bool:
        """Whether this batch comes right after the last. A new epoch starts at 0; of an unknown one any will do."""
        if self.epoch == NO_PRODUCER_EPOCH:
            return True
        if header.producer_epoch != self.epoch:
            return header.base_sequence == 0
        return header.base_sequence == (0 if self.last_sequence == _MAX_SEQUENCE else self.last_sequence + 1)

    def take(self, header: BatchHeader, last_offset: int) -> None:
        """A batch of its has been written, and ends at that offset."""
        max_timestamp = header.max_timestamp
        self.batches.append(_as_noted((header.last_sequence, last_offset, header.last_offset_delta, max_timestamp)))
        self.last_timestamp = max_timestamp

    def enter_epoch(self, epoch: int) -> None:
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches.clear()
            self.is_complete = True

    def record(self) -> ProducerRecord:
        last = self.batches[-1] if self.batches else NotedBatch(NO_SEQUENCE, -1, 0, NO_TIMESTAMP)
        return ProducerRecord(
            self.producer_id,
            self.epoch,
            last.last_sequence,
            last.last_offset,
            last.offset_delta,
            self.last_timestamp,
            self.coordinator_epoch,
            self.current_txn_first_offset,
        )

    @classmethod
    def of_record(cls, record: ProducerRecord) -> "Producer":
        producer = cls(record.producer_id)
        producer.epoch = record.epoch
        producer.coordinator_epoch = record.coordinator_epoch
        producer.last_timestamp = record.timestamp
        producer.current_txn_first_offset = record.current_txn_first_offset
        if record.last_offset >= 0:
            noted = NotedBatch(record.last_sequence, record.last_offset, record.offset_delta, record.timestamp)
            producer.batches.append(noted)
            producer.is_complete = False
        return producer


class ProducerState:
    """All producers of a partition, and the transactions that are open or not yet replicated."""

    __slots__ = ("_ongoing", "_producers", "unreplicated")

    def __init__(self) -> None:
        self._producers: dict[int, Producer] = {}
        # First offset -> producer id, in the order of offsets: transactions begin where the log ends.
        self._ongoing: dict[int, int] = {}
        # First offset -> offset of the marker, for markers at or above the high watermark.
        self.unreplicated: dict[int, int] = {}
        """Transactions that are decided, and whose markers the high watermark has not passed."""

    def __len__(self) -> int:
        return len(self._producers)

    def __iter__(self) -> Iterator[Producer]:
        return iter(self._producers.values())

    def get(self, producer_id: int) -> Producer | None:
        return self._producers.get(producer_id)

    def sender_of_next(self, header: BatchHeader) -> Producer | None:
        """The producer of this batch, if nothing is in the way of it: it is plain and comes right after the last one.

        So do nearly all. For the others there is `check`.
        """
        producer = self._producers.get(header.producer_id)
        if (
            producer is None
            or header.attributes
            or header.producer_epoch != producer.epoch
            or producer.current_txn_first_offset >= 0
            or not producer.batches
            or header.base_sequence != (producer.batches[-1].last_sequence + 1) & _MAX_SEQUENCE
        ):
            return None
        return producer

    def check(self, header: BatchHeader, origin: AppendOrigin) -> tuple[ErrorCode, NotedBatch | None]:
        """Whether a leader takes this data batch, or has taken it before. Changes nothing."""
        producer = self._producers.get(header.producer_id)
        if producer is None:
            return ErrorCode.NONE, None
        if origin is AppendOrigin.CLIENT and (noted := producer.repetition_of(header)):
            return ErrorCode.NONE, noted
        if header.producer_epoch < producer.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH, None
        if origin is AppendOrigin.CLIENT and not producer.takes_sequence(header):
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, None
        if producer.current_txn_first_offset >= 0 and not header.is_transactional:
            return ErrorCode.INVALID_TXN_STATE, None
        return ErrorCode.NONE, None

    def check_marker(self, header: BatchHeader, marker: EndTransactionMarker) -> ErrorCode:
        producer = self._producers.get(header.producer_id)
        if producer is None:
            return ErrorCode.NONE
        if header.producer_epoch < producer.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if marker.coordinator_epoch < producer.coordinator_epoch:
            return ErrorCode.TRANSACTION_COORDINATOR_FENCED
        return ErrorCode.NONE

    def note(self, header: BatchHeader) -> None:
        """A data batch of a producer has been written at the offsets in its header."""
        producer = self._entered(header)
        producer.take(header, header.last_offset)
        if header.is_transactional and producer.current_txn_first_offset < 0:
            producer.current_txn_first_offset = header.base_offset
            self._ongoing[header.base_offset] = header.producer_id

    def note_marker(self, header: BatchHeader, marker: EndTransactionMarker) -> CompletedTransaction | None:
        """A marker has been written; a marker with no open transaction (it had no data here) completes nothing."""
        producer = self._entered(header)
        first_offset = producer.current_txn_first_offset
        producer.coordinator_epoch = marker.coordinator_epoch
        producer.last_timestamp = header.max_timestamp
        producer.current_txn_first_offset = -1
        if first_offset < 0:
            return None
        del self._ongoing[first_offset]
        self.unreplicated[first_offset] = header.base_offset
        return CompletedTransaction(header.producer_id, first_offset, header.base_offset, aborted=not marker.committed)

    def aborted(self, completed: CompletedTransaction) -> AbortedTransaction:
        """The index entry of an aborted transaction: with it gone, the log is stable up to the next open one."""
        stable = next(iter(self._ongoing), completed.last_offset + 1)
        return AbortedTransaction(completed.producer_id, completed.first_offset, completed.last_offset, stable)

    @property
    def has_transactions(self) -> bool:
        """Whether one is open, or has a marker that the high watermark has not passed: or else the log is stable."""
        return bool(self._ongoing or self.unreplicated)

    @property
    def first_undecided_offset(self) -> int | None:
        """Where the oldest open transaction begins."""
        return next(iter(self._ongoing), None)

    @property
    def first_unstable_offset(self) -> int | None:
        """Where the oldest transaction begins that is open, or whose marker is not yet below the high watermark."""
        if not self.unreplicated:
            return next(iter(self._ongoing), None)
        return min((*self.unreplicated, *self._ongoing))

    def on_high_watermark(self, high_watermark: int) -> None:
        if self.unreplicated:
            self.unreplicated = {first: last for first, last in self.unreplicated.items() if last >= high_watermark}

    def expire(self, silent_since_ms: int) -> None:
        """Forgets producers that have been silent for `producer.id.expiration.ms` and have no transaction open."""
        for producer in list(self._producers.values()):
            if producer.current_txn_first_offset < 0 and producer.last_timestamp <= silent_since_ms:
                del self._producers[producer.producer_id]

    def load(self, producers: Iterator[ProducerRecord], silent_since_ms: int) -> None:
        """Starts from a snapshot, without the producers that have expired since."""
        self.clear()
        for record in producers:
            self._producers[record.producer_id] = Producer.of_record(record)
        self.expire(silent_since_ms)
        open_ones = [p for p in self._producers.values() if p.current_txn_first_offset >= 0]
        for producer in sorted(open_ones, key=lambda p: p.current_txn_first_offset):
            self._ongoing[producer.current_txn_first_offset] = producer.producer_id

    def clear(self) -> None:
        self._producers.clear()
        self._ongoing.clear()
        self.unreplicated.clear()

    def records(self) -> Iterator[ProducerRecord]:
        return (producer.record() for producer in self._producers.values())

    def _entered(self, header: BatchHeader) -> Producer:
        producer = self._producers.get(header.producer_id)
        if producer is None:
            producer = self._producers[header.producer_id] = Producer(header.producer_id)
        producer.enter_epoch(header.producer_epoch)
        return producer
