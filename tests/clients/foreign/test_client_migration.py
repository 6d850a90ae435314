"""A group that moves from the classic to the consumer protocol and back, member by member, while it reads (KIP-848).

Every record is read; and whenever one looks, no partition is given to two members of one epoch or generation.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from ottla.wire.message import Message
from ottla.wire.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerProtocolAssignment,
    DescribeGroupsRequest,
    ListGroupsRequest,
)
from ottla.wire.record_values import decode_versioned
from tests.clients.group_scene import Scene
from tests.interop.group_scenes import Line
from tests.interop.target import Target, a_target


@pytest.fixture(scope="module")
def migrating_node() -> Iterator[Target]:
    """Consumers are heard of often here, so that a migration takes seconds."""
    with a_target(
        group_min_session_timeout_ms=1000,
        group_initial_rebalance_delay_ms=0,
        group_consumer_min_heartbeat_interval_ms=300,
        group_consumer_heartbeat_interval_ms=300,
        group_consumer_min_session_timeout_ms=1000,
        group_consumer_session_timeout_ms=5000,
        offsets_topic_num_partitions=5,
    ) as running:
        yield running


class Watcher:
    """Asks the coordinator what it has given to whom, over a connection of its own."""

    def __init__(self, bootstrap: str) -> None:
        self._line = Line(bootstrap, "watcher")

    def ask(self, request: Message, version: int) -> Any:
        self._line.send(request, version)
        return self._line.receive()

    def kind_of(self, group_id: str) -> str:
        listed = self.ask(ListGroupsRequest(), 5).groups
        return next((group.group_type for group in listed if group.group_id == group_id), "none")

    def given(self, group_id: str) -> list[tuple[str, int]]:
        """All partitions that members have, once for each who has them."""
        (consumers,) = self.ask(ConsumerGroupDescribeRequest(group_ids=[group_id]), 1).groups
        (classic,) = self.ask(DescribeGroupsRequest(groups=[group_id]), 5).groups
        found = [
            (topic.topic_name, index)
            for member in consumers.members
            for topic in member.assignment.topic_partitions
            for index in topic.partitions
        ]
        for member in classic.members if classic.group_state == "Stable" else ():
            if member.member_assignment:
                assigned = decode_versioned(ConsumerProtocolAssignment, member.member_assignment)
                found += [(topic.topic, index) for topic in assigned.assigned_partitions for index in topic.partitions]
        return found

    def close(self) -> None:
        self._line.close()


class WatchedScene(Scene):
    """Whatever is waited for, the coordinator is asked meanwhile."""

    def __init__(self, node: Target, watcher: Watcher) -> None:
        super().__init__(node)
        self._watcher = watcher

    def look(self) -> None:
        given = self._watcher.given(self.group_id)
        assert len(given) == len(set(given)), f"given to two: {sorted(given)}"

    def kind(self) -> str:
        return self._watcher.kind_of(self.group_id)


@pytest.fixture
def watcher(migrating_node: Target) -> Iterator[Watcher]:
    made = Watcher(migrating_node.bootstrap)
    yield made
    made.close()


@pytest.fixture
def scene(migrating_node: Target, watcher: Watcher) -> Iterator[WatchedScene]:
    made = WatchedScene(migrating_node, watcher)
    yield made
    made.close()


@pytest.mark.parametrize("strategy", ["range", "roundrobin"])
def test_a_group_moves_to_the_consumer_protocol_and_back(scene: WatchedScene, strategy: str) -> None:
    classic = {"client": "confluent-kafka", "strategy": strategy}
    consumer = {"client": "confluent-kafka", "protocol": "consumer"}
    ann, bob = scene.member(**classic), scene.member(**classic)
    scene.settle(ann, bob)
    scene.write()
    scene.read_all()
    assert scene.kind() == "classic"
    cat = scene.member(**consumer)
    scene.write()
    scene.settle(ann, bob, cat)
    assert scene.kind() == "consumer"
    scene.write()
    scene.read_all()
    ann.leave()
    scene.settle(bob, cat)
    dog = scene.member(**consumer)
    scene.write()
    scene.settle(bob, cat, dog)
    bob.leave()
    scene.settle(cat, dog)
    scene.write()
    scene.read_all()
    # And back.
    eve = scene.member(**classic)
    scene.settle(cat, dog, eve)
    assert scene.kind() == "consumer"
    scene.write()
    dog.leave()
    scene.settle(cat, eve)
    cat.leave()
    scene.settle(eve)
    assert scene.kind() == "classic"
    scene.write()
    scene.read_all()


def test_cooperative_members_give_up_only_what_moves(scene: WatchedScene) -> None:
    """They join; a group that librdkafka's cooperative assignor has divided itself stays classic, in Kafka too."""
    ann = scene.member("confluent-kafka", protocol="consumer")
    scene.settle(ann)
    scene.write()
    bob = scene.member("confluent-kafka", strategy="cooperative-sticky")
    scene.settle(ann, bob)
    cat = scene.member("confluent-kafka", strategy="cooperative-sticky")
    scene.write()
    scene.settle(ann, bob, cat)
    scene.read_all()
    ann.leave()
    scene.settle(bob, cat)
    assert scene.kind() == "classic"
    scene.write()
    scene.read_all()


def test_a_killed_consumer_leaves_a_classic_group_behind(scene: WatchedScene) -> None:
    ann = scene.member("confluent-kafka")
    scene.settle(ann)
    bob = scene.member("confluent-kafka", protocol="consumer")
    scene.settle(ann, bob)
    scene.write()
    scene.read_all()
    bob.kill()
    scene.write()
    scene.settle(ann)
    assert scene.kind() == "classic"
    scene.read_all()


def test_a_static_member_comes_back_with_the_other_protocol(scene: WatchedScene) -> None:
    ann = scene.member("confluent-kafka", instance="a")
    bob = scene.member("confluent-kafka", instance="b")
    scene.settle(ann, bob)
    scene.write()
    scene.read_all()
    ann.kill()
    again = scene.member("confluent-kafka", instance="a", protocol="consumer")
    scene.settle(again, bob)
    assert scene.kind() == "consumer"
    scene.write()
    scene.read_all()
    again.leave()
    back = scene.member("confluent-kafka", instance="a")
    scene.settle(back, bob)
    assert scene.kind() == "classic"
    scene.write()
    scene.read_all()


@pytest.mark.parametrize("client", ["kafka-python", "aiokafka"])
def test_older_clients_go_on_in_a_consumer_group(scene: WatchedScene, client: str) -> None:
    ann, bob = scene.member(client), scene.member(client)
    scene.settle(ann, bob)
    scene.write()
    cat = scene.member("confluent-kafka", protocol="consumer")
    scene.settle(ann, bob, cat)
    assert scene.kind() == "consumer"
    scene.write()
    scene.read_all()
    cat.leave()
    scene.settle(ann, bob)
    assert scene.kind() == "classic"
    scene.write()
    scene.read_all()
