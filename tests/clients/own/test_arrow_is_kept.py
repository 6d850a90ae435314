"""What Arrow's users are given stays as it is, though the buffers that it came in are poisoned and used again."""

import asyncio
import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import ottla
from ottla import aio
from ottla.base.lent import give_back

TIMEOUT_S = 60
PARTITIONS = 3
ROWS = 40_000
CODECS = ["none", "lz4", "zstd", "gzip", "snappy"]
SETTINGS: dict[str, Any] = {"max_partition_fetch_bytes": 140_000, "fetch_max_wait_ms": 20}


def row(number: int) -> tuple[bytes | None, bytes]:
    """A key, or none, and a value. They do not compress well: else one fetch would have them all."""
    noise = random.Random(number).randbytes(400)
    return (b"key %d" % number if number % 3 else None), b"%d " % number + noise


def written(bootstrap: str, topic: str, codec: str) -> None:
    """Through Arrow, from columns that are freed at once."""
    with ottla.Producer(bootstrap_servers=bootstrap, compression_type=codec, batch_size=20_000) as producer:
        deliveries = []
        for first in range(0, ROWS, 5000):
            rows = [row(number) for number in range(first, first + 5000)]
            table = pa.table({"key": [key for key, _ in rows], "value": [value for _, value in rows]})
            deliveries.append(producer.send_arrow(topic, table, partition=first // 5000 % PARTITIONS))
            del rows, table
        for delivery in deliveries:
            delivery.result(TIMEOUT_S)


def check(kept: list[tuple[pa.RecordBatch, list[dict[str, Any]]]]) -> None:
    buffer = bytearray(b"given back")
    give_back(buffer, len(buffer))
    assert buffer != b"given back", "buffers are not poisoned"
    assert len(kept) >= 100
    seen = []
    for batch, as_it_was in kept:
        assert batch.to_pylist() == as_it_was
        batch.validate(full=True)
        seen += [(one["key"], one["value"]) for one in as_it_was]
    assert sorted(seen, key=lambda pair: pair[1]) == sorted(map(row, range(ROWS)), key=lambda pair: pair[1])


@pytest.mark.parametrize("codec", CODECS)
def test_record_batches_that_are_kept_do_not_change(bootstrap: str, make_topic: Callable[..., str], codec: str) -> None:
    topic = make_topic(PARTITIONS)
    written(bootstrap, topic, codec)
    kept: list[tuple[pa.RecordBatch, list[dict[str, Any]]]] = []
    with ottla.Consumer(bootstrap_servers=bootstrap, **SETTINGS) as consumer:
        consumer.assign([ottla.TopicPartition(topic, number) for number in range(PARTITIONS)])
        consumer.seek_to_beginning()
        while sum(batch.num_rows for batch, _ in kept) < ROWS:
            batch = consumer.poll_arrow(TIMEOUT_S)
            assert batch is not None
            kept.append((batch, batch.to_pylist()))
    check(kept)


def test_record_batches_of_asyncio_that_are_kept_do_not_change(bootstrap: str, make_topic: Callable[..., str]) -> None:
    topic = make_topic(PARTITIONS)
    written(bootstrap, topic, "none")
    kept: list[tuple[pa.RecordBatch, list[dict[str, Any]]]] = []

    async def read() -> None:
        async with aio.Consumer(bootstrap_servers=bootstrap, **SETTINGS) as consumer:
            consumer.assign([ottla.TopicPartition(topic, number) for number in range(PARTITIONS)])
            consumer.seek_to_beginning()
            while sum(batch.num_rows for batch, _ in kept) < ROWS:
                batch = await consumer.poll_arrow(TIMEOUT_S)
                assert batch is not None
                kept.append((batch, batch.to_pylist()))

    asyncio.run(read())
    check(kept)
