"""Faults in several steps, each of which comes when the cluster is where the step before was to bring it.

Some situations need things to happen in one order within milliseconds: what faults at drawn moments do not bring about
in years. A schedule is a generator. It does something, yields what it waits for, and continues right after the step of
the simulation in which that became so; or is over, where it does not become so in time. What it has cut is mended then,
and who it has killed is started: also when its fault ends first.

Which nodes play which part, the seed decides. A schedule looks into nodes to find its moment; what it does to them are
faults like any other, and a sound cluster comes through.
"""

from collections.abc import Callable, Collection, Generator, Iterable
from random import Random
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ottla.security.tls.contexts import client_context
from ottla.testing.sim.cluster.cluster_settings import BROKER_PORT, CONTROLLER_PORT
from ottla.testing.sim.cluster.encryption import SSL_SETTINGS
from ottla.testing.sim.cluster.machine import Machine
from ottla.testing.sim.faults.fault import Fault
from ottla.testing.sim.network.links import Link
from ottla.testing.sim.simulated_client import SimulatedClient
from ottla.wire.message import Message

if TYPE_CHECKING:
    from ottla.testing.sim.faults.fault_kinds import Begin, End
    from ottla.testing.sim.faults.nemesis import Nemesis


class Until(NamedTuple):
    """Waits for something to become so. If it takes longer, the schedule is over, unless it continues without."""

    what: str
    is_so: Callable[[], bool]
    most_ms: int
    is_needed: bool = True


Steps: TypeAlias = Generator[Until | int, None, None]
"""What a schedule waits for: that something is so, or that so many milliseconds have passed."""


class Schedule:
    """What the steps of a schedule do, and how it is undone."""

    def __init__(self, nemesis: "Nemesis", fault: Fault, machine: Machine) -> None:
        self.nemesis = nemesis
        self.machine = machine
        """The one that the fault names."""
        self.chance: Random = nemesis.chance_of(fault)
        self.controllers = [one for one in nemesis.machines if nemesis.is_controller(one)]
        self.brokers = [one for one in nemesis.machines if nemesis.is_broker(one)]
        self.links: list[Link] = []
        """Those that are cut."""
        self._killed: list[Machine] = []
        self._clients: list[SimulatedClient] = []
        self._steps: Steps | None = None
        self._waits_for: Until | None = None
        self._due_us = 0

    # For the steps

    def leader(self) -> Machine | None:
        """The controller that leads the quorum in the highest epoch."""
        leading = [(one.metadata.raft.epoch, one) for one in self.controllers if one.metadata and _leads(one)]
        return max(leading, key=lambda found: found[0])[1] if leading else None

    def cut(self, some: Iterable[Machine], others: Iterable[Machine], *, both_ways: bool = True) -> list[Link]:
        """What the one send does not reach the others, until it is mended."""
        here, there = [one.host for one in some], [one.host for one in others]
        links = self.nemesis.fabric.links_between(here, there)
        if both_ways:
            links += self.nemesis.fabric.links_between(there, here)
        for link in links:
            link.cut()
        self.links += links
        return links

    def mend(self, links: Collection[Link]) -> None:
        for link in links:
            self.links.remove(link)
            link.mend()

    def reset(self, machine: Machine, others: Iterable[Machine]) -> None:
        """Every connection between the node and one of these breaks."""
        hosts = {one.host for one in others}
        for end in machine.life.network.connections() if machine.life is not None else ():
            if end.peer.network.host in hosts:
                end.reset()

    def kill(self, machine: Machine) -> bool:
        """Whether the node is down now: one that is all that is left of some promise lives on."""
        if machine.life is None:
            return True
        if self.nemesis.must_live(machine):
            return False
        machine.kill()
        self._killed.append(machine)
        return True

    def start(self, machine: Machine) -> None:
        if machine in self._killed:
            self._killed.remove(machine)
        self.nemesis.start(machine)

    def ask(self, machine: Machine, request: Message, version: int) -> SimulatedClient | None:
        """Asks a node something, over a connection that no fault knows of; at a controller's listener if it has one."""
        if machine.life is None:
            return None
        port = CONTROLLER_PORT if self.nemesis.is_controller(machine) else BROKER_PORT
        has_tls = port == CONTROLLER_PORT and self.nemesis.controllers_have_tls
        context = client_context(SSL_SETTINGS) if has_tls else None
        try:
            client = machine.life.connect(port=port, name="schedule", tls=context)
        except ConnectionRefusedError:
            return None
        client.send(request, version)
        self._clients.append(client)
        return client

    def note(self, what: str) -> None:
        self.nemesis.note(f"  {what}")

    # How it continues

    def begin(self, steps: Steps) -> "End":
        self._steps = steps
        self._resume()
        return self.end

    @property
    def is_over(self) -> bool:
        return self._steps is None

    def end(self) -> None:
        """Whatever it did is undone."""
        if self._steps is None:
            return
        steps, self._steps = self._steps, None
        steps.close()
        self._stop_waiting()
        for client in self._clients:
            client.close()
        self.mend(list(self.links))
        for machine in list(self._killed):
            self.start(machine)

    def _resume(self) -> None:
        if self._steps is None:
            return
        try:
            wanted = next(self._steps)
        except StopIteration:
            self.note("the schedule is over")
            self.end()
            return
        simulation = self.nemesis.simulation
        if isinstance(wanted, int):
            self.nemesis.later(wanted, self._resume)
        else:
            self._waits_for, self._due_us = wanted, simulation.clock.elapsed_us() + wanted.most_ms * 1000
            simulation.watchers[self._look] = None

    def _stop_waiting(self) -> None:
        self._waits_for = None
        self.nemesis.simulation.watchers.pop(self._look, None)

    def _look(self) -> None:
        if self._waits_for is None:
            return
        if self._waits_for.is_so():
            self._stop_waiting()
            self._resume()
        elif self.nemesis.simulation.clock.elapsed_us() > self._due_us:
            if not self._waits_for.is_needed:
                self._stop_waiting()
                self._resume()
                return
            self.note(f"the schedule is given up: not within {self._waits_for.most_ms} ms, {self._waits_for.what}")
            self.end()


def scheduled(steps: Callable[[Schedule], Steps]) -> "Begin":
    """The fault that such a schedule is."""

    def begin(nemesis: "Nemesis", fault: Fault, machine: Machine) -> "End | None":
        if nemesis.schedule is not None and not nemesis.schedule.is_over:
            return None  # Two would only spoil each other's moments.
        nemesis.schedule = schedule = Schedule(nemesis, fault, machine)
        return schedule.begin(steps(schedule))

    return begin


def _leads(machine: Machine) -> bool:
    return machine.metadata is not None and machine.metadata.raft.is_leader
