"""What each kind of fault does. A function begins it, and returns what ends it."""

import errno
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.testing.sim.cluster.machine import Machine
from ottla.testing.sim.faults.fault import Fault
from ottla.testing.sim.network.fabric import Host
from ottla.testing.sim.network.links import Link

if TYPE_CHECKING:
    from ottla.testing.sim.faults.nemesis import Nemesis

End = Callable[[], None]
Begin = Callable[["Nemesis", Fault, Machine], End | None]

OTHER_SETTINGS: Final = (
    {"log.segment.bytes": "1048576"},
    {"log.flush.interval.ms": "500"},
    {"num.recovery.threads.per.data.dir": "1"},
    {"metadata.log.max.record.bytes.between.snapshots": "1000"},
)


# Processes and machines


def kill(nemesis: "Nemesis", fault: Fault, machine: Machine) -> End:
    machine.kill()
    return lambda: nemesis.start(machine)


def power_cut(nemesis: "Nemesis", fault: Fault, machine: Machine) -> End:
    """Only where nothing that was promised can be lost by it. Else the process dies, and its disk keeps everything."""
    if nemesis.may_cut_power(machine):
        machine.cut_power()
    else:
        nemesis.note(f"node {machine.node_id} is killed, and keeps its power")
        machine.kill()
    return lambda: nemesis.start(machine)


def restart(nemesis: "Nemesis", fault: Fault, machine: Machine) -> End:
    """In good order, with another setting. A node that is not done in time is killed, as an impatient operator does."""
    machine.stop()

    def end() -> None:
        machine.kill()
        nemesis.start(machine, OTHER_SETTINGS[fault.amount % len(OTHER_SETTINGS)])

    return end


def pause(nemesis: "Nemesis", fault: Fault, machine: Machine) -> End | None:
    life = machine.life
    if life is None:
        return None
    life.pause()
    return life.go_on


# Clocks


def clock_jump(nemesis: "Nemesis", fault: Fault, machine: Machine) -> End:
    machine.clock.jump(fault.amount)
    return lambda: machine.clock.jump(-fault.amount)


def clock_stall(nemesis: "Nemesis", fault: Fault, machine: Machine) -> End:
    machine.clock.stall()
    return machine.clock.go_on


# Disks


def slow_disk(nemesis: "Nemesis", fault: Fault, machine: Machine) -> End:
    machine.set_slowness(1.0 + abs(fault.amount) % 500)
    return lambda: machine.set_slowness(1.0)


def full_disk(nemesis: "Nemesis", fault: Fault, machine: Machine) -> End:
    machine.spoil_disk()
    machine.disk.usable_bytes = abs(fault.amount) % 20_000
    return machine.mend_disk


def failed_sync(nemesis: "Nemesis", fault: Fault, machine: Machine) -> End | None:
    """What the sync was to make durable may be lost for good, though this life of the node still sees it."""
    if not nemesis.may_cut_power(machine):
        return None
    machine.spoil_disk()
    machine.disk.fail_next("sync", errno.EIO)
    return machine.mend_disk


def failed_write(nemesis: "Nemesis", fault: Fault, machine: Machine) -> End:
    machine.spoil_disk()
    machine.disk.fail_next("write", errno.EIO)
    return machine.mend_disk


# The network


def partition(nemesis: "Nemesis", fault: Fault, machine: Machine) -> End:
    """The node is cut off from the other nodes, from clients, or from both; in one direction or in both."""
    others: list[Host] = []
    if fault.amount % 3 != 0:
        others += nemesis.other_nodes(machine)
    if fault.amount % 3 != 1:
        others += nemesis.client_hosts()
    links: list[Link] = []
    if fault.amount % 4 != 0:
        links += nemesis.fabric.links_between([machine.host], others)
    if fault.amount % 4 != 1:
        links += nemesis.fabric.links_between(others, [machine.host])
    return _cut(links)


def swizzle(nemesis: "Nemesis", fault: Fault, machine: Machine) -> End:
    """Some nodes are cut off one after the other, and come back one after the other in another order."""
    chance = nemesis.chance_of(fault)
    machines = list(nemesis.machines)
    chance.shuffle(machines)
    mends: list[End] = []
    is_over: list[bool] = []

    def cut(links: list[Link]) -> None:
        if not is_over:
            mends.append(_cut(links))

    for place, one in enumerate(machines[: chance.randrange(1, len(machines) + 1)]):
        others = [*nemesis.other_nodes(one), *nemesis.client_hosts()]
        links = nemesis.fabric.links_between([one.host], others) + nemesis.fabric.links_between(others, [one.host])
        nemesis.later(place * 700, partial(cut, links))

    def end() -> None:
        is_over.append(True)
        chance.shuffle(mends)
        for place, mend in enumerate(mends):
            nemesis.later(place * 700, mend)

    return end


def slow_links(nemesis: "Nemesis", fault: Fault, machine: Machine) -> End:
    others = [*nemesis.other_nodes(machine), *nemesis.client_hosts()]
    links = nemesis.fabric.links_between([machine.host], others) + nemesis.fabric.links_between(others, [machine.host])
    for link in links:
        link.slow_us = abs(fault.amount) % 2_000_000

    def end() -> None:
        for link in links:
            link.slow_us = 0

    return end


def resets(nemesis: "Nemesis", fault: Fault, machine: Machine) -> None:
    """Every connection of the node breaks, half-way through whatever went over it."""
    if machine.life is not None:
        for connection in machine.life.network.connections():
            connection.reset()


def _cut(links: list[Link]) -> End:
    for link in links:
        link.cut()

    def end() -> None:
        for link in links:
            link.mend()

    return end


# Clients


def client_kill(nemesis: "Nemesis", fault: Fault, machine: Machine) -> None:
    if nemesis.actors:
        nemesis.actors[abs(fault.amount) % len(nemesis.actors)].kill()


class FaultKind(NamedTuple):
    begin: Begin
    weight: int
    """How often it is drawn, against others."""
    longest_ms: int


KINDS: Final[dict[str, FaultKind]] = {
    "kill": FaultKind(kill, 6, 8_000),
    "power cut": FaultKind(power_cut, 6, 8_000),
    "restart": FaultKind(restart, 4, 8_000),
    "pause": FaultKind(pause, 5, 15_000),
    "clock jump": FaultKind(clock_jump, 2, 30_000),
    "clock stall": FaultKind(clock_stall, 2, 10_000),
    "slow disk": FaultKind(slow_disk, 3, 10_000),
    "full disk": FaultKind(full_disk, 2, 5_000),
    "failed sync": FaultKind(failed_sync, 3, 5_000),
    "failed write": FaultKind(failed_write, 2, 5_000),
    "partition": FaultKind(partition, 8, 20_000),
    "swizzle": FaultKind(swizzle, 3, 8_000),
    "slow links": FaultKind(slow_links, 3, 10_000),
    "resets": FaultKind(resets, 5, 1),
    "client kill": FaultKind(client_kill, 5, 1),
}
