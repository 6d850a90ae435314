"""Random histories: whatever administrators and brokers do, some things stay true.

After every decision: its records can be replayed through their bytes; what the reply promises is in the image; the
invariants of partitions hold; the delta, applied to what was known before, is the difference of the images. At the end
the image is that of the whole log, and that of a snapshot taken anywhere on the way with the rest of the log.
"""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.machines.metadata.image.delta import MetadataDelta, delta_between
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.wire.message import Message
from ottla.wire.messages import AlterPartitionRequest
from ottla.wire.record_values import decode_metadata_record, encode_metadata_record
from tests.unit.machines.metadata.admin_scenes import (
    alter,
    create,
    delete,
    elect,
    features,
    grow,
    quotas,
    reassign,
    topic,
)
from tests.unit.machines.metadata.controllers import ControllerUnderTest

BROKERS = (1, 2, 3)
NAMES = ("orders", "clicks", "a.b", "a_b")

names, brokers = st.sampled_from(NAMES), st.sampled_from(BROKERS)
some_brokers = st.lists(brokers, min_size=1, max_size=3, unique=True).map(tuple)
actions = st.one_of(
    st.tuples(st.just("create"), names, st.integers(1, 3), st.integers(1, 3), st.sampled_from(["1", "2"])),
    st.tuples(st.just("delete"), names),
    st.tuples(st.just("grow"), names, st.integers(1, 5)),
    st.tuples(st.just("set"), names, st.sampled_from(["min.insync.replicas", "unclean.leader.election.enable"])),
    st.tuples(st.just("reassign"), names, st.one_of(st.none(), some_brokers)),
    st.tuples(st.just("elect"), st.integers(0, 1)),
    st.tuples(st.just("quota"), st.sampled_from([1.0, 2.0, None])),
    st.tuples(st.just("isr"), names, some_brokers),
    st.tuples(st.just("stop"), brokers),
    st.tuples(st.just("fence"), brokers),
    st.tuples(st.just("unfence"), brokers),
    st.tuples(st.just("restart"), brokers, st.booleans()),
    st.tuples(st.just("wait"), st.sampled_from([1_000, 10_000])),
    st.tuples(st.just("eligible leaders"), st.integers(0, 1)),
    st.tuples(st.just("set for all"), st.sampled_from(["1", "2", "3"])),
    st.just(("elect uncleanly",)),
)


def decide(node: ControllerUnderTest, action: tuple[Any, ...]) -> Any:
    """The decision an action leads to; None where it makes no sense now."""
    controller, now_ms = node.controller, node.now_ms
    match action:
        case "create", name, count, factor, isr:
            return controller.decide(create(topic(name, count, factor, min_insync_replicas=isr)), 7, now_ms)
        case "delete", name:
            return controller.decide(delete(name), 6, now_ms)
        case "grow", name, count:
            return controller.decide(grow((name, count)), 3, now_ms)
        case "set", name, key:
            current = node.image.configs.of_topic(name).get(key)
            value = {"1": "2", "true": "false"}.get(str(current), "1" if key.startswith("min") else "true")
            return controller.decide(alter((2, name, (0, key, value))), 1, now_ms)
        case "reassign", name, replicas:
            return controller.decide(reassign((name, 0, replicas)), 1, now_ms)
        case "elect", type:
            return controller.decide(elect(type, all=True), 2, now_ms)
        case "quota", value:
            return controller.decide(quotas(([("user", "ann")], ("producer_byte_rate", value))), 1, now_ms)
        case "isr", name, isr:
            return decide_isr(node, name, isr)
        case "eligible leaders", level:
            is_on = node.image.features.is_elr_enabled
            kind = 1 if level >= is_on else 2
            return controller.decide(features(("eligible.leader.replicas.version", level, kind)), 2, now_ms)
        case "set for all", value:
            return controller.decide(alter((4, "", (0, "min.insync.replicas", value))), 1, now_ms)
        case ("elect uncleanly",):
            return controller.elect_unclean_leaders(now_ms)
        case "wait", passed_ms:
            node.now_ms += passed_ms
            return controller.fence_silent_broker(node.now_ms)
    return None


def decide_isr(node: ControllerUnderTest, name: str, isr: tuple[int, ...]) -> Any:
    partition = node.image.topics.partition(name, 0)
    if partition is None or partition.leader == -1:
        return None
    wanted = AlterPartitionRequest.PartitionData(
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        new_isr_with_epochs=[AlterPartitionRequest.BrokerState(broker_id=id) for id in {partition.leader, *isr}],
    )
    asked = AlterPartitionRequest.TopicData(topic_id=node.image.topics.by_name[name].id, partitions=[wanted])
    epoch = node.image.brokers.by_id[partition.leader].epoch
    request = AlterPartitionRequest(broker_id=partition.leader, broker_epoch=epoch, topics=[asked])
    return node.controller.decide(request, 3, node.now_ms)


def act(node: ControllerUnderTest, action: tuple[Any, ...]) -> None:
    match action:
        case "stop", broker_id:
            node.heartbeat(broker_id, want_shut_down=True)
        case "fence" | "unfence" as wish, broker_id:
            node.heartbeat(broker_id, want_fence=wish == "fence")
        case "restart", broker_id, is_clean:
            node.now_ms += 10_000
            life = node.controller.next_offset % 1_000
            node.register(broker_id, life=life, clean=is_clean)
        case _:
            check_decision(node, action)


def check_decision(node: ControllerUnderTest, action: tuple[Any, ...]) -> None:
    before = node.image.copy()
    decision = decide(node, action)
    if decision is None:
        return
    assert not delta_between(before, node.image), "deciding changes nothing"
    delta = MetadataDelta()
    node.replay(decision, delta)
    difference = delta_between(before, node.image)
    assert difference.topics_created == delta.topics_created
    assert difference.topics_deleted.keys() == delta.topics_deleted.keys()
    assert difference.partitions == delta.partitions
    assert difference.configs <= delta.configs
    assert difference.brokers <= delta.brokers
    assert difference.quotas == delta.quotas
    for result in getattr(decision.reply, "topics", ()):
        if getattr(result, "error_code", 1) == 0:
            created = node.image.topics.by_name[result.name]
            assert (created.id, len(created.partitions)) == (result.topic_id, result.num_partitions)
            assert len(created.partitions[0].replicas) == result.replication_factor


def check_partitions(image: MetadataImage) -> None:
    for found in image.topics.by_id.values():
        assert sorted(found.partitions) == list(range(len(found.partitions)))
        for partition in found.partitions.values():
            isr, elr = set(partition.isr), set(partition.eligible_leader_replicas)
            assert len(isr) == len(partition.isr)
            assert isr | elr <= set(partition.replicas)
            assert not isr & elr
            assert isr or elr or partition.last_known_elr, "somebody can lead without losing more than is lost"
            assert len(partition.directories) == len(partition.replicas)
            assert set(partition.adding_replicas) | set(partition.removing_replicas) <= set(partition.replicas)
            if partition.leader != -1:
                assert partition.leader in isr
                assert image.brokers.by_id[partition.leader].is_active


def image_of(records: Iterable[Message]) -> MetadataImage:
    image = MetadataImage()
    for record in records:
        image.replay(record)
    return image


def loaded_from_snapshot(image: MetadataImage) -> MetadataImage:
    records = image.snapshot_records()
    return image_of(decode_metadata_record(encode_metadata_record(one.message, one.version))[0] for one in records)


def live_through(history: list[tuple[Any, ...]], snapshot_after: int) -> None:
    node = ControllerUnderTest()
    node.start(*BROKERS)
    node.ask(create(topic("orders", 1, 3), topic("clicks", 3, 2)))
    loaded, end = loaded_from_snapshot(node.image), len(node.log)
    for number, action in enumerate(history):
        act(node, action)
        check_partitions(node.image)
        if number == snapshot_after:
            loaded, end = loaded_from_snapshot(node.image), len(node.log)
    for record in node.log[end:]:
        loaded.replay(record)
    assert not delta_between(node.image, loaded)
    assert not delta_between(node.image, image_of(node.log))
    assert not delta_between(node.image, loaded_from_snapshot(node.image))
    assert not delta_between(node.image, node.image.copy())


@pytest.mark.slow
@settings(max_examples=200)
@given(st.lists(actions, min_size=1, max_size=30), st.integers(0, 29))
def test_what_stays_true_in_every_history(history: list[tuple[Any, ...]], snapshot_after: int) -> None:
    live_through(history, snapshot_after)


@pytest.mark.long
@settings(max_examples=1000)
@given(st.lists(actions, min_size=20, max_size=80), st.integers(0, 79))
def test_what_stays_true_in_many_long_histories(history: list[tuple[Any, ...]], snapshot_after: int) -> None:
    live_through(history, snapshot_after)


def test_a_partition_that_had_no_leader_when_leaders_began_to_be_remembered_gets_one_again() -> None:
    """Found by the histories: its only replica stops, eligible leaders are switched on, it comes back uncleanly."""
    alone = [("eligible leaders", 0), ("delete", "orders"), ("create", "orders", 1, 1, "1")]
    for broker in BROKERS:
        live_through([*alone, ("stop", broker), ("eligible leaders", 1), ("restart", broker, False)], 29)
