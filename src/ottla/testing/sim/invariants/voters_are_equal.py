"""Nodes that have committed the metadata up to the same offset know the same voters, in every life of theirs."""

from ottla.machines.raft.voters import DYNAMIC_VOTERS, VoterSet
from ottla.testing.sim.cluster.machine import Machine
from ottla.testing.sim.cluster.simulated_cluster import SimulatedCluster
from ottla.testing.sim.invariants.invariant import Invariant
from ottla.testing.sim.workloads.history import History

_LOOKED_AT_EVERY_US = 500_000


class VotersAreEqual(Invariant):
    """Where voters are data. Static ones are each node's setting."""

    name = "voters are the same at equal offsets"

    def __init__(self, cluster: SimulatedCluster, history: History) -> None:
        super().__init__(cluster, history)
        self._known: dict[int, tuple[VoterSet, int]] = {}
        self._due_us = 0

    def on_step(self) -> None:
        now_us = self.cluster.simulation.clock.elapsed_us()
        if now_us < self._due_us:
            return
        self._due_us = now_us + _LOOKED_AT_EVERY_US
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
