"""Transactional producers and read-committed consumers of librdkafka, against a node that stays and one that is killed.

Consumers are given their partitions, and never wait for a rebalance: only transactions are at stake.
"""

import time
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

import ottla
from ottla.records.builder import BatchBuilder
from ottla.wire.messages import ProduceRequest
from tests.clients import confluent_client
from tests.interop.target import Target, a_target
from tests.interop.wire_connection import WireConnection

TIMEOUT_S = 30


def a_producer(bootstrap: str, transactional_id: str, **settings: object) -> Producer:
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": 10_000,
            "linger.ms": 0,
            **confluent_client.RECONNECTS_SOON,
            **settings,
        }
    )
    producer.init_transactions(TIMEOUT_S)
    return producer


def read(bootstrap: str, topic: str, partition: int = 0, isolation: str = "read_committed") -> list[bytes]:
    """All values up to the end that a consumer of this isolation is shown."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "nobody",
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    values: list[bytes] = []
    try:
        consumer.assign([TopicPartition(topic, partition, 0)])
        deadline = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline:
            message = consumer.poll(1)
            if message is None:
                continue
            if message.error():
                return values  # The end of the partition.
            values.append(message.value())
    finally:
        consumer.close()
    raise AssertionError(f"no end of {topic} within {TIMEOUT_S} s; {len(values)} values so far")


@pytest.fixture
def restartable() -> Iterator[Target]:
    with a_target() as running:
        yield running


def test_what_is_committed_is_seen_and_what_is_aborted_is_not(bootstrap: str, topic: str) -> None:
    producer = a_producer(bootstrap, f"commit-and-abort-{topic}")
    for number in range(6):
        producer.begin_transaction()
        producer.produce(topic, b"%d" % number, partition=0)
        producer.produce(topic, b"%d again" % number, partition=0)
        if number % 2:
            producer.abort_transaction(TIMEOUT_S)
        else:
            producer.commit_transaction(TIMEOUT_S)
    seen = read(bootstrap, topic)
    assert seen == [b"0", b"0 again", b"2", b"2 again", b"4", b"4 again"]
    assert len(read(bootstrap, topic, isolation="read_uncommitted")) >= 6


def test_a_transaction_over_several_partitions_is_seen_as_a_whole(bootstrap: str, make_topic) -> None:  # type: ignore[no-untyped-def]
    topic = make_topic(partitions=3)
    producer = a_producer(bootstrap, f"several-{topic}")
    producer.begin_transaction()
    for partition in range(3):
        producer.produce(topic, b"of %d" % partition, partition=partition)
    producer.flush(TIMEOUT_S)
    assert [read(bootstrap, topic, partition) for partition in range(3)] == [[], [], []]
    producer.commit_transaction(TIMEOUT_S)
    assert [read(bootstrap, topic, partition) for partition in range(3)] == [[b"of 0"], [b"of 1"], [b"of 2"]]


def test_a_second_producer_of_the_same_id_fences_the_first(bootstrap: str, topic: str) -> None:
    first = a_producer(bootstrap, f"fenced-{topic}")
    first.begin_transaction()
    first.produce(topic, b"of the first", partition=0)
    first.flush(TIMEOUT_S)
    second = a_producer(bootstrap, f"fenced-{topic}")
    second.begin_transaction()
    second.produce(topic, b"of the second", partition=0)
    second.commit_transaction(TIMEOUT_S)
    with pytest.raises(KafkaException) as refused:
        first.commit_transaction(TIMEOUT_S)
    assert refused.value.args[0].fatal() or refused.value.args[0].txn_requires_abort()
    assert read(bootstrap, topic) == [b"of the second"]


def test_transactions_go_on_over_kills_of_the_node_and_every_one_is_there_once(restartable: Target) -> None:
    """A producer commits numbers, one transaction each in two partitions, while the node is killed under it."""
    confluent_client.Admin(restartable.bootstrap).create("numbers", 2, {})
    producer = a_producer(restartable.bootstrap, "numbers", **{"transaction.timeout.ms": 60_000})
    committed = []
    for number in range(40):
        if number in (10, 25):
            restartable.kill()
            restartable.start()
        while True:
            try:
                producer.begin_transaction()
                producer.produce("numbers", b"%d" % number, partition=0)
                producer.produce("numbers", b"%d" % number, partition=1)
                producer.commit_transaction(TIMEOUT_S)
                committed.append(b"%d" % number)
                break
            except KafkaException as problem:
                error = problem.args[0]
                assert not error.fatal(), error
                if error.txn_requires_abort():
                    producer.abort_transaction(TIMEOUT_S)
                elif error.retriable():
                    producer.commit_transaction(TIMEOUT_S)
                    committed.append(b"%d" % number)
                    break
                else:
                    raise
    assert read(restartable.bootstrap, "numbers", 0) == committed
    assert read(restartable.bootstrap, "numbers", 1) == committed


def test_consuming_and_producing_in_one_transaction_is_exactly_once_over_kills(restartable: Target) -> None:
    """Numbers go from one topic to another. Node and client die on the way, and go on from the offsets."""
    admin = confluent_client.Admin(restartable.bootstrap)
    admin.create("in", 1, {})
    admin.create("out", 1, {})
    source = Producer({"bootstrap.servers": restartable.bootstrap})
    numbers = [b"%d" % number for number in range(60)]
    for number in numbers:
        source.produce("in", number, partition=0)
    assert source.flush(TIMEOUT_S) == 0

    moved = 0
    for life in range(3):
        moved += _move_some(restartable.bootstrap, 20, dies=life == 1)
        if life == 0:
            restartable.kill()
            restartable.start()
    moved += _move_some(restartable.bootstrap, 60 - moved)
    assert moved == 60
    assert read(restartable.bootstrap, "out") == numbers


def _move_some(bootstrap: str, count: int, *, dies: bool = False) -> int:
    """Moves `count` numbers in transactions of five. One that dies leaves its last transaction open."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "movers", "enable.auto.commit": False}
    consumer = Consumer({**settings, "isolation.level": "read_committed"})
    producer = a_producer(bootstrap, "movers")
    moved = 0
    try:
        (place,) = consumer.committed([TopicPartition("in", 0)], TIMEOUT_S)
        place = TopicPartition("in", 0, max(place.offset, 0))
        consumer.assign([place])
        while moved < count:
            producer.begin_transaction()
            messages: list[Message] = []
            while len(messages) < min(5, count - moved):
                messages += consumer.consume(min(5, count - moved) - len(messages), 1)
            for message in messages:
                producer.produce("out", message.value(), partition=0)
            place = TopicPartition("in", 0, messages[-1].offset() + 1)
            producer.send_offsets_to_transaction([place], consumer.consumer_group_metadata(), TIMEOUT_S)
            if dies and moved + len(messages) >= count:
                producer.flush(TIMEOUT_S)
                return moved
            producer.commit_transaction(TIMEOUT_S)
            moved += len(messages)
        return moved
    finally:
        consumer.close()


def test_a_batch_that_waits_for_the_coordinator_is_not_overtaken(
    bootstrap: str, make_topic: Callable[..., str]
) -> None:
    """The second request tells the coordinator of partition 1; the third has the next sequence of partition 0."""
    topic = make_topic(partitions=2)
    with ottla.Producer(bootstrap_servers=bootstrap, transactional_id=topic) as owner:
        owner.init_transactions()
        identity = owner.transaction_identity()
    with WireConnection(bootstrap) as wire:

        def data(partition: int, sequence: int) -> ProduceRequest.PartitionProduceData:
            builder = BatchBuilder(
                producer_id=identity.producer_id,
                producer_epoch=identity.producer_epoch,
                base_sequence=sequence,
                transactional=True,
            )
            builder.append(0, None, b"value")
            return ProduceRequest.PartitionProduceData(index=partition, records=bytes(builder.build()))

        def produce(*batches: tuple[int, int]) -> ProduceRequest:
            topics = [ProduceRequest.TopicProduceData(name=topic, partition_data=[data(*one) for one in batches])]
            return ProduceRequest(transactional_id=topic, acks=-1, timeout_ms=10_000, topic_data=topics)

        wire.ask(produce((0, 0)), 12)
        for request in (produce((0, 1), (1, 0)), produce((0, 2))):
            wire.send(request, 12)
        answers = [one for _ in range(2) for one in wire.receive().responses[0].partition_responses]
        assert [(one.index, one.error_code, one.base_offset) for one in answers] == [(0, 0, 1), (1, 0, 0), (0, 0, 2)]
