"""What is done once per sent record, in Python: what the compiled twin must do. See `ottla.client.producer.append`."""

from array import array
from collections.abc import Callable, Generator, Sequence
from threading import get_ident
from typing import TYPE_CHECKING, Any, Final

from ottla.base.ports import Buffer
from ottla.records._slow import cell
from ottla.records.columns import BinaryColumn

if TYPE_CHECKING:
    from ottla.client.producer.batch import ProducerBatch
    from ottla.client.topic_partition import RecordMetadata

_MASK: Final = 0xFFFFFFFF
_MULTIPLIER: Final = 0x5BD1E995
_SEED: Final = 0x9747B28C

OnDelivery = Callable[["Delivery"], None]


def murmur2(key: bytes) -> int:
    """The 32-bit hash that Kafka's clients place keys by, without a sign."""
    size = len(key)
    hashed = _SEED ^ size
    whole = size & ~3
    for at in range(0, whole, 4):
        word = int.from_bytes(key[at : at + 4], "little") * _MULTIPLIER & _MASK
        word = (word ^ word >> 24) * _MULTIPLIER & _MASK
        hashed = (hashed * _MULTIPLIER & _MASK) ^ word
    if size > whole:
        hashed = (hashed ^ int.from_bytes(key[whole:], "little")) * _MULTIPLIER & _MASK
    hashed = (hashed ^ hashed >> 13) * _MULTIPLIER & _MASK
    return hashed ^ hashed >> 15


def partition_for_key(key: bytes, partition_count: int) -> int:
    """Where every Kafka client of Java's kind puts a key."""
    if partition_count <= 0:
        raise ValueError("a topic needs a partition")
    return (murmur2(key) & 0x7FFFFFFF) % partition_count


def partitions_for_column(column: BinaryColumn, rows: int, partition_count: int, keyless: int) -> bytes:
    """An int32 for each row: the partition of its key, or `keyless` where that is null."""
    if partition_count <= 0:
        raise ValueError("a topic needs a partition")
    partitions = array("i")
    for row in range(rows):
        key = cell(column, row)
        partitions.append(keyless if key is None else partition_for_key(key, partition_count))
    return partitions.tobytes()


class Delivery:
    """What becomes of one record: a future, made of its batch and its index in it.

    Has the methods of `concurrent.futures.Future`, and may be awaited where the producer is asyncio's. A record that
    was handed over cannot be called back, so `cancel` never does.
    """

    __slots__ = ("_batch", "index", "key_size", "timestamp_ms", "value_size")

    def __init__(self, batch: "ProducerBatch", index: int, timestamp_ms: int, key_size: int, value_size: int) -> None:
        self._batch = batch
        self.index = index
        self.timestamp_ms = timestamp_ms
        self.key_size = key_size
        self.value_size = value_size

    @property
    def topic(self) -> str:
        return self._batch.topic

    @property
    def partition(self) -> int:
        return self._batch.partition

    def done(self) -> bool:
        return self._batch.is_done

    def cancelled(self) -> bool:
        return False

    def running(self) -> bool:
        return not self._batch.is_done

    def cancel(self) -> bool:
        return False

    def result(self, timeout: float | None = None) -> "RecordMetadata":
        """Where the record is; raises why it is not. Waits at most `timeout` seconds, then raises `TimeoutError`."""
        if not self._batch.is_done:
            self._batch.wait(timeout)
        return self._batch.outcome(self)

    def exception(self, timeout: float | None = None) -> Exception | None:
        """Why the record was not written, or None if it was. Waits as `result` does."""
        if not self._batch.is_done:
            self._batch.wait(timeout)
        return self._batch.error_of(self.index)

    def add_done_callback(self, callback: OnDelivery) -> None:
        """Calls back with this delivery when it is done, on the thread that hears of it; at once if it is done."""
        self._batch.call_when_done(self, callback)

    def __await__(self) -> Generator[Any, None, "RecordMetadata"]:
        return self._batch.awaited(self).__await__()

    def __repr__(self) -> str:
        return self._batch.describe(self.index)


def put(
    batch: "ProducerBatch",
    timestamp_ms: int,
    key: Buffer | None,
    value: Buffer | None,
    headers: Sequence[tuple[str, Buffer | None]],
    on_delivery: OnDelivery | None,
) -> Delivery | None:
    """Appends a record to a batch, and returns what will become of it; None if the batch has no room for it.

    Raises what is wrong with the record, and has done nothing then. Others may append to the same batch without a lock,
    where that is compiled: so which record of the batch it is, is known from the same step that writes it.
    """
    if not batch.append(timestamp_ms, key, value, headers):
        return None
    key_size, value_size = -1 if key is None else len(key), -1 if value is None else len(value)
    delivery = Delivery(batch, batch.record_count - 1, timestamp_ms, key_size, value_size)
    if on_delivery is not None:
        batch.callbacks.append((delivery, on_delivery))
    return delivery


class OpenBatches:
    """One topic's: the batch of each partition that takes records, and where records without a key go now.

    `sticky` is -1 when a partition has to be chosen. That is so, too, once `most_sticky_bytes` have gone to one.
    """

    def __init__(self, partition_count: int, most_sticky_bytes: int, ignores_keys: bool) -> None:
        self.partition_count = partition_count
        self.sticky = -1
        self.sticky_bytes = 0
        self.ignores_keys = ignores_keys
        self._most_sticky_bytes = most_sticky_bytes
        self._batches: list[ProducerBatch | None] = [None] * partition_count

    def get(self, partition: int) -> "ProducerBatch | None":
        if not 0 <= partition < self.partition_count:
            raise IndexError(partition)
        return self._batches[partition]

    def put(self, partition: int, batch: "ProducerBatch | None") -> None:
        if not 0 <= partition < self.partition_count:
            raise IndexError(partition)
        self._batches[partition] = batch

    def grow(self, partition_count: int) -> None:
        self._batches += [None] * (partition_count - self.partition_count)
        self.partition_count = partition_count

    def count_sticky(self, size: int) -> None:
        """So many bytes have gone to the sticky partition."""
        self.sticky_bytes += size
        if self.sticky_bytes >= self._most_sticky_bytes:
            self.sticky = -1


class Appender:
    """Puts a record into the open batch of its partition, if it is as simple as that.

    `append` returns None, and has done nothing, when it is not: a topic that is not open, a partition without an open
    batch, a batch without room, headers, a key or value that is not `bytes`, another thread than that of the event loop
    `runs_in`, if there is one. Then `send` has `send_slowly` do it, which is the owner's. The compiled twin needs no
    lock; this one has to be called with the client's.

    `topics` may be shared with another: a face has an appender of its own, so that what its methods hold is not held by
    the client's thread, too.
    """

    send_slowly: Callable[..., Delivery]

    def __init__(self, now_ns: Callable[[], int], topics: dict[str, OpenBatches] | None = None) -> None:
        self.topics: dict[str, OpenBatches] = {} if topics is None else topics
        self._now_ns = now_ns
        self.runs_in: dict[str, Any] | None = None
        """The attributes of an event loop; `_thread_id` is the thread in which it is running, or None."""

    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        *,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Sequence[tuple[str, Buffer | None]] | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> Delivery:
        """A record on the short way, or else on the long one."""
        delivery = self.append(topic, value, key, partition, timestamp_ms, headers, on_delivery)
        if delivery is None:
            return self.send_slowly(topic, value, key, partition, timestamp_ms, headers, on_delivery)
        return delivery

    def append(
        self,
        topic: str,
        value: Buffer | None,
        key: Buffer | None,
        partition: int | None,
        timestamp_ms: int | None,
        headers: Sequence[tuple[str, Buffer | None]] | None,
        on_delivery: OnDelivery | None,
    ) -> Delivery | None:
        if self.runs_in is not None and self.runs_in.get("_thread_id") != get_ident():
            return None
        open_batches = self.topics.get(topic)
        if open_batches is None or headers:
            return None
        if not (key is None or type(key) is bytes) or not (value is None or type(value) is bytes):
            return None
        sticks = False
        if partition is not None:
            if not 0 <= partition < open_batches.partition_count:
                return None
        elif type(key) is bytes and not open_batches.ignores_keys:
            partition = partition_for_key(key, open_batches.partition_count)
        else:
            partition = open_batches.sticky
            if partition < 0:
                return None
            sticks = True
        batch = open_batches.get(partition)
        if batch is None:
            return None
        if timestamp_ms is None:
            timestamp_ms = self._now_ns() // 1_000_000
        before = batch.size
        delivery = put(batch, timestamp_ms, key, value, (), on_delivery)
        if delivery is not None and sticks:
            open_batches.count_sticky(batch.size - before)
        return delivery
