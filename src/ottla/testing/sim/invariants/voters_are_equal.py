"""Nodes that have committed the metadata up to the same offset know the same voters, in every life of theirs."""

from ottla.machines.raft.voters import DYNAMIC_VOTERS, VoterSet
from ottla.testing.sim.cluster.machine import Machine
from ottla.testing.sim.cluster.simulated_cluster import SimulatedCluster
from ottla.testing.sim.invariants.invariant import PeriodicInvariant
from ottla.testing.sim.workloads.history import History


class VotersAreEqual(PeriodicInvariant):
    """Where voters are data. Static ones are each node's setting."""

    name = "voters are the same at equal offsets"
    every_us = 500_000

    def __init__(self, cluster: SimulatedCluster, history: History) -> None:
        super().__init__(cluster, history)
        self._known: dict[int, tuple[VoterSet, int]] = {}

    def look(self) -> None:
        for machine in self.cluster.machines.values():
            self._look_at(machine)

    def _look_at(self, machine: Machine) -> None:
        metadata = machine.metadata
        if metadata is None or not metadata.committed_offset:
            return
        offset = metadata.committed_offset
        kraft_version, voters = metadata.raft.history.before(offset)
        if kraft_version < DYNAMIC_VOTERS:
            return
        known, node_id = self._known.setdefault(offset, (voters, machine.node_id))
        if known != voters:
            both = f"{known.ids} and {voters.ids}"
            self.violated(f"nodes {node_id} and {machine.node_id} know {both} at metadata offset {offset}")
