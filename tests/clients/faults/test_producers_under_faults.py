"""Producers while everything fails that may: no record is lost, none is there twice, and each key's are in order.

A seed chooses the faults. A transactional producer gives up what it must not commit, and sends it again.
"""

from collections.abc import Callable
from random import Random

import confluent_kafka
import pytest

import ottla
from ottla import TopicPartition
from ottla.client.errors import KafkaError
from ottla.testing import Broker

PARTITIONS = 3
ROUNDS = 12
RECORDS_A_ROUND = 60
pytestmark = pytest.mark.ottla_topic(partitions=PARTITIONS)

Harm = Callable[[Broker, str], object]
HARMS: list[Harm] = [
    lambda broker, topic: broker.fail_next("Produce", "NOT_LEADER_OR_FOLLOWER", times=2, topic=topic),
    lambda broker, topic: broker.fail_next("Produce", "NOT_ENOUGH_REPLICAS", topic=topic),
    lambda broker, topic: broker.fail_next("Produce", "REQUEST_TIMED_OUT", topic=topic, effect="after"),
    lambda broker, topic: broker.fail_next("Produce", "NOT_ENOUGH_REPLICAS_AFTER_APPEND", effect="after"),
    lambda broker, topic: broker.drop_connection("Produce"),
    lambda broker, topic: broker.drop_connection("Produce", effect="after"),
    lambda broker, topic: broker.drop_connection("*"),
    lambda broker, topic: broker.fail_next("Metadata", "LEADER_NOT_AVAILABLE", topic=topic),
    lambda broker, topic: broker.delay("Produce", 30, times=2),
    lambda broker, topic: broker.delay("Produce", 30, times=2, effect="after"),
    lambda broker, topic: broker.throttle("Produce", 30),
    lambda broker, topic: broker.restart(clean=False),
    lambda broker, topic: broker.restart(),
]
HARMS_TO_TRANSACTIONS: list[Harm] = [
    *HARMS,
    lambda broker, topic: broker.fail_next("EndTxn", "COORDINATOR_NOT_AVAILABLE"),
    lambda broker, topic: broker.fail_next("AddPartitionsToTxn", "CONCURRENT_TRANSACTIONS", topic=topic),
    lambda broker, topic: broker.drop_connection("EndTxn", effect="after"),
    lambda broker, topic: broker.drop_connection("EndTxn"),
    lambda broker, topic: broker.move_coordinator(transactional_id=topic),
]


def stored(broker: Broker, topic: str) -> list[list[int]]:
    """The numbers in each partition, of committed records, in order."""
    partitions = [TopicPartition(topic, index) for index in range(PARTITIONS)]
    with ottla.Consumer(bootstrap_servers=broker.bootstrap, isolation_level="read_committed") as consumer:
        consumer.assign(partitions)
        consumer.seek_to_beginning(*partitions)
        ends = consumer.end_offsets(partitions)
        found: list[list[int]] = [[] for _ in partitions]
        while any(consumer.position(partition) < ends[partition] for partition in partitions):
            for record in consumer.poll(1.0):
                assert record.value is not None
                found[record.partition].append(int(record.value))
    return found


def expected() -> list[list[int]]:
    return [list(range(index, ROUNDS * RECORDS_A_ROUND, PARTITIONS)) for index in range(PARTITIONS)]


@pytest.mark.parametrize("seed", [0, 1])
def test_our_producer(ottla_broker: Broker, ottla_topic: str, seed: int) -> None:
    random = Random(seed)
    with ottla.Producer(bootstrap_servers=ottla_broker.bootstrap, linger_ms=1, retry_backoff_ms=5) as producer:
        deliveries = []
        for number in range(ROUNDS * RECORDS_A_ROUND):
            if number % RECORDS_A_ROUND == 0:
                random.choice(HARMS)(ottla_broker, ottla_topic)
            deliveries.append(producer.send(ottla_topic, b"%d" % number, partition=number % PARTITIONS))
        offsets = [delivery.result(60).offset for delivery in deliveries]
    assert stored(ottla_broker, ottla_topic) == expected()
    assert offsets == [number // PARTITIONS for number in range(len(offsets))]


@pytest.mark.parametrize("seed", [0])
def test_librdkafkas_producer(ottla_broker: Broker, ottla_topic: str, seed: int) -> None:
    """The same faults for a client that is known to get over them: so they are faults that a client can get over."""
    random = Random(seed)
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": ottla_broker.bootstrap,
            "enable.idempotence": True,
            "retry.backoff.ms": 5,
            "reconnect.backoff.ms": 5,
        }
    )
    for number in range(ROUNDS * RECORDS_A_ROUND):
        if number % RECORDS_A_ROUND == 0:
            random.choice(HARMS)(ottla_broker, ottla_topic)
        producer.produce(ottla_topic, b"%d" % number, partition=number % PARTITIONS)
        producer.poll(0)
    assert producer.flush(60) == 0
    assert stored(ottla_broker, ottla_topic) == expected()


@pytest.mark.parametrize("seed", [11, 17])
def test_our_transactional_producer_is_atomic(ottla_broker: Broker, ottla_topic: str, seed: int) -> None:
    random = Random(seed)
    with ottla.Producer(
        bootstrap_servers=ottla_broker.bootstrap, transactional_id=ottla_topic, linger_ms=1, retry_backoff_ms=5
    ) as producer:
        for first in range(0, ROUNDS * RECORDS_A_ROUND, RECORDS_A_ROUND):
            is_committed = False
            if first:
                random.choice(HARMS_TO_TRANSACTIONS)(ottla_broker, ottla_topic)
            while not is_committed:
                try:
                    with producer.transaction():
                        for number in range(first, first + RECORDS_A_ROUND):
                            producer.send(ottla_topic, b"%d" % number, partition=number % PARTITIONS)
                    is_committed = True
                except KafkaError as error:
                    if error.fatal:
                        raise
    assert stored(ottla_broker, ottla_topic) == expected()
