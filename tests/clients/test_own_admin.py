"""Our admin against our node: every family of calls, blocking and with asyncio."""

import asyncio
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer

from ottla import Admin, OffsetAndMetadata, TopicPartition, aio
from ottla.admin import (
    HIGH_WATERMARK,
    AlterConfig,
    AlterOperation,
    ConfigResource,
    ConfigSource,
    GroupState,
    GroupType,
    NewTopic,
    OffsetSpec,
    ResourceType,
)
from ottla.errors import (
    GroupIdNotFound,
    GroupSubscribedToTopic,
    InvalidTopic,
    NonEmptyGroup,
    OffsetOutOfRange,
    TopicAlreadyExists,
    UnknownMemberId,
    UnknownTopicOrPartition,
)
from ottla.testing import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"group.initial.rebalance.delay.ms": 0}) as broker:
        yield broker


@pytest.fixture(scope="module")
def admin(broker: Broker) -> Iterator[Admin]:
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        yield admin


def fill(broker: Broker, topic: str, partitions: int, records: int) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(records):
        producer.produce(topic, b"v", partition=number % partitions, timestamp=1000 + number)
    assert producer.flush(20) == 0


def test_topics_are_created_described_grown_and_deleted(admin: Admin) -> None:
    made = admin.create_topics([NewTopic("life", 3, 1, config={"retention.ms": "1000"}), "life2", "no good"])
    assert made["life"].config is not None
    assert (made["life"].partitions, made["life"].config["retention.ms"]) == (3, "1000")
    assert type(made.errors["no good"]) is InvalidTopic
    assert type(admin.create_topics(["life"]).errors["life"]) is TopicAlreadyExists
    assert {"life", "life2"} <= {listing.name for listing in admin.list_topics()}
    described = admin.describe_topics(["life", "nowhere"], partitions_per_page=1)
    assert [(one.partition, one.leader, one.replicas) for one in described["life"].partitions] == [
        (index, 1, (1,)) for index in range(3)
    ]
    with pytest.raises(UnknownTopicOrPartition, match="'nowhere'"):
        described["nowhere"]
    admin.create_partitions({"life": 5}).raise_first()
    topic_id = made["life"].topic_id
    assert topic_id is not None
    assert len(admin.describe_topics_by_id([topic_id])[topic_id].partitions) == 5
    admin.delete_topics(["life2"]).raise_first()
    admin.delete_topics_by_id([topic_id]).raise_first()
    assert {"life", "life2"}.isdisjoint(listing.name for listing in admin.list_topics())


def test_nothing_is_created_when_a_topic_is_only_validated(admin: Admin) -> None:
    admin.create_topics(["unmade"], validate_only=True).raise_first()
    assert type(admin.describe_topics(["unmade"]).errors["unmade"]) is UnknownTopicOrPartition


def test_settings_are_described_changed_and_taken_back(admin: Admin) -> None:
    admin.create_topics(["tuned"]).raise_first()
    tuned, node, nowhere = (ConfigResource.topic("tuned"), ConfigResource.broker(1), ConfigResource.topic("nowhere"))
    described = admin.describe_configs({tuned: None, node: ["node.id"], nowhere: None})
    assert described[tuned]["retention.ms"].is_default
    assert list(described[node]) == ["node.id"]
    assert type(described.errors[nowhere]) is UnknownTopicOrPartition
    admin.incremental_alter_configs({tuned: {"retention.ms": "5000"}}).raise_first()
    changed = admin.describe_configs([tuned], include_synonyms=True)[tuned]["retention.ms"]
    assert (changed.value, changed.source) == ("5000", ConfigSource.DYNAMIC_TOPIC)
    assert changed.synonyms[0].source is ConfigSource.DYNAMIC_TOPIC
    append = AlterConfig("cleanup.policy", "compact", AlterOperation.APPEND)
    admin.incremental_alter_configs({tuned: [append]}).raise_first()
    assert admin.describe_configs([tuned])[tuned]["cleanup.policy"].value == "delete,compact"
    admin.incremental_alter_configs({tuned: {"retention.ms": None}}).raise_first()
    assert admin.describe_configs([tuned])[tuned]["retention.ms"].is_default
    assert tuned in admin.list_config_resources([ResourceType.TOPIC])


def test_offsets_are_found_by_place_and_time_and_records_are_deleted(broker: Broker, admin: Admin) -> None:
    admin.create_topics([NewTopic("placed", 2)]).raise_first()
    fill(broker, "placed", 2, 10)
    zero, one = TopicPartition("placed", 0), TopicPartition("placed", 1)
    assert admin.list_offsets({zero: OffsetSpec.LATEST, one: OffsetSpec.EARLIEST})[zero].offset == 5
    assert admin.list_offsets({one: OffsetSpec.EARLIEST})[one].offset == 0
    found = admin.list_offsets({zero: 1005, one: 9999})
    assert (found[zero].offset, found[zero].timestamp_ms, found[one].offset) == (3, 1006, None)
    assert admin.list_offsets({zero: OffsetSpec.MAX_TIMESTAMP})[zero].offset == 4
    deleted = admin.delete_records({zero: 2, one: HIGH_WATERMARK})
    assert (deleted[zero], deleted[one]) == (2, 5)
    assert admin.list_offsets({zero: OffsetSpec.EARLIEST})[zero].offset == 2
    with pytest.raises(OffsetOutOfRange):
        admin.delete_records({zero: 200})[zero]


def test_groups_are_listed_described_and_deleted_and_their_offsets_changed(broker: Broker, admin: Admin) -> None:
    admin.create_topics([NewTopic("grouped", 2)]).raise_first()
    fill(broker, "grouped", 2, 4)
    zero, one = TopicPartition("grouped", 0), TopicPartition("grouped", 1)
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "crew", "auto.offset.reset": "earliest"})
    consumer.subscribe(["grouped"])
    for _ in range(4):
        message = consumer.poll(20)
        assert message is not None
        assert message.error() is None
    consumer.commit(asynchronous=False)
    [listing] = [group for group in admin.list_groups() if group.group_id == "crew"]
    assert listing == ("crew", GroupType.CLASSIC, "consumer", GroupState.STABLE)
    assert listing in admin.list_consumer_groups(states=[GroupState.STABLE])
    described = admin.describe_consumer_groups(["crew", "nobody"])
    assert described["crew"].members[0].assignment == (zero, one)
    assert (described["crew"].type, described["crew"].coordinator.id) == (GroupType.CLASSIC, 1)
    assert type(described.errors["nobody"]) is GroupIdNotFound
    assert admin.describe_classic_groups(["crew"])["crew"].protocol_data == "range"

    assert type(admin.alter_consumer_group_offsets("crew", {zero: 0}).errors[zero]) is UnknownMemberId
    assert type(admin.delete_consumer_group_offsets("crew", [zero]).errors[zero]) is GroupSubscribedToTopic
    assert type(admin.delete_groups(["crew"]).errors["crew"]) is NonEmptyGroup
    admin.remove_members_from_consumer_group("crew", reason="the test says so").raise_first()
    consumer.close()

    admin.alter_consumer_group_offsets("crew", {zero: 1, one: OffsetAndMetadata(0, "again")}).raise_first()
    committed = admin.list_consumer_group_offsets({"crew": None, "nobody": [zero]})
    assert committed["crew"] == {zero: OffsetAndMetadata(1), one: OffsetAndMetadata(0, "again")}
    assert committed["nobody"] == {zero: None}
    admin.delete_consumer_group_offsets("crew", [zero]).raise_first()
    assert list(admin.list_consumer_group_offsets("crew")["crew"]) == [one]
    admin.delete_groups(["crew"]).raise_first()
    assert "crew" not in {group.group_id for group in admin.list_groups()}


def test_members_of_the_new_protocol_are_described_with_their_target(broker: Broker, admin: Admin) -> None:
    admin.create_topics([NewTopic("modern", 2)]).raise_first()
    config = {"bootstrap.servers": broker.bootstrap, "group.id": "modern", "group.protocol": "consumer"}
    consumer = Consumer(config)
    consumer.subscribe(["modern"])
    partitions = (TopicPartition("modern", 0), TopicPartition("modern", 1))
    for _ in range(200):
        consumer.poll(0.1)
        if len(consumer.assignment()) == 2:
            break
    group = admin.describe_consumer_groups(["modern"])["modern"]
    assert group.type is GroupType.CONSUMER
    assert (group.members[0].assignment, group.members[0].target_assignment) == (partitions, partitions)
    assert group.members[0].subscribed_topics == ("modern",)
    consumer.close()


def test_the_asyncio_admin_has_the_same_methods(broker: Broker) -> None:
    calls = {name for name in vars(Admin) if not name.startswith("_")}
    assert calls == {name for name in vars(aio.Admin) if not name.startswith("_")}

    async def use() -> None:
        async with aio.Admin(bootstrap_servers=broker.bootstrap) as admin:
            (await admin.create_topics(["async"])).raise_first()
            described, listed = await asyncio.gather(admin.describe_topics(["async"]), admin.list_topics())
            assert described["async"].name in {listing.name for listing in listed}
            with pytest.raises(TopicAlreadyExists):
                (await admin.create_topics(["async"])).raise_first()

    asyncio.run(use())
