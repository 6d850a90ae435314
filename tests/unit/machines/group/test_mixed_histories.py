"""Groups whose members speak both protocols, change sides, and do anything at any time, under coordinators that change.

Seeded, as `test_group_histories`. After every step the log is replayed into a second machine, which must be in the same
state (see `group_bench`); what a consumer group's members have is never had by two. In the end everybody behaves: then
the group comes to rest, whatever kind it is by then, with every partition read by exactly one.
"""

from random import Random
from typing import Any

import pytest

from ottla.machines.group.consumer.group import ConsumerGroup
from ottla.machines.group.settings import MigrationPolicy
from ottla.wire.errors import ErrorCode
from tests.unit.machines.group.group_bench import GROUP, Groups
from tests.unit.machines.group.group_members import ClassicConsumer
from tests.unit.machines.group.test_group_histories import Consumer, Steady

STEPS = 200
TOPICS = ("orders", "payments")


class Application:
    """A consumer that is started with the one protocol or the other, now and then anew."""

    def __init__(self, groups: Groups, number: int, random: Random) -> None:
        self._groups = groups
        self._number = number
        self._instance_id = f"i{number}" if number < 2 else None
        self._starts = 0
        self.start(random)

    def start(self, random: Random) -> None:
        self._starts += 1
        name = f"app-{self._number}-{self._starts}"
        if random.random() < 0.5:
            self.speaks: ClassicConsumer | Consumer = Consumer(self._groups, name, self._instance_id)
        else:
            self.speaks = ClassicConsumer(
                self._groups, name, *TOPICS, eager=self._number % 2 == 0, instance_id=self._instance_id
            )

    def act(self, random: Random) -> None:
        consumer = self.speaks
        if isinstance(consumer, Consumer):
            consumer.act(random)
            return
        chance = random.random()
        if chance < 0.03:
            consumer.leave()
        elif chance < 0.05:
            consumer.reset()
        elif chance < 0.1:
            consumer.commit()
        elif GROUP in self._groups.machine.groups or not consumer.member_id:
            consumer.step()

    @property
    def has(self) -> set[tuple[str, int]]:
        if isinstance(self.speaks, ClassicConsumer):
            return self.speaks.has
        return {(id.rstrip(b".").decode(), index) for id, indexes in self.speaks.has.items() for index in indexes}


def owned_in(groups: Groups) -> list[Any]:
    group = groups.machine.groups.get(GROUP)
    if not isinstance(group, ConsumerGroup):
        return []
    return [place for member in group.members.values() for place in member.partitions]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24))
def test_a_mixed_group_is_never_stuck_and_no_partition_has_two_owners(seed: int) -> None:
    random = Random(seed)
    policy = random.choice([*MigrationPolicy, MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.BIDIRECTIONAL])
    groups = Groups(
        initial_rebalance_delay_ms=random.choice([0, 3000]),
        consumer_assignment_interval_ms=random.choice([0, 1000]),
        migration_policy=policy,
    )
    groups.create_topic("orders", 5)
    groups.create_topic("payments", 2)
    applications = [Application(groups, number, random) for number in range(5)]
    for _ in range(STEPS):
        application = random.choice(applications)
        application.act(random)
        if random.random() < 0.05:
            application.start(random)
        if random.random() < 0.3:
            groups.advance(random.choice([100, 1000, 5000, 30_000]))
        if random.random() < 0.02:
            groups.reload()
        if seed % 2 and random.random() < 0.03:
            groups.fails_with = random.choice([ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.COORDINATOR_NOT_AVAILABLE])
        if random.random() < 0.02:
            groups.grow_topic("orders", len(groups.image.topics.by_name["orders"].partitions) + 1)
        owned = owned_in(groups)
        assert len(owned) == len(set(owned))
    groups.fails_with = None
    groups.advance(5 * 60 * 1000)  # Whoever was started anew, and does not know its old id, is gone by now.
    come_to_rest(groups, applications)
    groups.advance(30 * 60 * 1000)
    assert GROUP not in groups.machine.groups or groups.group().is_empty
    assert groups.timers == set()


def come_to_rest(groups: Groups, applications: list[Application]) -> None:
    """Everybody behaves. Those who may not join what the group has become are out."""
    joined: list[Application] = []
    for _ in range(60):
        groups.advance(1000)
        for application in applications:
            application.act(Steady())
        members = groups.machine.groups[GROUP].members
        joined = [application for application in applications if member_id_of(application) in members]
    assert groups.state == "Stable"
    assert joined
    places = [place for application in joined for place in application.has]
    assert len(places) == len(set(places))
    names = {name for name, _ in places}
    assert len(places) == sum(len(groups.image.topics.by_name[name].partitions) for name in names)
    assert "orders" in names


def member_id_of(application: Application) -> str:
    speaks = application.speaks
    return speaks.member_id if isinstance(speaks, ClassicConsumer) else speaks.name
