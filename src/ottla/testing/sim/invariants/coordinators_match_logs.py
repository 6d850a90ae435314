"""A coordinator is what its log says: one that is loaded from it now has the same groups, offsets and transactions."""

from typing import Any

from ottla.broker.coordination.coordinated_partition import CoordinatedPartition, CoordinatorState
from ottla.broker.coordination.loading import replay_batch
from ottla.broker.coordination.topic_coordinator import TopicCoordinator
from ottla.machines.group.group_coordinator import GroupCoordinator
from ottla.machines.transaction.transaction_coordinator import TransactionCoordinator
from ottla.testing.sim.cluster.machine import Machine
from ottla.testing.sim.cluster.simulated_cluster import SimulatedCluster
from ottla.testing.sim.invariants.invariant import PeriodicInvariant
from ottla.testing.sim.invariants.replicas import batches_of
from ottla.testing.sim.workloads.final_reader import FinalRead
from ottla.testing.sim.workloads.history import History


class CoordinatorsMatchLogs(PeriodicInvariant):
    name = "a coordinator is what its log says"
    every_us = 9_000_000

    def at_end(self, found: FinalRead) -> None:
        self.look()

    def look(self) -> None:
        for machine in self.cluster.machines.values():
            broker = machine.node.broker if machine.is_serving and machine.node is not None else None
            if broker is None or machine.may_fail or machine.failed_directories:
                continue
            led: list[CoordinatedPartition[Any]] = [
                *broker.coordinators.groups.partitions.values(),
                *broker.coordinators.transactions.partitions.values(),
            ]
            for one in led:
                if one.state is CoordinatorState.ACTIVE and one._log._open is None and not one.offline:
                    self._look_at(machine, one)

    def _look_at(self, machine: Machine, led: CoordinatedPartition[Any]) -> None:
        loaded = led._make_machine()
        broken: list[str] = []
        for header, data, _ in batches_of(machine, led.partition.log):
            if header.next_offset > led.partition.log.log_start_offset:
                replay_batch(
                    loaded, led._topic, bytes(data), 0, header, lambda subject, problem: broken.append(repr(problem))
                )
        where = f"{led.partition.name} of node {machine.node_id}"
        if broken:
            self.violated(f"{where} cannot be loaded: {broken[0]}")
            return
        said, known = _facts_of(loaded), _facts_of(led.machine)
        if said != known:
            keys = [key for key in sorted(said.keys() | known.keys(), key=repr) if said.get(key) != known.get(key)]
            key = keys[0]
            self.violated(f"{where}: {key} is {said.get(key)!r} by its log, and {known.get(key)!r} by its coordinator")

    def pending(self) -> str:
        """Where a leader of a coordinator's partition does not coordinate."""
        for machine in self.cluster.machines.values():
            broker = machine.node.broker if machine.is_serving and machine.node is not None else None
            if broker is None:
                continue
            for coordinator in (broker.coordinators.groups, broker.coordinators.transactions):
                for index, led in coordinator.partitions.items():
                    if led.state is not CoordinatorState.ACTIVE:
                        return f"{coordinator.topic_name}-{index} on node {machine.node_id} is {led.state.value}"
        return ""


class ClosedCoordinatorsStayClosed(PeriodicInvariant):
    name = "a coordinator that has lost its partition does not come back"
    every_us = 20_000

    def __init__(self, cluster: SimulatedCluster, history: History) -> None:
        super().__init__(cluster, history)
        self._seen: dict[CoordinatedPartition[Any], tuple[object, TopicCoordinator[Any]]] = {}

    def look(self) -> None:
        lives = set()
        for machine in self.cluster.machines.values():
            broker = machine.node.broker if machine.node is not None else None
            if broker is None:
                continue
            lives.add(machine.life)
            topics: list[TopicCoordinator[Any]] = [broker.coordinators.groups, broker.coordinators.transactions]
            for coordinator in topics:
                for led in coordinator.partitions.values():
                    self._seen[led] = machine.life, coordinator
        for led, (life, coordinator) in list(self._seen.items()):
            if life not in lives:
                del self._seen[led]
            elif led not in coordinator.partitions.values() and not led.is_closed:
                self.violated(f"{led.partition.name} is coordinated by what has lost it, and is {led.state.value}")


def _facts_of(machine: Any) -> dict[Any, Any]:
    """What is in its log, by what it is about. Who waits, and when somebody was heard of, is not."""
    if isinstance(machine, TransactionCoordinator):
        return dict(machine.transactions)
    assert isinstance(machine, GroupCoordinator)
    facts: dict[Any, Any] = {("group", name): _epoch_of(group) for name, group in machine.groups.items()}
    for group_id, topic, number, offset in machine.offsets.each():
        facts["offset", group_id, topic, number] = offset
    for producer_id, groups in machine.offsets.pending.items():
        for group_id, topics in groups.items():
            for topic, partitions in topics.items():
                for number, committed in partitions.items():
                    facts["pending", producer_id, group_id, topic, number] = committed.offset
    return facts


def _epoch_of(group: Any) -> Any:
    return type(group).__name__
