"""Cuts of the network: which links carry nothing for a while, and which carry it too late, twice, or break under it.

A cut is a set of links, each one direction between two machines. Those of one cut are mended together; a link that two
cuts have in common is whole when both are over.
"""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from ottla.testing.sim.cluster.machine import Machine
from ottla.testing.sim.faults.fault import Fault
from ottla.testing.sim.network.fabric import Host
from ottla.testing.sim.network.links import Link
from ottla.testing.sim.network.passing_frames import Repeating

if TYPE_CHECKING:
    from ottla.testing.sim.faults.fault_kinds import End
    from ottla.testing.sim.faults.nemesis import Nemesis

_LEAST_REPEATED: Final = 0.002
_MOST_REPEATED: Final = 0.05
"""Of a hundred frames, five: a connection lasts for twenty of them then."""


def partition(nemesis: "Nemesis", fault: Fault, machine: Machine) -> "End":
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


def stale_leader(nemesis: "Nemesis", fault: Fault, machine: Machine) -> "End":
    """The node is cut off from the other nodes, and clients reach it: it takes what its logs are cut of later."""
    return _cut(_both_ways(nemesis, [machine.host], nemesis.other_nodes(machine)))


def pair(nemesis: "Nemesis", fault: Fault, machine: Machine) -> "End":
    """The node and another do not reach each other; everybody else reaches both."""
    return _cut(_both_ways(nemesis, [machine.host], _another(nemesis, fault, machine)))


def one_way(nemesis: "Nemesis", fault: Fault, machine: Machine) -> "End":
    """What the node sends to one other node does not arrive. What that one sends does."""
    return _cut(nemesis.fabric.links_between([machine.host], _another(nemesis, fault, machine)))


def _another(nemesis: "Nemesis", fault: Fault, machine: Machine) -> list[Host]:
    """Another node, or a client; nobody where there is none, as in a run without programs."""
    others = nemesis.other_nodes(machine) or nemesis.client_hosts()
    return [nemesis.chance_of(fault).choice(others)] if others else []


def bridge(nemesis: "Nemesis", fault: Fault, machine: Machine) -> "End":
    """The other nodes are in two halves that do not reach each other; the node reaches both."""
    others = nemesis.other_nodes(machine)
    nemesis.chance_of(fault).shuffle(others)
    half = len(others) // 2
    return _cut(_both_ways(nemesis, others[:half], others[half:]))


def ring(nemesis: "Nemesis", fault: Fault, machine: Machine) -> "End":
    """Nodes reach only those beside them in a ring, so that no two see the same majority; of three, each one way."""
    hosts = [one.host for one in nemesis.machines]
    nemesis.chance_of(fault).shuffle(hosts)
    reach = max(len(hosts) // 4, 1)
    links: list[Link] = []
    for place, host in enumerate(hosts):
        if len(hosts) <= 3:
            links += nemesis.fabric.links_between([host], [hosts[(place + 1) % len(hosts)]])
            continue
        steps = [min((at - place) % len(hosts), (place - at) % len(hosts)) for at in range(len(hosts))]
        far = [other for other, away in zip(hosts, steps, strict=True) if away > reach]
        links += nemesis.fabric.links_between([host], far)
    return _cut(links)


def swizzle(nemesis: "Nemesis", fault: Fault, machine: Machine) -> "End":
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
        links = _both_ways(nemesis, [one.host], [*nemesis.other_nodes(one), *nemesis.client_hosts()])
        nemesis.later(place * 700, partial(cut, links))

    def end() -> None:
        is_over.append(True)
        chance.shuffle(mends)
        for place, mend in enumerate(mends):
            nemesis.later(place * 700, mend)

    return end


def slow_links(nemesis: "Nemesis", fault: Fault, machine: Machine) -> "End":
    links = _both_ways(nemesis, [machine.host], [*nemesis.other_nodes(machine), *nemesis.client_hosts()])
    return _slowed(links, abs(fault.amount) % 2_000_000)


def late_replies(nemesis: "Nemesis", fault: Fault, machine: Machine) -> "End":
    """What the node is sent arrives at once. What it sends arrives after up to a minute: many have given up by then."""
    links = nemesis.fabric.links_between([machine.host], [*nemesis.other_nodes(machine), *nemesis.client_hosts()])
    return _slowed(links, abs(fault.amount) * 100)


def lost_replies(nemesis: "Nemesis", fault: Fault, machine: Machine) -> "End":
    """Connections break under what the node sends: it has done what it was asked, and is asked for it again."""
    links = nemesis.fabric.links_between([machine.host], [*nemesis.other_nodes(machine), *nemesis.client_hosts()])
    for link in links:
        link.breaks = 0.01 + abs(fault.amount) % 10 / 100

    def end() -> None:
        for link in links:
            link.breaks = 0.0

    return end


def repeated_replies(nemesis: "Nemesis", fault: Fault, machine: Machine) -> "End":
    """Whole replies come twice now and then, and with half of the faults whole requests, too: some that the node sends,
    or is sent, or both. Who gets a reply that nobody waits for has to hang up, and ask again over another connection.
    """
    chance = nemesis.chance_of(fault)
    others = [*nemesis.other_nodes(machine), *nemesis.client_hosts()]
    links: list[Link] = []
    if fault.amount % 3 != 0:
        links += nemesis.fabric.links_between([machine.host], others)
    if fault.amount % 3 != 1:
        links += nemesis.fabric.links_between(others, [machine.host])
    share = chance.uniform(_LEAST_REPEATED, _MOST_REPEATED)
    repeating = Repeating(chance, share, chance.choice((0.0, share)))
    for link in links:
        link.repeating = repeating

    def end() -> None:
        for link in links:
            link.repeating = None

    return end


def resets(nemesis: "Nemesis", fault: Fault, machine: Machine) -> None:
    """Every connection of the node breaks, half-way through whatever went over it."""
    if machine.life is not None:
        for connection in machine.life.network.connections():
            connection.reset()


def _both_ways(nemesis: "Nemesis", some: Sequence[Host], others: Sequence[Host]) -> list[Link]:
    return nemesis.fabric.links_between(some, others) + nemesis.fabric.links_between(others, some)


def _cut(links: list[Link]) -> "End":
    for link in links:
        link.cut()

    def end() -> None:
        for link in links:
            link.mend()

    return end


def _slowed(links: list[Link], by_us: int) -> "End":
    for link in links:
        link.slow_us = by_us

    def end() -> None:
        for link in links:
            link.slow_us = 0

    return end
