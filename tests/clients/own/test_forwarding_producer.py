"""Record batches of one log sent on to another as they are: `ForwardingProducer`."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

import ottla
from ottla.base.ids import TopicPartition
from ottla.client.blocking.forwarding_producer import ForwardingProducer
from ottla.client.producer.forwarded_batch import can_be_forwarded
from ottla.records.batch import read_header
from ottla.records.builder import BatchBuilder, build_batch
from ottla.records.header import BatchHeader, Compression
from tests.clients import confluent_client

NOON_MS = 1_700_000_000_000
FOREVER = {"retention_ms": "-1"}
"""The records are years old."""


@pytest.fixture
def producer(bootstrap: str) -> Iterator[ForwardingProducer]:
    with ForwardingProducer(bootstrap_servers=bootstrap) as made:
        yield made


def a_batch(numbers: range, compression: int = Compression.NONE, size: int = 0) -> tuple[BatchHeader, memoryview]:
    """A record for each number, a second apart, as a log would have it."""
    encoded = build_batch(
        [NOON_MS + number * 1000 for number in numbers],
        [b"key %d" % number for number in numbers],
        [b"%d".ljust(size) % number for number in numbers],
        [[("n", b"%d" % number)] for number in numbers],
        compression=compression,
    )
    return read_header(encoded), memoryview(encoded)


def values(bootstrap: str, topic: str, count: int) -> list[int]:
    return [int(placed.record.value) for placed in confluent_client.read(bootstrap, topic, count)]


def read(bootstrap: str, topic: str, count: int) -> list[Any]:
    with ottla.Consumer(bootstrap_servers=bootstrap, isolation_level="read_committed") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        consumer.seek_to_beginning()
        found: list[Any] = []
        while len(found) < count:
            polled = consumer.poll(30)
            assert polled, "nothing comes"
            found += polled
        return found


@pytest.mark.parametrize("codec", Compression, ids=lambda codec: codec.name)
def test_a_forwarded_batch_has_the_records_that_it_had(
    producer: ForwardingProducer, bootstrap: str, make_topic: Callable[..., str], codec: Compression
) -> None:
    topic = make_topic(**FOREVER)
    producer.forward(topic, 0, *a_batch(range(50), codec)).wait(60)
    records = read(bootstrap, topic, 50)
    assert [(one.key, one.value, list(one.headers), one.timestamp) for one in records] == [
        (b"key %d" % number, b"%d" % number, [("n", b"%d" % number)], NOON_MS + number * 1000) for number in range(50)
    ]


def test_records_and_forwarded_batches_keep_their_order(
    producer: ForwardingProducer, bootstrap: str, make_topic: Callable[..., str]
) -> None:
    topic = make_topic(**FOREVER)
    for first in range(0, 400, 20):
        producer.send(topic, b"%d" % first, partition=0)
        forwarded = producer.forward(topic, 0, *a_batch(range(first + 1, first + 20)))
    forwarded.wait(60)
    assert values(bootstrap, topic, 400) == list(range(400))
    assert forwarded.written() == [(381, 19)]


def test_forwarded_batches_belong_to_the_transaction(bootstrap: str, make_topic: Callable[..., str]) -> None:
    topic = make_topic(**FOREVER)
    with ForwardingProducer(bootstrap_servers=bootstrap, transactional_id=f"forwards-{topic}") as producer:
        for number in range(4):
            with suppress(KeyError), producer.transaction():
                forwarded = producer.forward(topic, 0, *a_batch(range(number * 10, number * 10 + 10)))
                if number % 2:
                    forwarded.wait(60)
                    raise KeyError("it is aborted")
    assert [int(one.value) for one in read(bootstrap, topic, 20)] == [*range(10), *range(20, 30)]


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.LZ4])
def test_a_batch_that_is_too_large_for_its_topic_is_split(
    producer: ForwardingProducer, bootstrap: str, make_topic: Callable[..., str], codec: Compression
) -> None:
    topic = make_topic(max_message_bytes="2000", **FOREVER)
    header, encoded = a_batch(range(5_000), codec)
    assert len(encoded) > 4_000
    forwarded = producer.forward(topic, 0, header, encoded)
    forwarded.wait(60)
    assert len(forwarded.written()) > 1
    assert values(bootstrap, topic, 5_000) == list(range(5_000))


def test_forwarding_waits_for_room(bootstrap: str, make_topic: Callable[..., str]) -> None:
    topic = make_topic(**FOREVER)
    with ForwardingProducer(bootstrap_servers=bootstrap, buffer_memory=100_000) as producer:
        for first in range(0, 600, 60):
            producer.forward(topic, 0, *a_batch(range(first, first + 60), size=1_000))
            assert sum(batch.held_bytes for batch in producer._core.accumulator.unfinished()) <= 100_000
    assert values(bootstrap, topic, 600) == list(range(600))


def test_a_batch_is_there_once_though_connections_are_lost(ottla_broker: Any) -> None:
    ottla_broker.create_topic("forwarded", settings={"retention.ms": "-1"})
    settings = {"bootstrap.servers": ottla_broker.bootstrap, "retry.backoff.ms": 20, "reconnect.backoff.ms": 20}
    with ForwardingProducer(settings) as producer:
        for number in range(20):
            if number in (3, 11):
                effect = "before" if number == 3 else "after"
                ottla_broker.drop_connection("Produce", effect=effect, times=2)
            producer.forward("forwarded", 0, *a_batch(range(number * 10, number * 10 + 10)))
    assert values(ottla_broker.bootstrap, "forwarded", 200) == list(range(200))


def test_what_no_producer_might_have_sent_is_told_apart() -> None:
    header, _ = a_batch(range(10))
    assert can_be_forwarded(header)
    assert not can_be_forwarded(header._replace(magic=1))
    assert not can_be_forwarded(header._replace(record_count=9)), "compaction took one"
    for flags in ({"control": True}, {"log_append_time_ms": NOON_MS}, {"delete_horizon_ms": NOON_MS}):
        builder = BatchBuilder(**flags)  # type: ignore[arg-type]
        builder.append(NOON_MS, b"", b"")
        assert not can_be_forwarded(read_header(builder.build()))
