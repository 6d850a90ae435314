"""Our producers against a running node: both faces, transactions, restarts, threads, forks."""

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import pyarrow as pa
import pytest

import ottla
import ottla.aio
from ottla.client.errors import (
    ClientClosed,
    ForkedClient,
    InvalidState,
    ProducerFenced,
    RequestTimedOut,
    SerializationFailed,
    UnknownTopicOrPartition,
)
from ottla.client.producer.append import partition_for_key
from tests.clients import confluent_client
from tests.interop.target import a_target

TIMEOUT_S = 60


@pytest.fixture
def producer(bootstrap: str) -> Iterator[ottla.Producer]:
    with ottla.Producer(bootstrap_servers=bootstrap) as made:
        yield made


def values(bootstrap: str, topic: str, count: int, partition: int = 0) -> list[bytes]:
    return [placed.record.value for placed in confluent_client.read(bootstrap, topic, count, partition=partition)]


def committed(bootstrap: str, topic: str) -> list[bytes]:
    """What a consumer that reads committed records finds, up to the end of the topic's one partition."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "committed", "isolation.level": "read_committed",
         "enable.partition.eof": True, "enable.auto.commit": False}
    )  # fmt: skip
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[bytes] = []
    try:
        while True:
            message = consumer.poll(TIMEOUT_S)
            assert message is not None, "neither a record nor the end came"
            if message.error() is not None:
                return found
            found.append(message.value() or b"")
    finally:
        consumer.close()


def test_a_record_is_delivered_where_its_delivery_says(producer: ottla.Producer, bootstrap: str, topic: str) -> None:
    delivery = producer.send(topic, b"value", b"key", timestamp_ms=1234, headers=[("trace", b"7"), ("none", None)])
    assert delivery.result(TIMEOUT_S) == (topic, 0, 0, 1234, 3, 5)
    (placed,) = confluent_client.read(bootstrap, topic, 1)
    record = placed.record
    assert (record.value, record.key, record.timestamp_ms) == (b"value", b"key", 1234)
    assert record.headers == (("trace", b"7"), ("none", None))


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_many_records_are_there_once_and_in_order(bootstrap: str, topic: str, compression: str) -> None:
    done: list[Any] = []
    with ottla.Producer(bootstrap_servers=bootstrap, compression_type=compression) as producer:
        for number in range(5000):
            producer.send(topic, b"%d some words that may be compressed" % number, on_delivery=done.append)
        producer.flush(TIMEOUT_S)
        assert [delivery.result(0).offset for delivery in done] == list(range(5000))
    assert [int(value.split()[0]) for value in values(bootstrap, topic, 5000)] == list(range(5000))


def test_keys_and_values_are_serialized(bootstrap: str, topic: str) -> None:
    with ottla.Producer(bootstrap_servers=bootstrap, key_serializer="string", value_serializer="json") as producer:
        producer.send(topic, {"clicks": 3}, "käse").result(TIMEOUT_S)
        with pytest.raises(SerializationFailed):
            producer.send(topic, object())
    (placed,) = confluent_client.read(bootstrap, topic, 1)
    assert (placed.record.value, placed.record.key) == (b'{"clicks":3}', "käse".encode())


def test_text_without_a_serializer_is_refused(producer: ottla.Producer, topic: str) -> None:
    with pytest.raises(SerializationFailed, match="serializer"):
        producer.send(topic, "text")


def test_threads_share_a_producer(producer: ottla.Producer, bootstrap: str, make_topic: Callable[..., str]) -> None:
    topic = make_topic(partitions=4)

    def send(thread: int) -> None:
        for number in range(2000):
            producer.send(topic, b"%d %d" % (thread, number), partition=thread)

    threads = [threading.Thread(target=send, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT_S)
    producer.flush(TIMEOUT_S)
    for index in range(4):
        assert values(bootstrap, topic, 2000, index) == [b"%d %d" % (index, number) for number in range(2000)]


def test_a_callback_may_take_a_lock_that_a_sender_holds_and_may_send(producer: ottla.Producer, topic: str) -> None:
    lock = threading.Lock()
    seen: list[Any] = []

    def note(delivery: Any) -> None:
        with lock:
            seen.append(delivery)
        if len(seen) == 1:
            producer.send(topic, b"from a callback", on_delivery=note)

    for _ in range(3000):
        with lock:
            producer.send(topic, b"x" * 100, on_delivery=note)
    producer.flush(TIMEOUT_S)
    producer.flush(TIMEOUT_S)
    assert len(seen) == 3001


def test_a_callback_cannot_wait_for_the_producer(producer: ottla.Producer, topic: str) -> None:
    refused: list[Exception] = []

    def wait(delivery: Any) -> None:
        try:
            producer.flush()
        except InvalidState as error:
            refused.append(error)

    producer.send(topic, b"v", on_delivery=wait)
    producer.flush(TIMEOUT_S)
    assert len(refused) == 1


def test_memory_is_bounded(bootstrap: str, topic: str) -> None:
    with ottla.Producer(bootstrap_servers=bootstrap, buffer_memory=100_000, linger_ms=1000) as producer:
        deliveries = [producer.send(topic, b"x" * 1000) for _ in range(2000)]
        assert producer.metrics()["buffer-available-bytes"] >= 0
        producer.flush(TIMEOUT_S)
        assert all(delivery.exception() is None for delivery in deliveries)


def test_a_topic_that_cannot_be_made_is_told_after_max_block_ms() -> None:
    with a_target(auto_create_topics_enable=False) as strict:
        for max_block_ms in (300, 3_000, 30_000):  # A busy machine may need longer to tell anything at all.
            with (
                ottla.Producer(bootstrap_servers=strict.bootstrap, max_block_ms=max_block_ms) as producer,
                pytest.raises((UnknownTopicOrPartition, RequestTimedOut)) as raised,
            ):
                producer.send("not-there", b"v")
            if raised.type is UnknownTopicOrPartition:
                break
    assert raised.type is UnknownTopicOrPartition


def test_partitions_are_told(producer: ottla.Producer, make_topic: Callable[..., str]) -> None:
    infos = producer.partitions_for(make_topic(partitions=3))
    assert [info.partition for info in infos] == [0, 1, 2]
    assert all(info.leader is not None for info in infos)


def test_closing_delivers_what_was_sent_and_ends_the_thread(bootstrap: str, topic: str) -> None:
    producer = ottla.Producer(bootstrap_servers=bootstrap, linger_ms=5000)
    delivery = producer.send(topic, b"last")
    producer.close()
    assert delivery.result(0).offset == 0
    assert not [thread for thread in threading.enumerate() if thread.name == "ottla-producer" and thread.is_alive()]
    with pytest.raises(ClientClosed):
        producer.send(topic, b"too late")
    producer.close()


def test_a_fork_is_told_to_make_its_own(producer: ottla.Producer, topic: str) -> None:
    producer.send(topic, b"mine").result(TIMEOUT_S)
    producer.send(topic, b"an open batch")
    child = os.fork()
    if child == 0:
        try:
            producer.send(topic, b"the child's")
        except ForkedClient:
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    producer.flush(TIMEOUT_S)


def drop(producer: ottla.Producer, topic: str) -> None:
    with producer.transaction():
        producer.send(topic, b"dropped")
        producer.flush(TIMEOUT_S)
        1 / 0  # noqa: B018


async def drop_in_asyncio(producer: ottla.aio.Producer, topic: str) -> None:
    async with producer.transaction():
        await producer.send(topic, b"dropped")
        1 / 0  # noqa: B018


def test_a_transaction_is_committed_or_not_there(bootstrap: str, topic: str) -> None:
    with ottla.Producer(bootstrap_servers=bootstrap, transactional_id=f"{topic}-id") as producer:
        with producer.transaction():
            for number in range(100):
                producer.send(topic, b"kept %d" % number)
        with pytest.raises(ZeroDivisionError):
            drop(producer, topic)
        with producer.transaction():
            producer.send(topic, b"kept at last")
    assert committed(bootstrap, topic) == [b"kept %d" % number for number in range(100)] + [b"kept at last"]


def test_a_newer_producer_fences_off_the_older(bootstrap: str, topic: str) -> None:
    first = ottla.Producer(bootstrap_servers=bootstrap, transactional_id=f"{topic}-id")
    first.begin()
    first.send(topic, b"of the first")
    first.flush(TIMEOUT_S)
    with ottla.Producer(bootstrap_servers=bootstrap, transactional_id=f"{topic}-id") as second:
        with second.transaction():
            second.send(topic, b"of the second")
        with pytest.raises(ProducerFenced) as fenced:
            first.commit()
        assert fenced.value.fatal
        first.close()
    assert committed(bootstrap, topic) == [b"of the second"]


def test_offsets_go_with_the_transaction(bootstrap: str, topic: str) -> None:
    from confluent_kafka import Consumer, TopicPartition

    with ottla.Producer(bootstrap_servers=bootstrap, transactional_id=f"{topic}-id") as producer:
        with producer.transaction():
            producer.send(topic, b"out")
            producer.send_offsets({ottla.TopicPartition(topic, 0): 42}, f"{topic}-group")
        producer.begin()
        producer.send_offsets({ottla.TopicPartition(topic, 0): 99}, f"{topic}-group")
        producer.abort()
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": f"{topic}-group"})
    (place,) = consumer.committed([TopicPartition(topic, 0)], TIMEOUT_S)
    consumer.close()
    assert place.offset == 42


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_node_that_goes_and_comes_back_loses_and_repeats_nothing(how: str) -> None:
    with a_target() as node, ottla.Producer(bootstrap_servers=node.bootstrap, reconnect_backoff_max_ms=200) as producer:
        producer.send("numbers", b"0").result(TIMEOUT_S)
        for number in range(1, 3000):
            producer.send("numbers", b"%d" % number)
            if number % 1000 == 500:
                getattr(node, how)()
                node.start()
        producer.flush(TIMEOUT_S)
        assert values(node.bootstrap, "numbers", 3000) == [b"%d" % number for number in range(3000)]


def test_rows_of_arrow_are_sent_by_their_keys(
    producer: ottla.Producer, bootstrap: str, make_topic: Callable[..., str]
) -> None:
    topic = make_topic(partitions=3)
    keys = [None if number % 10 == 0 else b"key %d" % (number % 7) for number in range(5000)]
    rows = pa.record_batch({"key": pa.array(keys, pa.binary()), "value": [b"%d" % number for number in range(5000)]})
    delivery = producer.send_arrow(topic, rows)
    assert delivery.row_count == 5000
    placed = delivery.result(TIMEOUT_S)
    assert delivery.done()
    assert delivery.exception() is None
    found: dict[int, list[int]] = {}
    for partition in range(3):
        count = end_of(bootstrap, topic, partition)
        found[partition] = [int(value) for value in values(bootstrap, topic, count, partition)] if count else []
        assert found[partition] == sorted(found[partition]), "rows stay in order"
    assert sorted(chain.from_iterable(found.values())) == list(range(5000))
    for number in range(1, 5000, 10):
        expected = partition_for_key(b"key %d" % (number % 7), 3)
        assert number in found[expected]
    assert {one.partition for one in placed} == {partition for partition, those in found.items() if those}


def end_of(bootstrap: str, topic: str, partition: int) -> int:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "ends"})
    _, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), TIMEOUT_S)
    consumer.close()
    return end


def test_rows_of_arrow_may_go_to_one_partition_and_wait_for_room(
    bootstrap: str, make_topic: Callable[..., str]
) -> None:
    topic = make_topic(partitions=2)
    table = pa.table({"value": [b"x" * 500] * 2000, "timestamp": [77] * 2000})
    with ottla.Producer(bootstrap_servers=bootstrap, buffer_memory=100_000, compression_type="lz4") as producer:
        placed = producer.send_arrow(topic, table, partition=1).result(TIMEOUT_S)
        assert {one.partition for one in placed} == {1}
        assert producer.metrics()["buffer-available-bytes"] == 100_000
    records = confluent_client.read(bootstrap, topic, 2000, partition=1)
    assert {(one.record.value, one.record.timestamp_ms) for one in records} == {(b"x" * 500, 77)}


# --- asyncio ---


def test_asyncio_sends_and_awaits(bootstrap: str, topic: str) -> None:
    async def main() -> None:
        seen: list[Any] = []
        async with ottla.aio.Producer(bootstrap_servers=bootstrap) as producer:
            delivery = await producer.send(topic, b"first", on_delivery=seen.append)
            assert (await delivery).offset == 0
            assert seen == [delivery]
            assert (await producer.send_and_wait(topic, b"second")).offset == 1
            deliveries = [await producer.send(topic, b"%d" % number) for number in range(3000)]
            await producer.flush()
            assert [one.result().offset for one in deliveries] == list(range(2, 3002))
            assert [info.partition for info in await producer.partitions_for(topic)] == [0]
            rows = await producer.send_arrow(topic, pa.table({"value": [b"row"] * 10}))
            assert [one.offset for one in await rows] == [3002]

    asyncio.run(main())
    assert len(values(bootstrap, topic, 3012)) == 3012


def test_asyncio_has_transactions(bootstrap: str, topic: str) -> None:
    async def main() -> None:
        async with ottla.aio.Producer(bootstrap_servers=bootstrap, transactional_id=f"{topic}-id") as producer:
            async with producer.transaction():
                await producer.send(topic, b"kept")
            with pytest.raises(ZeroDivisionError):
                await drop_in_asyncio(producer, topic)
            async with producer.transaction():
                await producer.send_offsets({ottla.TopicPartition(topic, 0): 1}, f"{topic}-group")

    asyncio.run(main())
    assert committed(bootstrap, topic) == [b"kept"]


def test_asyncio_waits_for_memory(bootstrap: str, topic: str) -> None:
    async def main() -> None:
        async with ottla.aio.Producer(bootstrap_servers=bootstrap, buffer_memory=50_000) as producer:
            for _ in range(1000):
                await producer.send(topic, b"x" * 1000)
            await producer.flush()
            assert producer.metrics()["record-error-total"] == 0

    asyncio.run(main())


def test_closing_a_producer_aborts_its_open_transaction(bootstrap: str, topic: str) -> None:
    """Else a consumer of committed records would wait for `transaction.timeout.ms` behind it."""
    producer = ottla.Producer(bootstrap_servers=bootstrap, transactional_id=f"{topic}-id")
    producer.begin()
    producer.send(topic, b"half").result(TIMEOUT_S)
    producer.close()
    with ottla.Producer(bootstrap_servers=bootstrap) as other:
        other.send(topic, b"of another").result(TIMEOUT_S)
    assert committed(bootstrap, topic) == [b"of another"]


def test_asyncio_aborts_the_open_transaction_of_a_producer_that_is_closed(bootstrap: str, topic: str) -> None:
    async def main() -> None:
        producer = ottla.aio.Producer(bootstrap_servers=bootstrap, transactional_id=f"{topic}-id")
        await producer.begin()
        await (await producer.send(topic, b"half"))
        await producer.close()
        async with ottla.aio.Producer(bootstrap_servers=bootstrap) as other:
            await other.send_and_wait(topic, b"of another")

    asyncio.run(main())
    assert committed(bootstrap, topic) == [b"of another"]


def test_closing_a_producer_at_once_leaves_its_transaction_to_another_process(bootstrap: str, topic: str) -> None:
    with ottla.Producer(bootstrap_servers=bootstrap, transactional_id=f"{topic}-id") as successor:
        producer = ottla.Producer(bootstrap_servers=bootstrap, transactional_id=f"{topic}-id")
        producer.begin()
        producer.send(topic, b"half").result(TIMEOUT_S)
        producer.close(0)
        with ottla.Admin(bootstrap_servers=bootstrap) as admin:
            assert admin.describe_transactions([f"{topic}-id"])[f"{topic}-id"].state.value == "Ongoing"
        successor.init_transactions()


def test_a_partition_that_is_not_there_is_named(bootstrap: str, topic: str) -> None:
    with ottla.Producer(bootstrap_servers=bootstrap, max_block_ms=300) as producer:
        producer.send(topic, b"v").result(TIMEOUT_S)
        with pytest.raises(UnknownTopicOrPartition, match="no partition 99 after 300 ms: the topic has 1"):
            producer.send(topic, b"v", partition=99)

    async def main() -> None:
        async with ottla.aio.Producer(bootstrap_servers=bootstrap, max_block_ms=300) as producer:
            await producer.send_and_wait(topic, b"v")
            with pytest.raises(UnknownTopicOrPartition, match="no partition 99 after 300 ms: the topic has 1"):
                await producer.send(topic, b"v", partition=99)

    asyncio.run(main())
