"""Our clients and tools work against a broker of version 2.1, and say what it is too old for."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

import ottla
from ottla import Admin, Consumer, NewTopic, Producer, TopicPartition
from ottla.admin import ConfigResource, OffsetSpec
from ottla.errors import UnsupportedVersion
from tests.interop.old_kafka import OldKafka
from tests.interop.tools.beside import our_tool

pytestmark = pytest.mark.interop
WAIT_S = 30


@pytest.fixture(scope="module")
def kafka() -> Iterator[OldKafka]:
    with OldKafka() as node:
        yield node


@pytest.fixture(scope="module")
def admin(kafka: OldKafka) -> Iterator[Admin]:
    with Admin(bootstrap_servers=kafka.bootstrap) as admin:
        yield admin


@pytest.fixture
def topic(admin: Admin, request: pytest.FixtureRequest) -> str:
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
    admin.create_topics([NewTopic(name, partitions=2, replication_factor=1)]).raise_first()
    return name


def read(kafka: OldKafka, topic: str, count: int, **settings: object) -> list[bytes]:
    """The values of so many records, from the beginning."""
    found: list[bytes] = []
    with Consumer({"bootstrap.servers": kafka.bootstrap, "auto.offset.reset": "earliest", **settings}) as consumer:
        if "group.id" in settings:
            consumer.subscribe([topic])
        else:
            consumer.assign([TopicPartition(topic, 0), TopicPartition(topic, 1)])
        while len(found) < count:
            records = consumer.poll(WAIT_S)
            assert records, f"{len(found)} of {count} records came"
            found += [record.value for record in records]
        if "group.id" in settings:
            consumer.commit()
    return sorted(found)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_go_there_and_back(kafka: OldKafka, topic: str, codec: str) -> None:
    sent = [b"%05d" % number for number in range(1000)]
    with Producer(bootstrap_servers=kafka.bootstrap, compression_type=codec) as producer:
        deliveries = [producer.send(topic, value, key=value, headers=[("h", b"x")]) for value in sent]
    assert {delivery.result(WAIT_S).topic for delivery in deliveries} == {topic}
    assert read(kafka, topic, len(sent)) == sent


def test_a_group_goes_on_where_it_was(kafka: OldKafka, topic: str, admin: Admin) -> None:
    group = {"group.id": f"{topic}-group", "enable.auto.commit": False}
    for values in ([b"a", b"b"], [b"c", b"d"]):
        with Producer(bootstrap_servers=kafka.bootstrap) as producer:
            for value in values:
                producer.send(topic, value)
        assert read(kafka, topic, len(values), **group) == values
    assert f"{topic}-group" in {listed.group_id for listed in admin.list_consumer_groups()}
    described = admin.describe_consumer_groups([f"{topic}-group"])[f"{topic}-group"]
    assert described.state.value == "Empty"
    committed = admin.list_consumer_group_offsets(f"{topic}-group")[f"{topic}-group"]
    assert sum(place.offset for place in committed.values() if place is not None) == 4


def test_members_share_a_topic(kafka: OldKafka, topic: str) -> None:
    settings = {"bootstrap.servers": kafka.bootstrap, "group.id": f"{topic}-group"}
    with Consumer(settings) as first, Consumer(settings, group_instance_id=None) as second:
        for consumer in (first, second):
            consumer.subscribe([topic])
        while not (len(first.assignment()) == len(second.assignment()) == 1):
            first.poll(0.1)
            second.poll(0.1)
        assert first.assignment().isdisjoint(second.assignment())


def test_transactions_are_atomic(kafka: OldKafka, topic: str) -> None:
    with Producer(bootstrap_servers=kafka.bootstrap, transactional_id=topic) as producer:
        with producer.transaction():
            producer.send(topic, b"committed")
            producer.send_offsets({TopicPartition(topic, 0): 1}, f"{topic}-group")
        producer.begin()
        producer.send(topic, b"aborted").result(WAIT_S)
        producer.abort()
        with producer.transaction():
            producer.send(topic, b"committed too")
    assert read(kafka, topic, 2, **{"isolation.level": "read_committed"}) == [b"committed", b"committed too"]


def test_the_asyncio_clients_work_too(kafka: OldKafka, topic: str) -> None:
    async def scene() -> list[bytes]:
        async with ottla.aio.Producer(bootstrap_servers=kafka.bootstrap) as producer:
            await producer.send_and_wait(topic, b"hello")
        settings = {"bootstrap.servers": kafka.bootstrap, "auto.offset.reset": "earliest", "group.id": topic}
        async with ottla.aio.Consumer(settings) as consumer:
            consumer.subscribe([topic])
            async for record in consumer:
                return [record.value]
        return []

    assert asyncio.run(asyncio.wait_for(scene(), 2 * WAIT_S)) == [b"hello"]


def test_topics_are_administered(kafka: OldKafka, topic: str, admin: Admin) -> None:
    admin.create_partitions({topic: 3}).raise_first()
    assert len(admin.describe_topics([topic])[topic].partitions) == 3
    described = admin.describe_configs([ConfigResource.topic(topic)])[ConfigResource.topic(topic)]
    assert described["cleanup.policy"].value == "delete"
    with Producer(bootstrap_servers=kafka.bootstrap) as producer:
        producer.send(topic, b"x", partition=2)
    partition = TopicPartition(topic, 2)
    assert admin.list_offsets({partition: OffsetSpec.LATEST})[partition].offset == 1
    assert admin.delete_records({partition: 1})[partition] == 1
    admin.delete_topics([topic]).raise_first()


def test_what_the_broker_is_too_old_for_is_refused_by_name(kafka: OldKafka, topic: str, admin: Admin) -> None:
    with pytest.raises(UnsupportedVersion) as refused:
        admin.incremental_alter_configs({ConfigResource.topic(topic): {"retention.ms": "1"}}).raise_first()
    assert "INCREMENTAL_ALTER_CONFIGS" in str(refused.value).upper().replace(" ", "_")
    settings = {"bootstrap.servers": kafka.bootstrap, "group.id": topic, "group.protocol": "consumer"}
    with Consumer(settings) as consumer:
        consumer.subscribe([topic])
        with pytest.raises(UnsupportedVersion):
            consumer.poll(WAIT_S)


def test_tools_work_against_it(kafka: OldKafka, topic: str) -> None:
    at = ("--bootstrap-server", kafka.bootstrap)
    assert topic in our_tool("kafka-topics", *at, "--list").out.splitlines()
    assert f"Topic: {topic}\t" in our_tool("kafka-topics", *at, "--describe", "--topic", topic).out
    assert our_tool("kafka-console-producer", *at, "--topic", topic, input="one\ntwo\n") == (0, "", "")
    words = ("--topic", topic, "--from-beginning", "--max-messages", "2", "--group", f"{topic}-group")
    consumed = our_tool("kafka-console-consumer", *at, *words)
    assert sorted(consumed.out.splitlines()) == ["one", "two"]
    described = our_tool("kafka-consumer-groups", *at, "--describe", "--group", f"{topic}-group")
    assert described.exit_code == 0
    assert topic in described.out
    offsets = our_tool("kafka-get-offsets", *at, "--topic", topic)
    assert sum(int(line.rpartition(":")[2]) for line in offsets.out.split()) == 2
    assert our_tool("kafka-broker-api-versions", *at).out.startswith(kafka.bootstrap)
    assert our_tool("ottla", "tail", topic, "--from-beginning", "--no-follow", "-b", kafka.bootstrap).exit_code == 0
