"""What goes wrong in a run, drawn from its seed: kills, pauses, partitions, latency, full disks, wrong clocks.

One after the other. In a mixed cluster a node that was killed comes back as one of the other implementation.
"""

import time
from collections.abc import Callable, Iterator
from random import Random
from threading import Event
from typing import NamedTuple

from tests.chaos.chaos_cluster import NODE_IDS, ChaosCluster


class Fault(NamedTuple):
    after_s: float
    """How long all is well before it."""
    kind: str
    nodes: tuple[int, ...]
    lasts_s: float
    ahead_s: float = 0.0
    """How far a clock is moved, back if it is negative."""

    def __str__(self) -> str:
        moved = f" by {self.ahead_s:+.0f} s" if self.ahead_s else ""
        return f"{self.kind} {', '.join(map(str, self.nodes))}{moved} for {self.lasts_s:.1f} s"


KINDS = ("kill", "kill", "pause", "isolate", "isolate", "cut", "cut one way", "slow", "full disk", "clock")
_MOST_WELL_S, _MOST_WRONG_S = 4.0, 8.0
_LEAST_WRONG_S = 0.5
_DELAY_S = 0.1
_MOST_AHEAD_S = 60.0


def drawn(seed: int) -> Iterator[Fault]:
    """Without end. Two nodes are killed at once now and then, so that nothing can be acknowledged for a while."""
    random = Random(seed)
    while True:
        kind = random.choice(KINDS)
        count = 2 if kind.startswith("cut") or (kind == "kill" and random.random() < 0.2) else 1
        nodes = tuple(random.sample(NODE_IDS, count))
        nodes = NODE_IDS if kind == "slow" else nodes
        after_s, lasts_s = random.uniform(1.0, _MOST_WELL_S), random.uniform(_LEAST_WRONG_S, _MOST_WRONG_S)
        ahead_s = random.uniform(-_MOST_AHEAD_S, _MOST_AHEAD_S) if kind == "clock" else 0.0
        yield Fault(after_s, kind, nodes, lasts_s, ahead_s)


def inflict(cluster: ChaosCluster, seed: int, for_s: float, tell: Callable[[str], None], over: Event) -> int:
    """Faults for as long as it is told; returns how many, with all of them undone."""
    began_s, count = time.monotonic(), 0
    for fault in drawn(seed):
        if time.monotonic() - began_s + fault.after_s > for_s or over.wait(fault.after_s):
            break
        is_possible = _is_possible(cluster, fault)
        left_out = "" if is_possible else ", left out: this machine does not let it happen"
        tell(f"{time.monotonic() - began_s:6.1f} s  {fault}{left_out}")
        if not is_possible:
            continue
        _begin(cluster, fault)
        over.wait(fault.lasts_s)
        _end(cluster, fault)
        count += 1
    return count


def _is_possible(cluster: ChaosCluster, fault: Fault) -> bool:
    match fault.kind:
        case "full disk":
            return cluster.machines.can_fill_disks
        case "clock":
            return cluster.machines.can_move_clocks
    return True


def _begin(cluster: ChaosCluster, fault: Fault) -> None:
    match fault.kind:
        case "kill":
            for node_id in fault.nodes:
                cluster.kill(node_id)
        case "pause":
            cluster.pause(fault.nodes[0])
        case "isolate":
            (alone,) = fault.nodes
            others = [node_id for node_id in NODE_IDS if node_id != alone]
            cluster.links.cut([link for other in others for link in ((alone, other), (other, alone))])
        case "cut":
            one, other = fault.nodes
            cluster.links.cut([(one, other), (other, one)])
        case "cut one way":
            one, other = fault.nodes
            cluster.links.cut([(one, other)])
        case "slow":
            cluster.links.slow_down(_DELAY_S)
        case "full disk":
            cluster.machines.fill_disk(fault.nodes[0])
        case "clock":
            cluster.machines.move_clock(fault.nodes[0], fault.ahead_s)


def _end(cluster: ChaosCluster, fault: Fault) -> None:
    match fault.kind:
        case "kill":
            for node_id in fault.nodes:
                if cluster.is_mixed:
                    cluster.swap(node_id)
                cluster.start(node_id)
        case "pause":
            cluster.resume(fault.nodes[0])
        case "full disk":
            # There is room again, and the node is started anew: it may have stopped, as Apache Kafka's does.
            cluster.machines.free_disk(fault.nodes[0])
            cluster.kill(fault.nodes[0])
            cluster.start(fault.nodes[0])
        case "clock":
            cluster.machines.move_clock(fault.nodes[0], 0.0)
        case _:
            cluster.links.mend()
