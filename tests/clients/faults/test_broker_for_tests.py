"""`ottla.testing.Broker`, for those who test without pytest."""

import confluent_kafka
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

import ottla
from ottla.testing import Broker, Cluster
from ottla.testing.broker.topics import TopicRefused, topic_name_for
from ottla.wire.messages import CreateTopicsRequest, ListOffsetsRequest
from tests.interop.wire_connection import WireConnection


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


def test_a_secured_one_comes_back_at_the_same_addresses() -> None:
    with Broker(security="SSL", faults=False) as broker:
        settings = broker.client_settings
        broker.create_topic("kept")
        broker.restart()
        broker.restart(clean=False)
        assert broker.client_settings == settings
        broker.create_topic("after")


def test_every_broker_of_a_secured_cluster_has_a_listener_for_its_clients() -> None:
    with Cluster(2, faults=False, security="SASL_SSL") as cluster:
        cluster.create_topic("kept", partitions=2)
        cluster[1].restart(clean=False)
        with ottla.Producer(cluster.client_settings) as producer:
            places = [producer.send("kept", b"x", partition=number).result(60) for number in (0, 1)]
        assert [place.offset for place in places] == [0, 0]
        with ottla.Admin(cluster.client_settings) as admin:
            addresses = [f"{node.host}:{node.port}" for node in admin.describe_cluster().nodes]
    assert ",".join(addresses) == cluster.client_settings["bootstrap.servers"]


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


@pytest.mark.parametrize("version", [1, 7, 10])
def test_offsets_of_a_topic_can_be_asked_for_at_once(ottla_broker: Broker, ottla_topic: str, version: int) -> None:
    """Also in versions that have no timeout: the request waits until the logs are made."""
    with WireConnection(ottla_broker.bootstrap) as wire:
        for number in range(10):
            name = f"{ottla_topic}-{number}"
            made = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
            wire.send(CreateTopicsRequest(topics=[made], timeout_ms=10_000), 5)
            partition = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=-1)
            topic = ListOffsetsRequest.ListOffsetsTopic(name=name, partitions=[partition])
            assert wire.receive().topics[0].error_code == 0
            found = wire.ask(ListOffsetsRequest(topics=[topic], timeout_ms=10_000), version)
            assert found.topics[0].partitions[0].error_code == 0


def test_a_topic_that_was_made_has_its_place_on_the_disk(ottla_broker: Broker, ottla_topic: str) -> None:
    for number in range(10):
        name = f"{ottla_topic}-{number}"
        ottla_broker.create_topic(name)
        ottla_broker.fill_disk()
        ottla_broker.free_disk()
        produce(ottla_broker, name, "x")
