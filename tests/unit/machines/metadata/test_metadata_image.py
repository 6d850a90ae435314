"""The image: what each kind of record changes, and what a batch's delta tells of it."""

import pytest

from ottla.base.ids import Uuid
from ottla.machines.metadata.image.configs_image import ConfigResource, ResourceType
from ottla.machines.metadata.image.delta import MetadataDelta, delta_between
from ottla.machines.metadata.image.metadata_errors import CorruptMetadataError, UnsupportedMetadataError
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.wire.message import Message
from ottla.wire.messages import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ClearElrRecord,
    ConfigRecord,
    CreateTopicsRequest,
    EndTransactionRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProduceRequest,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    ZkMigrationStateRecord,
)
from tests.unit.machines.metadata.controllers import ControllerUnderTest, one_node

ID = Uuid(b"the id of orders")


def orders(*more: Message) -> MetadataImage:
    """A topic with one partition on brokers 1, 2 and 3, and what `more` records make of it."""
    image = MetadataImage()
    image.replay(TopicRecord(name="orders", topic_id=ID))
    image.replay(
        PartitionRecord(
            topic_id=ID, partition_id=0, replicas=(1, 2, 3), isr=(1, 2, 3), leader=1, leader_epoch=4, partition_epoch=7
        )
    )
    for record in more:
        image.replay(record)
    return image


def change(**fields: object) -> PartitionChangeRecord:
    return PartitionChangeRecord(topic_id=ID, partition_id=0, **fields)  # type: ignore[arg-type]


def test_a_change_leaves_alone_what_it_does_not_name() -> None:
    partition = orders(change(isr=(1, 2))).topics.by_name["orders"].partitions[0]
    assert (partition.isr, partition.replicas, partition.leader) == ((1, 2), (1, 2, 3), 1)
    assert (partition.leader_epoch, partition.partition_epoch) == (4, 8)


def test_new_partitions_that_are_alike_are_one_object_until_one_of_them_changes() -> None:
    image = MetadataImage()
    image.replay(TopicRecord(name="orders", topic_id=ID))
    for number, replicas in enumerate(((1, 2), (1, 2), (2, 1), (1, 2))):
        place = {"replicas": replicas, "isr": replicas, "leader": replicas[0]}
        image.replay(PartitionRecord(topic_id=ID, partition_id=number, leader_epoch=0, partition_epoch=0, **place))
    first, second, other, last = image.topics.by_name["orders"].partitions.values()
    assert first is second is last
    assert other is not first
    copied = image.copy()
    copied.replay(PartitionChangeRecord(topic_id=ID, partition_id=1, isr=(1,)))
    changed = copied.topics.by_name["orders"].partitions
    assert [changed[number].isr for number in range(4)] == [(1, 2), (1,), (2, 1), (1, 2)]
    assert image.topics.by_name["orders"].partitions[1] is first


def test_the_records_of_many_new_partitions_are_those_of_each() -> None:
    node = ControllerUnderTest()
    node.start(1, 2)
    topic = CreateTopicsRequest.CreatableTopic(name="orders", num_partitions=40, replication_factor=2)
    decision = node.controller.decide(CreateTopicsRequest(topics=[topic], timeout_ms=1000), 7, node.now_ms)
    made = [record.message for record in decision.records if isinstance(record.message, PartitionRecord)]
    assert [record.partition_id for record in made] == list(range(40))
    node.do(decision)
    partitions = node.image.topics.by_name["orders"].partitions
    topic_id = node.image.topics.by_name["orders"].id
    assert made == [partitions[number].record(topic_id, number) for number in range(40)]


@pytest.mark.parametrize("leader", [2, 1, -1])
def test_naming_a_leader_starts_a_leader_epoch_even_if_it_is_the_same(leader: int) -> None:
    partition = orders(change(leader=leader)).topics.by_name["orders"].partitions[0]
    assert (partition.leader, partition.leader_epoch, partition.partition_epoch) == (leader, 5, 8)


def test_an_empty_list_is_a_change_and_null_is_none() -> None:
    image = orders(change(isr=(), eligible_leader_replicas=(1,), last_known_elr=(1,)), change(leader=-1))
    partition = image.topics.by_id[ID].partitions[0]
    assert (partition.isr, partition.eligible_leader_replicas, partition.last_known_elr) == ((), (1,), (1,))


@pytest.mark.parametrize("name", ["orders", ""])
def test_clearing_the_elr_is_one_change_of_each_partition_that_has_one(name: str) -> None:
    clear = ClearElrRecord(topic_name=name)
    partition = orders(change(eligible_leader_replicas=(2,)), clear, clear).topics.by_id[ID].partitions[0]
    assert (partition.eligible_leader_replicas, partition.partition_epoch) == ((), 9)


def test_directories_are_unknown_in_records_from_before_kip_858() -> None:
    partition = orders().topics.by_id[ID].partitions[0]
    assert partition.directories == (bytes(16),) * 3
    assert partition.directory(2) == bytes(16)
    assert partition.directory(4) is None


def test_a_topics_settings_go_with_it() -> None:
    image = orders(
        ConfigRecord(resource_type=ResourceType.TOPIC, resource_name="orders", name="retention.ms", value="1"),
        ConfigRecord(resource_type=ResourceType.BROKER, resource_name="", name="log.retention.ms", value="2"),
        RemoveTopicRecord(topic_id=ID),
    )
    assert image.topics.by_name == image.topics.by_id == {}
    assert image.configs.by_resource == {ConfigResource(ResourceType.BROKER, ""): {"log.retention.ms": "2"}}


def test_a_setting_without_a_value_is_deleted() -> None:
    image = orders()
    for value in ("1", None):
        image.replay(
            ConfigRecord(resource_type=ResourceType.TOPIC, resource_name="orders", name="retention.ms", value=value)
        )
    assert image.configs.by_resource == {}


def test_names_that_differ_in_dots_and_underscores_collide() -> None:
    image = MetadataImage()
    for number, name in enumerate(("a.b_c", "ab")):
        image.replay(TopicRecord(name=name, topic_id=Uuid(bytes([1, number]) * 8)))
    assert image.topics.colliding_with("a_b.c") == "a.b_c"
    assert image.topics.colliding_with("a-b-c") is None
    assert image.copy().topics.colliding_with("a_b_c") == "a.b_c"
    image.replay(RemoveTopicRecord(topic_id=Uuid(bytes([1, 0]) * 8)))
    assert image.topics.colliding_with("a_b.c") is None


def test_old_logs_fence_with_records_of_their_own() -> None:
    image = MetadataImage()
    image.replay(RegisterBrokerRecord(broker_id=5, broker_epoch=9, fenced=True))
    image.replay(UnfenceBrokerRecord(id=5, epoch=9))
    assert image.brokers.by_id[5].is_active
    image.replay(FenceBrokerRecord(id=5, epoch=9))
    assert image.brokers.by_id[5].fenced


def test_a_feature_at_level_zero_is_as_if_never_set() -> None:
    image = one_node().image
    image.replay(FeatureLevelRecord(name="group.version", feature_level=0))
    image.replay(FeatureLevelRecord(name="kraft.version", feature_level=1))
    assert "group.version" not in image.features.levels
    assert image.features.level("group.version") == 0
    assert "kraft.version" not in image.features.levels, "it is the Raft layer's"


def test_a_log_of_a_later_release_is_refused() -> None:
    with pytest.raises(UnsupportedMetadataError, match=r"metadata\.version 99; this version reads 7 to 30"):
        MetadataImage().replay(FeatureLevelRecord(name="metadata.version", feature_level=99))


def test_a_transaction_happens_at_its_end() -> None:
    image, delta = orders(BeginTransactionRecord(name="many")), MetadataDelta()
    image.replay(change(leader=2), delta)
    assert image.in_transaction
    assert image.topics.by_id[ID].partitions[0].leader == 1
    assert not delta
    image.replay(EndTransactionRecord(), delta)
    assert not image.in_transaction
    assert image.topics.by_id[ID].partitions[0].leader == 2
    assert delta.partitions[ID, 0].leader == 1  # type: ignore[union-attr]


def test_an_aborted_transaction_never_happens() -> None:
    image = orders(BeginTransactionRecord(), change(leader=2), AbortTransactionRecord(reason="failover"))
    assert not image.in_transaction
    assert image.topics.by_id[ID].partitions[0].leader == 1


def test_a_copy_goes_its_own_way() -> None:
    image = orders()
    copied = image.copy()
    image.replay(change(leader=2))
    image.replay(ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value="1"))
    assert copied.topics.by_id[ID].partitions[0].leader == 1
    assert copied.configs.by_resource == {}
    copied.replay(RemoveTopicRecord(topic_id=ID))
    assert "orders" in image.topics.by_name


@pytest.mark.parametrize("record", [NoOpRecord(), ZkMigrationStateRecord()])
def test_some_records_change_nothing(record: Message) -> None:
    delta = MetadataDelta()
    image = orders()
    image.replay(record, delta)
    assert not delta


@pytest.mark.parametrize(
    "record",
    [
        TopicRecord(name="orders", topic_id=Uuid(b"another topic id")),
        TopicRecord(name="another", topic_id=ID),
        PartitionRecord(topic_id=Uuid(b"another topic id")),
        PartitionRecord(topic_id=ID, partition_id=1, replicas=(1,), directories=(Uuid(b"d" * 16), Uuid(b"e" * 16))),
        PartitionChangeRecord(topic_id=ID, partition_id=1),
        RemoveTopicRecord(topic_id=Uuid(b"another topic id")),
        ClearElrRecord(topic_name="another"),
        FenceBrokerRecord(id=1, epoch=1),
        UnregisterBrokerRecord(broker_id=1, broker_epoch=1),
        EndTransactionRecord(),
        AbortTransactionRecord(),
        ProduceRequest(),
    ],
)
def test_a_record_that_does_not_follow_stops_the_loading(record: Message) -> None:
    with pytest.raises(CorruptMetadataError):
        orders().replay(record)


def test_a_delta_knows_what_partitions_were() -> None:
    image, delta = orders(), MetadataDelta()
    image.replay(change(leader=2), delta)
    image.replay(change(isr=(2, 3), replicas=(2, 3)), delta)
    (changed,) = delta.partition_changes(image)
    assert changed.before is not None
    assert (changed.before.leader, changed.after.leader) == (1, 2)
    assert (changed.topic.name, changed.partition_id) == ("orders", 0)
    assert changed.before.leader_epoch < changed.after.leader_epoch
    assert (changed.before.replicas, changed.after.replicas) == ((1, 2, 3), (2, 3))


def test_a_deleted_topic_is_in_the_delta_as_it_was() -> None:
    image, delta = orders(), MetadataDelta()
    image.replay(change(leader=2), delta)
    image.replay(RemoveTopicRecord(topic_id=ID), delta)
    assert delta.partitions == {}
    assert delta.topics_deleted[ID].name == "orders"
    assert delta.topics_deleted[ID].partitions[0].leader == 1
    assert list(delta.partition_changes(image)) == []


def test_a_topic_that_came_and_went_leaves_no_trace() -> None:
    delta = MetadataDelta()
    image = MetadataImage()
    image.replay(TopicRecord(name="orders", topic_id=ID), delta)
    image.replay(PartitionRecord(topic_id=ID, partition_id=0, replicas=(1,)), delta)
    image.replay(RemoveTopicRecord(topic_id=ID), delta)
    assert not delta
    assert delta.topics_created == delta.topics_deleted == {}


def test_a_topic_made_anew_is_another() -> None:
    image, delta = orders(), MetadataDelta()
    image.replay(RemoveTopicRecord(topic_id=ID), delta)
    image.replay(TopicRecord(name="orders", topic_id=Uuid(b"another topic id")), delta)
    assert set(delta.topics_deleted) == {ID}
    assert set(delta.topics_created) == {b"another topic id"}


def test_a_snapshot_of_an_older_level_leaves_out_what_that_level_has_no_field_for() -> None:
    node = ControllerUnderTest()
    node.start(1)
    node.image.features.levels["metadata.version"] = 8
    written = {type(record.message).__name__: record for record in node.image.snapshot_records()}
    registered = written["RegisterBrokerRecord"]
    assert registered.version == 2
    assert isinstance(registered.message, RegisterBrokerRecord)
    assert registered.message.log_dirs == ()
    assert "RegisterControllerRecord" not in written


def test_the_difference_of_two_images_is_what_leads_from_one_to_the_other() -> None:
    before, after = orders(), orders(change(leader=2))
    after.replay(ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value="1"))
    delta = delta_between(before, after)
    assert delta.partitions == {(ID, 0): before.topics.by_id[ID].partitions[0]}
    assert delta.configs == {(2, "orders")}
    assert delta.topics_created == delta.topics_deleted == {}
    assert set(delta_between(after, MetadataImage()).topics_deleted) == {ID}
