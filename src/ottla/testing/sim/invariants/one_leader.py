"""In an epoch there is one leader: of the metadata quorum, and of each partition. And a voter gives one vote."""

from typing import Any

from ottla.machines.metadata.controller.controller import Controller
from ottla.runtime.metadata.metadata_log import MetadataLog
from ottla.testing.sim.cluster.machine import Machine
from ottla.testing.sim.cluster.simulated_cluster import SimulatedCluster
from ottla.testing.sim.invariants.invariant import Invariant
from ottla.testing.sim.workloads.history import History

_PARTITIONS_EVERY_US = 20_000


class OneLeader(Invariant):
    """The quorum is looked at after every step, partitions some times a second: there are more of them."""

    name = "there is one leader in an epoch"

    def __init__(self, cluster: SimulatedCluster, history: History) -> None:
        super().__init__(cluster, history)
        self._leaders: dict[Any, int] = {}
        self._votes: dict[tuple[int, int], int] = {}
        self._epochs: dict[int, tuple[object, int]] = {}
        self._seen: dict[int, object] = {}
        """By node: all that is looked at, as it was the last time. After most steps it is still so."""
        self._due_us = 0

    def on_step(self) -> None:
        now_us = self.cluster.simulation.clock.elapsed_us()
        looks_at_partitions = now_us >= self._due_us
        if looks_at_partitions:
            self._due_us = now_us + _PARTITIONS_EVERY_US
        for machine in self.cluster.machines.values():
            metadata = machine.metadata
            if metadata is not None:
                raft, quorum = metadata.raft, metadata.quorum
                seen = machine.life, raft.epoch, raft.role, raft.voted_for, quorum.is_saving, quorum._is_stopped
                if seen != self._seen.get(machine.node_id):
                    self._seen[machine.node_id] = seen
                    self._look_at_quorum(machine, metadata)
            if looks_at_partitions:
                self._look_at_partitions(machine)

    def _look_at_quorum(self, machine: Machine, metadata: MetadataLog[Controller]) -> None:
        raft, quorum = metadata.raft, metadata.quorum
        life, epoch = self._epochs.get(machine.node_id, (None, 0))
        if raft.epoch < epoch and life is machine.life:
            self.violated(f"the quorum's epoch of node {machine.node_id} goes back from {epoch} to {raft.epoch}")
        self._epochs[machine.node_id] = machine.life, raft.epoch
        if raft.is_leader:
            self._claim(("the quorum", raft.epoch), machine.node_id)
        # A vote that is not saved was not given; and where saving it has failed, none is given any more.
        if raft.voted_for is not None and not quorum.is_saving and not quorum._is_stopped:
            voted_id = self._votes.setdefault((machine.node_id, raft.epoch), raft.voted_for.id)
            if voted_id != raft.voted_for.id:
                both = f"{voted_id} and {raft.voted_for.id}"
                self.violated(f"node {machine.node_id} votes for {both} in epoch {raft.epoch} of the quorum")

    def _look_at_partitions(self, machine: Machine) -> None:
        broker = machine.node.broker if machine.node is not None else None
        if broker is None:
            return
        for partition in broker.partitions.values():
            if partition.is_leader:
                self._claim((partition.topic_id, partition.name, partition.leader_epoch), machine.node_id)

    def _claim(self, what: Any, node_id: int) -> None:
        leader = self._leaders.setdefault(what, node_id)
        if leader != node_id:
            self.violated(f"nodes {leader} and {node_id} both lead {what}")
