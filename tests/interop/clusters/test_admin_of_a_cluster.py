"""Our admin against three brokers of Apache Kafka: each item goes to its own; one that dies is worked around."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from confluent_kafka import Producer

from ottla import Admin, TopicPartition
from ottla.admin import ElectionType, NewTopic, OffsetSpec, PartitionDescription
from ottla.errors import KafkaError, UnknownTopicOrPartition
from tests.interop.apache_kafka import ApacheKafka

pytestmark = pytest.mark.interop

FEW = {"offsets.topic.num.partitions": 6, "transaction.state.log.num.partitions": 6}
PARTITIONS = [TopicPartition("spread", number) for number in range(6)]


def another_broker(first: ApacheKafka, node_id: int) -> ApacheKafka:
    node = ApacheKafka(config=FEW, java_options=("-Xmx256m",))
    node.config["controller.quorum.voters"] = first.config["controller.quorum.voters"]
    node.config.update({"process.roles": "broker", "node.id": node_id, "listeners": f"PLAINTEXT://{node.bootstrap}"})
    return node


@pytest.fixture(scope="module")
def brokers() -> Iterator[list[ApacheKafka]]:
    with ExitStack() as running:
        first = running.enter_context(ApacheKafka(config=FEW))
        yield [first, *(running.enter_context(another_broker(first, node_id)) for node_id in (2, 3))]


@pytest.fixture(scope="module")
def admin(brokers: list[ApacheKafka]) -> Iterator[Admin]:
    with Admin(bootstrap_servers=[broker.bootstrap for broker in brokers]) as admin:
        wait_until(lambda: len(admin.describe_cluster().nodes), 3)
        admin.create_topics([NewTopic("spread", 6, 2)]).raise_first()
        yield admin


def wait_until(observe: Callable[[], object], wanted: object) -> None:
    """Brokers learn of a change one after the other, of a new topic too."""
    deadline = time.monotonic() + 60
    while (seen := _seen(observe)) != wanted:
        assert time.monotonic() < deadline, f"{seen!r} and not {wanted!r}"
        time.sleep(0.1)


def _seen(observe: Callable[[], object]) -> object:
    try:
        return observe()
    except UnknownTopicOrPartition as error:
        return error


def partitions(admin: Admin) -> tuple[PartitionDescription, ...]:
    return admin.describe_topics(["spread"])["spread"].partitions


def leaders(admin: Admin) -> list[int | None]:
    return [one.leader for one in partitions(admin)]


def write_five_each(brokers: list[ApacheKafka], admin: Admin) -> None:
    """Unless another test has: each may be the only one that runs."""
    latest = admin.list_offsets(dict.fromkeys(PARTITIONS, OffsetSpec.LATEST))
    if any(one.offset for one in latest.values()):
        return
    producer = Producer({"bootstrap.servers": brokers[0].bootstrap})
    for partition in PARTITIONS * 5:
        producer.produce("spread", b"v", partition=partition.partition)
    assert producer.flush(30) == 0


def test_partitions_are_asked_of_their_leaders(brokers: list[ApacheKafka], admin: Admin) -> None:
    wait_until(lambda: set(leaders(admin)), {1, 2, 3})
    write_five_each(brokers, admin)
    latest = admin.list_offsets(dict.fromkeys(PARTITIONS, OffsetSpec.LATEST))
    assert [one.offset for one in latest.values()] == [5] * 6
    assert set(admin.delete_records(dict.fromkeys(PARTITIONS, 2)).values()) == {2}
    assert admin.describe_producers(PARTITIONS).errors == {}
    assert set(admin.describe_log_dirs()) == {1, 2, 3}


def test_groups_and_transactional_ids_are_asked_of_their_coordinators(admin: Admin) -> None:
    groups = [f"group-{number}" for number in range(12)]
    for group in groups:
        admin.alter_consumer_group_offsets(group, {PARTITIONS[0]: 3}).raise_first()
    assert [one.group_id for one in admin.list_groups()] == sorted(groups)
    described = admin.describe_consumer_groups(groups)
    assert {group.coordinator.id for group in described.values()} == {1, 2, 3}
    assert len(admin.list_consumer_group_offsets(groups).succeeded) == 12
    assert admin.delete_groups(groups).errors == {}
    ids = [f"id-{number}" for number in range(12)]
    assert admin.fence_producers(ids).errors == {}
    found = {one.transactional_id: one.coordinator_id for one in admin.list_transactions()}
    assert found == {key: one.coordinator_id for key, one in admin.describe_transactions(ids).items()}
    assert set(found.values()) == {1, 2, 3}


def test_replicas_move_to_other_brokers_and_their_first_one_leads(admin: Admin) -> None:
    wait_until(lambda: len(partitions(admin)), len(PARTITIONS))
    wanted = {
        TopicPartition("spread", one.partition): [({1, 2, 3} - set(one.replicas)).pop(), one.replicas[0]]
        for one in partitions(admin)
    }
    admin.alter_partition_reassignments(wanted).raise_first()
    wait_until(admin.list_partition_reassignments, {})
    wait_until(lambda: [list(one.replicas) for one in partitions(admin)], list(wanted.values()))
    assert admin.elect_leaders(ElectionType.PREFERRED).errors == {}
    wait_until(lambda: leaders(admin), [replicas[0] for replicas in wanted.values()])


def test_a_broker_that_dies_is_worked_around(brokers: list[ApacheKafka], admin: Admin) -> None:
    write_five_each(brokers, admin)
    brokers[2].kill()
    latest = admin.list_offsets(dict.fromkeys(PARTITIONS, OffsetSpec.LATEST))
    assert [one.offset for one in latest.values()] == [5] * 6
    assert 3 not in leaders(admin)
    with pytest.raises(KafkaError) as told:
        admin.describe_log_dirs([3], timeout=1.0)[3]
    assert told.value.retriable
