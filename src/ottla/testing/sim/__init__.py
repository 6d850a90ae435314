"""Whole nodes in one thread, from a seed: the production code, on a world that is made up.

    simulation           nodes, time, and what happens next
    simulated_node       one life of a node, from its start to a stop, a kill or a power cut
    simulated_client     a client's connection to a node
    simulated_dialer     the world of our own clients in it
    simulated_workers    disk threads whose jobs are cut into their calls, and finish in an order that chance decides
    simulated_cleaner    a cleaner that takes its steps one after the other
    transcript           what went over the connections, to compare one run with another
    cluster/             several nodes, each on its machine
    workloads/           programs that use the cluster, and the history of what they saw
    faults/              what goes wrong, drawn from the seed
    invariants/          what must hold all the same
    run_profiles         what runs are like: which faults happen, how often, and who votes
    run_plan             what a seed has in store, as data
    simulated_run        one run of it: safety under faults, then liveness
    marks                paths that runs must have reached
    shrinking            the shortest run that still fails
    canaries/            nodes that are broken on purpose, to see that it is found
    node_log             exceptions that nodes log
    hosts/               machines and processes: clocks that are wrong, pauses
    network/             links and connections: latency, loss, partitions, resets

The same seed gives the same run, to the byte. Import from the modules; what docs/simulator.md names is here, too.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ottla.base.ids import TopicPartition as TopicPartition
    from ottla.client.admin.topics import NewTopic as NewTopic
    from ottla.client.promise import spawn as spawn
    from ottla.testing.sim.cluster.cluster_settings import ClusterSettings as ClusterSettings
    from ottla.testing.sim.cluster.simulated_cluster import SimulatedCluster as SimulatedCluster
    from ottla.testing.sim.workloads.history import Fate as Fate
    from ottla.testing.sim.workloads.history import History as History
    from ottla.testing.sim.workloads.producing import SimulatedProducer as SimulatedProducer

_DOORS: Final = {
    "TopicPartition": "ottla.base.ids",
    "NewTopic": "ottla.client.admin.topics",
    "spawn": "ottla.client.promise",
    "ClusterSettings": "ottla.testing.sim.cluster.cluster_settings",
    "SimulatedCluster": "ottla.testing.sim.cluster.simulated_cluster",
    "Fate": "ottla.testing.sim.workloads.history",
    "History": "ottla.testing.sim.workloads.history",
    "SimulatedProducer": "ottla.testing.sim.workloads.producing",
}


def __getattr__(name: str) -> object:
    """What docs/simulator.md names, imported when it is asked for."""
    if name in _DOORS:
        return getattr(import_module(_DOORS[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
