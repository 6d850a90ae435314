"""Consumers in groups, as members come, go, are killed and paused, and as the node itself does.

Every record is read, by whoever has its partition; a record is read twice only by the next one to have the partition,
when the first had not committed it. In a group that has settled, every partition has exactly one member.
"""

from collections.abc import Iterator, Sequence
from types import ModuleType

import pytest

from tests.clients.group_scene import PARTITIONS, Scene
from tests.interop.target import Target, a_target

SHORT_SESSION_MS = 2000


@pytest.fixture(scope="module")
def groups_node() -> Iterator[Target]:
    """Sessions may be short here, so that the dead are soon missed, and the first member of a group waits for none."""
    with a_target(
        group_min_session_timeout_ms=1000, group_initial_rebalance_delay_ms=0, offsets_topic_num_partitions=5
    ) as running:
        yield running


@pytest.fixture
def scene(groups_node: Target) -> Iterator[Scene]:
    made = Scene(groups_node)
    yield made
    made.close()


def in_order(records: Sequence[tuple[int, int, str]]) -> bool:
    """Offsets of a partition rise as long as nobody else has the partition meanwhile."""
    offsets: dict[int, list[int]] = {}
    for partition, offset, _ in records:
        offsets.setdefault(partition, []).append(offset)
    return all(seen == sorted(seen) for seen in offsets.values())


def test_members_share_the_partitions_as_they_come_and_go(client: ModuleType, scene: Scene) -> None:
    scene.write()
    first = scene.member(client)
    scene.settle(first)
    scene.read_all()
    second = scene.member(client)
    scene.settle(first, second)
    scene.write()
    scene.read_all()
    assert {partition for partition, _, _ in second.read} == second.partitions
    second.leave()
    scene.settle(first)
    scene.write()
    scene.read_all()
    assert in_order(first.read)
    assert scene.read_twice() == 0, "everybody has committed what it read"


def test_partitions_of_a_killed_member_move_to_the_others(client: ModuleType, scene: Scene) -> None:
    scene.write()
    first, second = (scene.member(client, session_ms=SHORT_SESSION_MS) for _ in range(2))
    scene.settle(first, second)
    scene.read_all()
    second.kill()
    scene.write()
    scene.settle(first)
    scene.read_all()


def test_a_paused_member_loses_its_partitions_and_gets_some_back(client: ModuleType, scene: Scene) -> None:
    first, second = (scene.member(client, session_ms=SHORT_SESSION_MS) for _ in range(2))
    scene.settle(first, second)
    second.pause()
    scene.write()
    scene.until(lambda: first.partitions == set(range(PARTITIONS)), "the other member has everything")
    scene.read_all()
    second.resume()
    scene.settle(first, second)
    scene.write()
    scene.read_all()


@pytest.mark.parametrize(
    ("name", "how"),
    [("confluent-kafka", "stop"), ("confluent-kafka", "kill"), ("kafka-python", "kill"), ("aiokafka", "kill")],
)
def test_a_group_lives_on_when_its_node_is_started_again(name: str, how: str) -> None:
    with a_target(group_min_session_timeout_ms=1000, offsets_topic_num_partitions=5) as node:
        scene = Scene(node)
        try:
            scene.write()
            first, second = scene.member(name), scene.member(name)
            scene.settle(first, second)
            scene.read_all()
            getattr(node, how)()
            node.start()
            scene.write()
            scene.settle(first, second)
            scene.read_all()
        finally:
            scene.close()


def test_a_static_member_that_is_back_in_time_keeps_its_partitions(client: ModuleType, scene: Scene) -> None:
    first, second = (scene.member(client, instance=name, session_ms=20_000) for name in ("one", "two"))
    scene.settle(first, second)
    of_first, of_second = set(first.partitions), set(second.partitions)
    second.kill()
    again = scene.member(client, instance="two", session_ms=20_000)
    scene.until(lambda: again.partitions == of_second, "it has them again")
    assert first.partitions == of_first
    scene.write()
    scene.read_all()


def test_clients_of_different_kinds_share_a_group(scene: Scene) -> None:
    confluent, python = scene.member("confluent-kafka"), scene.member("kafka-python")
    scene.settle(confluent, python)
    scene.write()
    scene.read_all()


def test_cooperative_members_keep_what_they_have_as_others_come(scene: Scene) -> None:
    """KIP-429: whoever keeps a partition goes on reading it."""
    first = scene.member("confluent-kafka", strategy="cooperative-sticky")
    scene.settle(first)
    before = set(first.partitions)
    second = scene.member("confluent-kafka", strategy="cooperative-sticky")
    scene.settle(first, second)
    assert first.partitions < before
    third = scene.member("confluent-kafka", strategy="cooperative-sticky")
    scene.settle(first, second, third)
    scene.write()
    scene.read_all()
    assert in_order(first.read)


# The consumer protocol (KIP-848), which of these clients confluent-kafka speaks


@pytest.fixture(scope="module")
def consumers_node() -> Iterator[Target]:
    """Where heartbeats come often, so that nobody waits long for anybody."""
    with a_target(**QUICK_CONSUMERS) as running:
        yield running


@pytest.fixture
def consumers(consumers_node: Target) -> Iterator[Scene]:
    made = Scene(consumers_node)
    yield made
    made.close()


QUICK_CONSUMERS = {
    "offsets_topic_num_partitions": 5,
    "group_consumer_min_heartbeat_interval_ms": 300,
    "group_consumer_heartbeat_interval_ms": 300,
    "group_consumer_min_session_timeout_ms": 2000,
    "group_consumer_session_timeout_ms": 2000,
    "group_consumer_assignment_interval_ms": 0,
}


@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_consumers_of_the_new_protocol_come_go_and_are_killed(assignor: str, consumers: Scene) -> None:
    options = {"protocol": "consumer", "assignor": assignor}
    consumers.write()
    first = consumers.member("confluent-kafka", **options)
    consumers.settle(first)
    second = consumers.member("confluent-kafka", **options)
    consumers.settle(first, second)
    third = consumers.member("confluent-kafka", **options)
    consumers.settle(first, second, third)
    consumers.write()
    consumers.read_all()
    second.leave()
    third.kill()
    consumers.write()
    consumers.settle(first)
    consumers.read_all()
    assert in_order(first.read)


def test_static_consumers_of_the_new_protocol_keep_their_partitions() -> None:
    with a_target(**{**QUICK_CONSUMERS, "group_consumer_session_timeout_ms": 20_000}) as node:
        scene = Scene(node)
        try:
            first = scene.member("confluent-kafka", protocol="consumer", instance="one")
            second = scene.member("confluent-kafka", protocol="consumer", instance="two")
            scene.settle(first, second)
            of_first, of_second = set(first.partitions), set(second.partitions)
            second.leave()
            again = scene.member("confluent-kafka", protocol="consumer", instance="two")
            scene.until(lambda: again.partitions == of_second, "it has them again")
            assert first.partitions == of_first
            scene.write()
            scene.read_all()
        finally:
            scene.close()


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_group_of_the_new_protocol_lives_on_when_its_node_is_started_again(how: str) -> None:
    with a_target(**QUICK_CONSUMERS) as node:
        scene = Scene(node)
        try:
            scene.write()
            members = [scene.member("confluent-kafka", protocol="consumer") for _ in range(2)]
            scene.settle(*members)
            scene.read_all()
            getattr(node, how)()
            node.start()
            scene.write()
            scene.settle(*members)
            scene.read_all()
        finally:
            scene.close()
