"""The work per sent record, on the compiled code and on its twin."""

import random
from types import ModuleType
from typing import Any

import pytest

from ottla.client.producer.batch import ProducerBatch
from ottla.client.producer.partition_queue import PartitionQueue
from ottla.records.columns import BinaryColumn
from ottla.records.kernel import RecordReader


def batch_of(limit: int = 1000) -> ProducerBatch:
    return ProducerBatch(PartitionQueue("clicks", 0), limit, limit, 0.0, None)  # type: ignore[arg-type]


def opened(twin: ModuleType, partitions: int = 2, **options: Any) -> tuple[Any, Any]:
    """An appender at 5 ms of the clock, with a topic `clicks` and an open batch for each partition."""
    appender = twin.Appender(lambda: 5_999_999)
    open_batches = twin.OpenBatches(
        partitions, options.get("most_sticky_bytes", 1000), options.get("ignores_keys", False)
    )
    appender.topics["clicks"] = open_batches
    for index in range(partitions):
        open_batches.put(index, batch_of(options.get("limit", 1000)))
    return appender, open_batches


def append(appender: Any, value: Any = b"v", key: Any = None, topic: str = "clicks", **options: Any) -> Any:
    names = ("partition", "timestamp_ms", "headers", "on_delivery")
    return appender.append(topic, value, key, *(options.get(name) for name in names))


@pytest.mark.parametrize(
    ("key", "hashed"),
    [
        # Of Kafka's own tests.
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2_is_that_of_javas_producer(twin: ModuleType, key: bytes, hashed: int) -> None:
    assert twin.murmur2(key) == hashed & 0xFFFFFFFF
    assert twin.partition_for_key(key, 1000) == (hashed & 0x7FFFFFFF) % 1000


def test_both_twins_place_any_key_alike() -> None:
    fast = pytest.importorskip("ottla.client.producer._fast_append")
    from ottla.client.producer import _slow_append

    chance = random.Random(7)
    for size in range(200):
        key = chance.randbytes(size)
        assert fast.murmur2(key) == _slow_append.murmur2(key)


def test_a_column_of_keys_is_placed_row_by_row(twin: ModuleType) -> None:
    offsets = b"".join(number.to_bytes(4, "little") for number in (0, 1, 1, 3))
    column = BinaryColumn(offsets, b"abc", b"\5", 1)
    placed = memoryview(twin.partitions_for_column(column, 3, 10, 4)).cast("i").tolist()
    assert placed == [twin.partition_for_key(b"a", 10), 4, twin.partition_for_key(b"bc", 10)]
    with pytest.raises(ValueError, match="no row"):
        twin.partitions_for_column(column, 4, 10, 4)


def test_a_record_goes_into_the_open_batch_of_its_partition(twin: ModuleType) -> None:
    appender, open_batches = opened(twin)
    first = append(appender, b"one", b"k", partition=1)
    second = append(appender, None, None, partition=1, timestamp_ms=7)
    batch = open_batches.get(1)
    assert (first.index, first.timestamp_ms, first.key_size, first.value_size) == (0, 5, 1, 3)
    assert (second.index, second.timestamp_ms, second.key_size, second.value_size) == (1, 7, -1, -1)
    assert (first.topic, first.partition, first.done()) == ("clicks", 0, False)
    records = list(RecordReader(batch.finish()[61:], 0, 5, None, 2))
    assert [(record.key, record.value, record.timestamp) for record in records] == [(b"k", b"one", 5), (None, None, 7)]


def test_a_key_decides_unless_keys_are_ignored(twin: ModuleType) -> None:
    appender, open_batches = opened(twin, partitions=5)
    append(appender, key=b"abc")
    assert open_batches.get(479470107 % 5).record_count == 1
    appender, open_batches = opened(twin, partitions=5, ignores_keys=True)
    open_batches.sticky = 3
    append(appender, key=b"abc")
    assert open_batches.get(3).record_count == 1


def test_records_without_a_key_stick_until_enough_bytes_have_gone_there(twin: ModuleType) -> None:
    appender, open_batches = opened(twin, most_sticky_bytes=100)
    open_batches.sticky = 1
    while open_batches.sticky == 1:
        assert append(appender, b"x" * 20) is not None
    assert open_batches.get(1).record_count == 4
    assert open_batches.sticky == -1
    assert append(appender) is None, "a partition has to be chosen"


@pytest.mark.parametrize(
    "record",
    [
        {"topic": "unknown"},
        {"partition": 2},
        {"partition": -1},
        {"value": "text", "partition": 0},
        {"key": bytearray(b"k"), "partition": 0},
        {"headers": [("a", b"b")], "partition": 0},
        {"value": b"x" * 2000, "partition": 0},
        {},
    ],
)
def test_what_is_not_simple_is_left_alone(twin: ModuleType, record: dict[str, Any]) -> None:
    appender, open_batches = opened(twin)
    append(appender, partition=0)
    assert append(appender, **record) is None
    assert [open_batches.get(index).record_count for index in (0, 1)] == [1, 0]


def test_what_is_not_simple_is_sent_the_long_way(twin: ModuleType) -> None:
    appender, _ = opened(twin)
    appender.send_slowly = lambda *arguments: arguments
    assert appender.send("clicks", b"v", partition=0).index == 0
    assert appender.send("unknown", b"v", b"k", partition=3) == ("unknown", b"v", b"k", 3, None, None, None)


def test_a_callback_is_kept_with_its_delivery(twin: ModuleType) -> None:
    appender, open_batches = opened(twin)
    delivery = append(appender, partition=0, on_delivery=print)
    assert open_batches.get(0).callbacks == [(delivery, print)]


def test_a_topic_grows(twin: ModuleType) -> None:
    open_batches = twin.OpenBatches(1, 100, False)
    open_batches.grow(3)
    assert (open_batches.partition_count, open_batches.get(2)) == (3, None)
    with pytest.raises(IndexError):
        open_batches.get(3)
