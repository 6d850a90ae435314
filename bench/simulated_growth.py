"""How the cost of a metadata change and of a controller's failover grows with the cluster: whole nodes, simulated.

    python bench/simulated_growth.py [NODES …]        # 3 10 30 100 if none are given

Three of the nodes are controllers. For each size: what a new topic costs, from the request until every node has it; and
what the death of the active controller costs, until another one decides and every node has heard of it. Simulated
milliseconds say how long it takes on a network with 0.1 to 0.5 ms latency; steps (timers, jobs, messages) and CPU
milliseconds, of all nodes together, say how much work it is. Half a second of an idle cluster is there to compare with.
"""

import sys
from collections.abc import Callable
from time import process_time
from typing import NamedTuple

from ottla.client.admin.topics import NewTopic
from ottla.testing.sim.cluster.cluster_health import is_whole
from ottla.testing.sim.cluster.cluster_settings import ClusterSettings
from ottla.testing.sim.cluster.simulated_cluster import SimulatedCluster

SIZES = (3, 10, 30, 100)
MINUTE_MS = 60_000
CHANGES = 5


class Cost(NamedTuple):
    simulated_ms: float
    steps: float
    cpu_ms: float

    def __str__(self) -> str:
        return f"{self.simulated_ms:8.1f} {self.steps:9.0f} {self.cpu_ms:9.1f}"


def cost_of(cluster: SimulatedCluster, work: Callable[[], None], times: int = 1) -> Cost:
    simulation = cluster.simulation
    began = simulation.clock.elapsed_us(), simulation.steps, process_time()
    for _ in range(times):
        work()
    ended = simulation.clock.elapsed_us(), simulation.steps, process_time()
    us, steps, cpu_s = (end - begin for end, begin in zip(ended, began, strict=True))
    return Cost(us / 1000 / times, steps / times, cpu_s * 1000 / times)


def create_topic(cluster: SimulatedCluster, names: list[str]) -> None:
    """Until every node has it."""
    name = f"topic-{len(names)}"
    names.append(name)
    cluster.create_topics(NewTopic(name, 1))
    logs = [machine.metadata for machine in cluster.machines.values() if machine.metadata is not None]
    cluster.simulation.run_until(lambda: all(name in log.image.topics.by_name for log in logs), MINUTE_MS)


def fail_over(cluster: SimulatedCluster) -> None:
    """Until every other node knows which controller decides now."""
    machines = cluster.machines.values()
    dead = next(one for one in machines if one.metadata is not None and one.metadata.is_active)
    dead.kill()
    others = [one.metadata for one in machines if one.metadata is not None]

    def is_led() -> bool:
        active = {log.raft.leader_id for log in others}
        return any(log.is_active for log in others) and len(active) == 1 and dead.node_id not in active

    cluster.simulation.run_until(is_led, MINUTE_MS)


def measure(nodes: int) -> tuple[Cost, Cost, Cost, Cost]:
    cluster = SimulatedCluster(seed=1, settings=ClusterSettings(nodes=nodes))
    start = cost_of(cluster, cluster.start)
    cluster.simulation.run_until(lambda: is_whole(cluster), MINUTE_MS)
    cluster.simulation.run_for(5_000)
    names: list[str] = []
    create_topic(cluster, names)
    change = cost_of(cluster, lambda: create_topic(cluster, names), CHANGES)
    idle = cost_of(cluster, lambda: cluster.simulation.run_for(500))
    return start, idle, change, cost_of(cluster, lambda: fail_over(cluster))


def main(sizes: list[int]) -> None:
    print("        ", *(f"{name:^28}" for name in ("start", "0.5 s of idleness", "a new topic", "a failover")))
    print("   nodes", *(f"{'ms':>8} {'steps':>9} {'CPU ms':>9}" for _ in range(4)))
    for nodes in sizes:
        print(f"{nodes:8}", *measure(nodes), flush=True)


if __name__ == "__main__":
    main([int(text) for text in sys.argv[1:]] or list(SIZES))
