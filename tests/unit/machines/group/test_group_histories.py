"""Groups under members that do anything at any time, and coordinators that change: nothing is ever stuck.

Seeded, so that a history that fails can be told again. After every step the log is replayed into a second machine
(see `group_bench`), and at the end everybody falls silent: all who waited have been answered, and nothing is left.
"""

from random import Random

import pytest

from ottla.machines.group.classic.group import ClassicGroup
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import ConsumerGroupHeartbeatRequest
from tests.unit.machines.group.group_bench import GROUP, Call, Groups

STEPS = 150


class ClassicClient:
    """A member that follows the protocol, but not reliably."""

    def __init__(self, groups: Groups, name: str, instance_id: str | None) -> None:
        self.groups = groups
        self.name = name
        self.instance_id = instance_id
        self.member_id = ""
        self.generation = -1
        self.leads: list[str] = []
        self.waiting: list[Call] = []
        self.calls: list[Call] = []

    def act(self, random: Random) -> None:
        self.take_in()
        match random.choice(["join", "join", "sync", "sync", "heartbeat", "commit", "leave", "forget"]):
            case "join":
                self.keep(self.groups.ask_join(self.name, self.member_id, instance_id=self.instance_id))
            case "sync" if self.generation >= 0:
                given = {member_id: f"{member_id} in {self.generation}".encode() for member_id in self.leads}
                self.keep(
                    self.groups.sync(self.member_id, given, generation=self.generation, instance_id=self.instance_id)
                )
            case "heartbeat" if self.generation >= 0 and GROUP in self.groups.machine.groups:
                self.groups.heartbeat(self.member_id, generation=self.generation, instance_id=self.instance_id)
            case "commit":
                self.groups.commit({("orders", 0): 1}, member_id=self.member_id, generation=self.generation)
            case "leave" if random.random() < 0.3:
                self.groups.leave(self.member_id, instance_id=self.instance_id)
            case "forget" if random.random() < 0.2:
                self.member_id, self.generation, self.leads = "", -1, []

    def keep(self, call: Call) -> None:
        self.calls.append(call)
        self.waiting.append(call)

    def take_in(self) -> None:
        """What has been answered meanwhile."""
        for call in [call for call in self.waiting if call.is_answered]:
            self.waiting.remove(call)
            reply = call.reply
            if isinstance(reply, ErrorCode) or not hasattr(reply, "generation_id"):
                assert isinstance(reply, ErrorCode) or self.is_own(reply.assignment)
                continue
            if reply.error_code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
                self.member_id = reply.member_id
            elif reply.error_code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
                self.member_id = ""
            self.generation = reply.generation_id
            self.leads = [member.member_id for member in reply.members]

    def is_own(self, assignment: bytes) -> bool:
        """Nobody is ever given what was meant for another."""
        names = {call.reply.member_id for call in self.calls if getattr(call.reply, "member_id", "")}
        return not assignment or self.instance_id is not None or assignment.decode().partition(" ")[0] in names


@pytest.mark.parametrize("seed", range(12))
def test_a_classic_group_is_never_stuck(seed: int) -> None:
    random = Random(seed)
    groups = Groups(initial_rebalance_delay_ms=random.choice([0, 3000]), max_size=random.choice([3, 100]))
    clients = [ClassicClient(groups, f"client-{number}", f"i{number}" if number < 2 else None) for number in range(5)]
    for _ in range(STEPS):
        random.choice(clients).act(random)
        if random.random() < 0.3:
            groups.advance(random.choice([10, 1000, 5000, 30_000]))
        if random.random() < 0.02:
            groups.reload()
        if random.random() < 0.02:
            groups.fails_with = random.choice([ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.COORDINATOR_NOT_AVAILABLE])
    groups.fails_with = None
    groups.advance(30 * 60 * 1000)
    for client in clients:
        client.take_in()
        assert client.waiting == [], "somebody still waits"
    group = groups.machine.groups.get(GROUP)
    if group is not None:
        assert isinstance(group, ClassicGroup)
        assert (group.state_name, group.members, group.pending) == ("Empty", {}, set())
    assert groups.timers == set()


class Consumer:
    """A member of a consumer group that is sometimes late with giving up partitions, and loses replies."""

    def __init__(self, groups: Groups, name: str, instance_id: str | None) -> None:
        self.groups = groups
        self.name = name
        self.instance_id = instance_id
        self.epoch = 0
        self.has: dict[bytes, set[int]] = {}

    def act(self, random: Random) -> None:
        fields: dict[str, object] = {"member_id": self.name, "instance_id": self.instance_id}
        if self.epoch and random.random() < 0.05:
            self.groups.beat(**fields, member_epoch=-2 if self.instance_id and random.random() < 0.5 else -1)
            self.epoch, self.has = 0, {}
            return
        if self.epoch == 0:
            topics = random.choice([["orders"], ["orders", "payments"], ["payments"]])
            fields |= {"rebalance_timeout_ms": 20_000, "subscribed_topic_names": topics, "topic_partitions": []}
        elif random.random() < 0.8:
            fields["topic_partitions"] = [
                ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=topic_id, partitions=sorted(indexes))
                for topic_id, indexes in self.has.items()
            ]
        reply = self.groups.beat(**fields, member_epoch=self.epoch)
        if isinstance(reply, ErrorCode):
            self.epoch, self.has = 0, {}
        elif random.random() < 0.9:  # Else the reply is lost.
            self.epoch = reply.member_epoch
            if reply.assignment is not None:
                self.has = {given.topic_id: set(given.partitions) for given in reply.assignment.topic_partitions}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_no_partition_of_a_consumer_group_has_two_owners(seed: int) -> None:
    random = Random(seed)
    groups = Groups(consumer_session_timeout_ms=45_000, consumer_assignment_interval_ms=random.choice([0, 1000]))
    groups.create_topic("orders", 5)
    groups.create_topic("payments", 2)
    consumers = [Consumer(groups, f"member-{number}", f"i{number}" if number < 2 else None) for number in range(5)]
    for _ in range(STEPS):
        random.choice(consumers).act(random)
        if random.random() < 0.3:
            groups.advance(random.choice([100, 5000, 15_000]))
        if random.random() < 0.02:
            groups.reload()
        if random.random() < 0.03:
            groups.grow_topic("orders", len(groups.image.topics.by_name["orders"].partitions) + 1)
        group = groups.machine.groups.get(GROUP)
        owned = [place for member in group.members.values() for place in member.partitions] if group else []
        assert len(owned) == len(set(owned))
    for _ in range(12):  # From here on everybody behaves.
        groups.advance(5000)
        for consumer in consumers:
            consumer.act(Steady())
    assert groups.state == "Stable"
    groups.advance(60_000)
    assert groups.state == "Empty"
    assert groups.timers == set()


class Steady(Random):
    """Chance that never strikes: full heartbeats, and no reply is lost."""

    def random(self) -> float:
        return 0.5

    def choice(self, options):  # type: ignore[no-untyped-def]
        return options[0]
