"""Random but sensible histories of a partition: producers, transactions, epochs. For tests that need much of it.

Everything comes from the `Random` given, so a seed is a history.
"""

from dataclasses import dataclass, field
from random import Random

from ottla.records.builder import BatchBuilder
from ottla.records.control import EndTransactionMarker, build_end_transaction_marker
from ottla.records.header import Compression


@dataclass(slots=True)
class _Producer:
    producer_id: int
    epoch: int = 0
    sequence: int = 0
    in_transaction: bool = False


@dataclass(slots=True)
class BatchSource:
    """Makes the batches that some well-behaved producers would send next."""

    random: Random
    now_ms: int = 1_700_000_000_000
    tombstones: float = 0.0
    """How many of the records delete their key."""
    _made: int = 0
    _producers: list[_Producer] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._producers = [_Producer(producer_id) for producer_id in (7, 8, 9)]

    def next_batch(self) -> bytearray:
        """A plain, idempotent or transactional batch, or the marker that ends a transaction."""
        producer = self.random.choice([None, *self._producers])
        if producer is None:
            return self._data(BatchBuilder(compression=self._compression()))
        if producer.in_transaction and self.random.random() < 0.4:
            return self._marker(producer)
        if not producer.in_transaction and self.random.random() < 0.2:
            producer.epoch, producer.sequence = producer.epoch + 1, 0
        producer.in_transaction = producer.in_transaction or self.random.random() < 0.5
        builder = BatchBuilder(
            compression=self._compression(),
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            base_sequence=producer.sequence,
            transactional=producer.in_transaction,
        )
        batch = self._data(builder)
        producer.sequence += builder.last_offset_delta + 1
        return batch

    def forget_producers(self) -> None:
        """The log lost its end: other producers continue, and the transactions of these stay open."""
        self._producers = [_Producer(producer.producer_id + 10) for producer in self._producers]

    def _compression(self) -> int:
        return self.random.choice([Compression.NONE, Compression.NONE, Compression.LZ4])

    def _data(self, builder: BatchBuilder) -> bytearray:
        for _ in range(self.random.randint(1, 4)):
            self._made += 1
            self.now_ms += self.random.randint(-20, 60)
            value: bytes | None = f"value {self._made} ".encode() * self.random.randint(1, 8)
            if self.tombstones and self.random.random() < self.tombstones:
                value = None
            builder.append(self.now_ms, b"key %d" % self.random.randrange(5), value)
        return builder.build()

    def _marker(self, producer: _Producer) -> bytearray:
        producer.in_transaction = False
        marker = EndTransactionMarker(committed=self.random.random() < 0.5, coordinator_epoch=1)
        return build_end_transaction_marker(marker, producer.producer_id, producer.epoch, self.now_ms)
