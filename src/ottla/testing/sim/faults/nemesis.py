"""Has the faults of a plan happen, ends them, and starts nodes again that could not continue."""

from collections.abc import Callable, Mapping, Sequence
from random import Random

from ottla.testing.sim.cluster.machine import Machine
from ottla.testing.sim.cluster.simulated_cluster import SimulatedCluster
from ottla.testing.sim.faults.fault import Fault
from ottla.testing.sim.faults.fault_kinds import KINDS
from ottla.testing.sim.faults.metadata_damage import QuorumPromises
from ottla.testing.sim.faults.promises import IsInIt, Promises
from ottla.testing.sim.faults.schedule import Schedule
from ottla.testing.sim.network.fabric import Host
from ottla.testing.sim.workloads.actor import Actor
from ottla.testing.sim.workloads.history import History

_RESTARTED_AFTER_MS = 1_000


class Nemesis:
    """`log` tells what happened when."""

    def __init__(self, cluster: SimulatedCluster, history: History, actors: Sequence[Actor]) -> None:
        self.simulation = cluster.simulation
        self.fabric = cluster.simulation.fabric
        self.actors = actors
        self.log: list[str] = []
        self.machines = list(cluster.machines.values())
        self._cluster = cluster
        self._history = history
        self._ends: list[Callable[[], None]] = []
        self._is_over = False
        self.promises = Promises(cluster, history)
        self.quorum = QuorumPromises(cluster)
        self.schedule: Schedule | None = None
        """The last that was begun: one runs at a time."""
        for machine in self.machines:
            machine.on_failed = lambda why, was_expected, machine=machine: self._on_failed(machine, why, was_expected)  # type: ignore[misc]

    def plan(self, faults: Sequence[Fault]) -> None:
        for fault in faults:
            self.later(max(fault.at_ms, 0), lambda fault=fault: self._begin(fault))  # type: ignore[misc]

    def end_all(self) -> None:
        """Everything is mended, and every node is started that is not up."""
        self._is_over = True
        ends, self._ends = self._ends, []
        for end in ends:
            end()
        for machine in self.machines:
            self.start(machine)

    def _begin(self, fault: Fault) -> None:
        if self._is_over:
            return
        self.note(f"{fault.kind} of node {fault.node_id} for {fault.for_ms} ms (#{fault.number})")
        end = KINDS[fault.kind].begin(self, fault, self._cluster.machines[fault.node_id])
        if end is not None:
            self._ends.append(end)
            self.later(fault.for_ms, lambda: self._end(fault, end))

    def _end(self, fault: Fault, end: Callable[[], None]) -> None:
        if end in self._ends:
            self._ends.remove(end)
            self.note(f"end of {fault.kind} of node {fault.node_id} (#{fault.number})")
            end()

    def _on_failed(self, machine: Machine, why: str, was_expected: bool) -> None:
        self.note(f"node {machine.node_id} gave up: {why}")
        if not was_expected:
            self._history.violated("a node gives up only when its disk fails", f"node {machine.node_id}: {why}")
            return
        machine.mend_disk()
        if machine.log_dirs[0] in machine.failed_directories:
            machine.mend_directory(machine.log_dirs[0])  # Without it, it cannot start.
        self.later(_RESTARTED_AFTER_MS, lambda: self.start(machine))

    # For kinds of faults

    def start(self, machine: Machine, other_settings: Mapping[str, str] | None = None) -> None:
        """Starts a node that does not run. One that is on its way down is killed first."""
        if machine.life is not None and machine.life.is_stopping:
            machine.kill()
        if machine.life is None:
            self.note(f"node {machine.node_id} starts")
            machine.start(other_settings)

    def may_cut_power(self, machine: Machine) -> bool:
        """Whether what was promised is safe without this machine's memory: it is on disks, or on other nodes."""
        is_safe = self._cluster.settings.flushes or self.promises.may_lose(machine)
        return is_safe and self.promises.may_end(machine)

    def may_lose_directory(self, machine: Machine, path: str, *, is_for_good: bool) -> bool:
        """The same for what is in a log directory, or is not synced of it. With the metadata's, the node ends."""
        if path == machine.log_dirs[0]:
            return self.may_cut_power(machine)
        is_in_it = self._is_in(machine, path)
        is_safe = self._cluster.settings.flushes and not is_for_good
        return self.promises.may_end(machine, is_in_it) and (is_safe or self.promises.may_lose(machine, is_in_it))

    def on_memory_lost(self, machine: Machine) -> None:
        """What this machine had not synced is gone, or is about to go."""
        if not self._cluster.settings.flushes:
            self.promises.on_lost(machine)

    def on_directory_lost(self, machine: Machine, path: str, *, is_for_good: bool) -> None:
        """What is in a log directory is about to go, or what is not synced of it: as `may_lose_directory`."""
        if path == machine.log_dirs[0]:
            self.on_memory_lost(machine)
        elif is_for_good or not self._cluster.settings.flushes:
            self.promises.on_lost(machine, self._is_in(machine, path))

    def _is_in(self, machine: Machine, path: str) -> IsInIt:
        """Which partitions are in a log directory now: all may be, while nobody knows."""
        broker = machine.node.broker if machine.is_serving and machine.node is not None else None
        directory = broker.partitions.logs.online.get(path) if broker is not None else None
        if directory is None:
            return lambda name: True
        names = frozenset(directory.logs)
        return lambda name: name in names

    def must_live(self, machine: Machine) -> bool:
        """Whether the node is all that is left of some promise: see `promises`."""
        if self.promises.may_end(machine):
            return False
        self.note(f"node {machine.node_id} lives on: another has lost records that it has")
        return True

    @property
    def controllers_have_tls(self) -> bool:
        return self._cluster.settings.encryption.of_controllers

    def is_controller(self, machine: Machine) -> bool:
        return machine.node_id in self._cluster.settings.controllers()

    def is_broker(self, machine: Machine) -> bool:
        return machine.node_id in self._cluster.settings.brokers()

    def other_nodes(self, machine: Machine) -> list[Host]:
        return [one.host for one in self.machines if one is not machine]

    def client_hosts(self) -> list[Host]:
        return [client.host for client in self._cluster.clients if not client.process.is_over]

    def chance_of(self, fault: Fault) -> Random:
        return self._cluster.simulation.chance(f"fault {fault.number}")

    def later(self, delay_ms: int, callback: Callable[[], None]) -> None:
        agenda = self._cluster.simulation.agenda
        agenda.call_at(agenda.clock.elapsed_us() + delay_ms * 1000, callback)

    def note(self, what: str) -> None:
        self.log.append(f"{self._cluster.simulation.clock.elapsed_us() / 1_000_000:9.3f} s  {what}")
