"""Our producer against a node with faults: no record is lost, repeated or out of order, and transactions are atomic."""

import random
from typing import Any

import pytest

import ottla
from ottla.client.errors import KafkaError
from tests.clients import confluent_client

TIMEOUT_S = 60
RECORDS = 2000


@pytest.fixture
def producer(ottla_broker: Any) -> Any:
    with ottla.Producer(
        bootstrap_servers=ottla_broker.bootstrap,
        request_timeout_ms=2000,
        retry_backoff_ms=20,
        retry_backoff_max_ms=200,
        reconnect_backoff_ms=20,
        reconnect_backoff_max_ms=200,
        batch_size=2000,
    ) as made:
        yield made


def send_with(producer: ottla.Producer, topic: str, faults: Any) -> None:
    """Sends numbers, with a fault now and then; all must be there once, in order, where their deliveries say."""
    deliveries = []
    for number in range(RECORDS):
        if number % 200 == 100:
            faults()
        deliveries.append(producer.send(topic, b"%d" % number))
    producer.flush(TIMEOUT_S)
    assert [delivery.result(0).offset for delivery in deliveries] == list(range(RECORDS))


def check(bootstrap: str, topic: str) -> None:
    found = [placed.record.value for placed in confluent_client.read(bootstrap, topic, RECORDS)]
    assert found == [b"%d" % number for number in range(RECORDS)]


@pytest.mark.parametrize("effect", ["before", "after"])
def test_dropped_connections(producer: Any, ottla_broker: Any, ottla_topic: str, effect: str) -> None:
    met = []
    send_with(
        producer, ottla_topic, lambda: met.append(ottla_broker.drop_connection("Produce", effect=effect, times=2))
    )
    check(ottla_broker.bootstrap, ottla_topic)
    assert sum(fault.seen for fault in met) > 0


@pytest.mark.parametrize(
    "error",
    ["NOT_LEADER_OR_FOLLOWER", "NOT_ENOUGH_REPLICAS", "UNKNOWN_TOPIC_OR_PARTITION", "KAFKA_STORAGE_ERROR"],
)
def test_errors_that_may_pass(producer: Any, ottla_broker: Any, ottla_topic: str, error: str) -> None:
    met = []
    send_with(producer, ottla_topic, lambda: met.append(ottla_broker.fail_next("Produce", error, times=3)))
    check(ottla_broker.bootstrap, ottla_topic)
    assert sum(fault.seen for fault in met) > 0


def test_answers_that_come_too_late(producer: Any, ottla_broker: Any, ottla_topic: str) -> None:
    chance = random.Random(1)
    late = iter([True] + [False] * 20)

    def delay() -> None:
        if next(late):
            ottla_broker.delay("Produce", ms=3000, times=1, effect=chance.choice(["before", "after"]))

    send_with(producer, ottla_topic, delay)
    check(ottla_broker.bootstrap, ottla_topic)


def test_restarts_and_crashes(producer: Any, ottla_broker: Any, ottla_topic: str) -> None:
    turns = iter([True, False, False, False, True, False, False, False, False, False])
    clean = iter([True, False])

    def restart() -> None:
        if next(turns):
            ottla_broker.restart(clean=next(clean))

    send_with(producer, ottla_topic, restart)
    check(ottla_broker.bootstrap, ottla_topic)


def test_a_coordinator_that_moves_and_faults_in_every_step_leave_transactions_whole(
    ottla_broker: Any, ottla_topic: str
) -> None:
    """A transaction is committed, or the program hears that it is not and does it again."""
    chance = random.Random(3)
    name = f"{ottla_topic}-id"
    kept: list[bytes] = []
    failed = 0
    with ottla.Producer(
        bootstrap_servers=ottla_broker.bootstrap,
        transactional_id=name,
        request_timeout_ms=2000,
        retry_backoff_ms=20,
        retry_backoff_max_ms=200,
        reconnect_backoff_max_ms=200,
    ) as producer:
        for number in range(25):
            fault = chance.randrange(6)
            if fault == 1:
                ottla_broker.drop_connection("EndTxn", effect=chance.choice(["before", "after"]))
            elif fault == 2:
                ottla_broker.drop_connection("Produce", effect=chance.choice(["before", "after"]))
            elif fault == 3:
                ottla_broker.fail_next("EndTxn", "CONCURRENT_TRANSACTIONS", times=2)
            elif fault == 4:
                ottla_broker.fail_next("Produce", "TOPIC_AUTHORIZATION_FAILED")
            values = [b"%d %d" % (number, part) for part in range(20)]
            while not transact(producer, ottla_topic, values, ottla_broker if fault == 0 else None):
                failed += 1
            kept += values
    assert failed, "some of these faults are abortable"
    assert committed(ottla_broker.bootstrap, ottla_topic) == kept


def transact(producer: ottla.Producer, topic: str, values: list[bytes], mover: Any) -> bool:
    """Whether the values are committed. `mover` is told to move the coordinator before that."""
    try:
        with producer.transaction():
            for value in values:
                producer.send(topic, value, partition=0)
            if mover is not None:
                producer.flush(TIMEOUT_S)
                mover.move_coordinator(transactional_id=f"{topic}-id")
    except KafkaError as error:
        if error.fatal:
            raise
        return False
    return True


def committed(bootstrap: str, topic: str) -> list[bytes]:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "committed",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
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
