"""`ottla.testing.Broker`, for those who test without pytest."""

import confluent_kafka
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from ottla.testing import Broker
from ottla.testing.broker.topics import TopicRefused, topic_name_for


def produce(broker: Broker, topic: str, value: str) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce(topic, value)
    assert producer.flush(20) == 0


def values(broker: Broker, topic: str, count: int) -> list[str]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "readers"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = consumer.consume(count, timeout=20)
    consumer.close()
    return [message.value().decode() for message in found]


def test_a_broker_is_there_for_a_block_of_code() -> None:
    with Broker({"auto.create.topics.enable": "false"}) as broker:
        broker.create_topic("orders", partitions=2)
        produce(broker, "orders", "one")
        log = broker.log
        assert broker.is_running
    assert not broker.is_running
    assert not log.exists()


def test_what_it_stores_survives_restarts_and_kills() -> None:
    with Broker() as broker:
        bootstrap = broker.bootstrap
        broker.create_topic("kept")
        produce(broker, "kept", "before")
        broker.restart()
        produce(broker, "kept", "between")
        broker.restart(clean=False)
        assert broker.bootstrap == bootstrap
        assert values(broker, "kept", 2) == ["before", "between"]


def test_topics_are_refused_with_the_reason_and_deleted() -> None:
    with Broker() as broker:
        broker.create_topic("once")
        with pytest.raises(TopicRefused, match="TOPIC_ALREADY_EXISTS"):
            broker.create_topic("once")
        with pytest.raises(TopicRefused, match="INVALID_CONFIG"):
            broker.create_topic("wrong", settings={"cleanup.policy": "sometimes"})
        broker.delete_topic("once")
        broker.delete_topic("once")
        admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": broker.bootstrap})
        assert "once" not in admin.list_topics(timeout=20).topics


@pytest.mark.parametrize(
    ("test", "name"),
    [("test_x[a b-é]", "test_x-a-b-1f"), ("..", "topic-1f"), ("x" * 400, "x" * 246 + "-1f")],
)
def test_a_topic_has_a_name_that_kafka_allows(test: str, name: str) -> None:
    assert topic_name_for(test, "1f") == name
