"""Our members of groups against our coordinator, from seeds: no partition is read twice, and no rebalance is stuck."""

from collections.abc import Iterator

import pytest

from ottla.base.ids import TopicPartition
from ottla.testing.sim.simulated_node import SimulatedNode
from ottla.testing.sim.simulation import Simulation
from tests.sim.lives_of_members import Application
from tests.sim.simulated_cluster import create_topics, node_maker

PARTITIONS = 6
TURNS = 12
SETTLED_MS = 120_000
QUIET_MS = 15_000
MOST_ROUNDS = 6
PROTOCOLS = ("range", "roundrobin", "sticky", "cooperative-sticky", "consumer")
ALL = {TopicPartition(topic, number) for topic in ("orders", "clicks") for number in range(PARTITIONS)}


class Group:
    """One group of applications, and the node that coordinates it."""

    def __init__(self, seed: int, protocols: tuple[str, ...]) -> None:
        self.simulation = Simulation(seed)
        self.chance = self.simulation.random
        self.protocols = protocols
        self.make_node = node_maker(group_consumer_migration_policy="bidirectional")
        self.node: SimulatedNode | None = self.simulation.start(self.make_node)
        admin = self.node.connect(name="admin")
        create_topics(admin, "orders", "clicks", partitions=PARTITIONS)
        admin.close()
        self.members: list[Application] = []
        self.moves = 0
        self._names = iter(range(1_000))

    def application(self, instance_id: str | None = None) -> Application:
        protocol = self.chance.choice(self.protocols)
        name = f"{protocol} {next(self._names)}"
        member = Application(self.simulation, protocol, name, self.check, instance_id)
        self.members.append(member)
        return member

    def join(self) -> None:
        self.application().begin("orders", "clicks")

    def join_static(self) -> None:
        self.application(f"instance {next(self._names)}").begin("orders", "clicks")

    def restart_static(self) -> None:
        """One dies, or stops in good order, and comes back under its instance id."""
        if not self.members:
            return
        member = self.members.pop(self.chance.randrange(len(self.members)))
        if self.chance.random() < 0.5:
            left = member.leave()
            self.simulation.run_until(lambda: left.is_done)
        member.kill()
        self.simulation.run_for(self.chance.choice((0, 500, 3_000)))
        self.application(member.instance_id).begin("orders", "clicks")

    def leave(self) -> None:
        if self.members:
            member = self.members.pop(self.chance.randrange(len(self.members)))
            left = member.leave()
            self.simulation.run_until(lambda: left.is_done)
            member.kill()

    def kill(self) -> None:
        if self.members:
            self.members.pop(self.chance.randrange(len(self.members))).kill()

    def drop(self) -> None:
        """Connections break a few steps after they were used, or in the midst of it."""
        for member in self.members:
            if self.chance.random() < 0.5:
                member.client.drop_connections()

    def hang(self) -> None:
        if self.members:
            self.chance.choice(self.members).is_hanging = True

    def wake(self) -> None:
        for member in self.members:
            member.is_hanging = False

    def restart_node(self) -> None:
        assert self.node is not None
        node, self.node = self.node, None
        disk = node.kill()
        self.simulation.run_for(self.chance.choice((10, 3_000)))
        self.node = self.simulation.start(self.make_node, disk)

    def check(self) -> None:
        """Called whenever an application is given something."""
        self.moves += 1
        held = [(partition, member.name) for member in self.members for partition in member.holds]
        assert len({partition for partition, _ in held}) == len(held), f"read twice: {sorted(held)}"

    def is_settled(self) -> bool:
        held = [partition for member in self.members for partition in member.has]
        return len(held) == len(ALL) and not any(member.member.is_rebalancing for member in self.members)

    def settle(self) -> None:
        self.wake()
        while not self.members:
            self.join()
        for _ in range(MOST_ROUNDS):
            self.simulation.run_until(self.is_settled, SETTLED_MS)
            moves = self.moves
            self.simulation.run_for(QUIET_MS)
            if moves == self.moves:
                break
        assert self.is_settled(), "it never lasts"
        assert {partition for member in self.members for partition in member.has} == ALL

    def problems(self) -> Iterator[Exception]:
        for member in self.members:
            yield from member.failures
            yield from member.client.problems


def play(group: Group, *events: str) -> None:
    for _ in range(3):
        getattr(group, events[0])()
    group.settle()
    for _ in range(TURNS):
        getattr(group, group.chance.choice(events))()
        group.simulation.run_for(group.chance.choice((0, 30, 700, 4_000, 25_000)))
        group.check()
    group.settle()
    assert list(group.problems()) == []


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_group_settles_through_joins_leaves_kills_and_hanging_applications(protocol: str, seed: int) -> None:
    play(Group(seed, (protocol,)), "join", "join", "leave", "kill", "hang", "wake")


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("protocol", ["range", "cooperative-sticky", "consumer"])
def test_a_group_settles_through_connections_that_break(protocol: str, seed: int) -> None:
    play(Group(seed, (protocol,)), "join", "drop", "drop", "leave")


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("protocol", ["range", "cooperative-sticky", "consumer"])
def test_a_group_settles_through_restarts_of_its_coordinator(protocol: str, seed: int) -> None:
    play(Group(seed, (protocol,)), "join", "leave", "kill", "restart_node")


@pytest.mark.parametrize("seed", range(2))
def test_a_group_of_both_protocols_settles(seed: int) -> None:
    play(Group(seed, ("cooperative-sticky", "consumer")), "join", "join", "leave", "kill")


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("protocol", ["range", "cooperative-sticky"])
def test_a_classic_group_of_static_members_settles_through_their_restarts(protocol: str, seed: int) -> None:
    play(Group(seed, (protocol,)), "join_static", "restart_static", "restart_static", "kill")


@pytest.mark.parametrize("protocol", ["range", "cooperative-sticky", "consumer"])
def test_a_static_member_that_comes_back_in_time_has_its_partitions_again_and_nobody_moves(protocol: str) -> None:
    group = Group(3, (protocol,))
    for _ in range(3):
        group.join_static()
    group.settle()
    leaving, *others = group.members
    had, moves = set(leaving.has), group.moves
    left = leaving.leave()
    group.simulation.run_until(lambda: left.is_done)
    leaving.kill()
    group.members.remove(leaving)
    group.simulation.run_for(2_000)
    back = group.application(leaving.instance_id)
    back.begin("orders", "clicks")
    group.settle()
    assert back.has == had
    assert group.moves == moves + 1, f"only one was given something: {others}"


def test_topics_that_match_a_pattern_later_are_read_too() -> None:
    group = Group(4, ("consumer",))
    for _ in range(2):
        group.application().begin_with_pattern("orders.*")
    group.simulation.run_for(20_000)
    assert {partition.topic for member in group.members for partition in member.has} == {"orders"}
    assert group.node is not None
    admin = group.node.connect(name="admin again")
    create_topics(admin, "orders-of-today", partitions=2)
    admin.close()
    new = {TopicPartition("orders-of-today", number) for number in range(2)}
    group.simulation.run_until(lambda: new <= set().union(*(member.has for member in group.members)), 1_000_000)
