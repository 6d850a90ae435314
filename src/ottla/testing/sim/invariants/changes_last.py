"""A change of the cluster that was confirmed lasts: a topic that was created is there, one that was deleted is gone."""

from ottla.testing.sim.cluster.simulated_cluster import SimulatedCluster
from ottla.testing.sim.invariants.invariant import Invariant
from ottla.testing.sim.workloads.final_reader import FinalRead
from ottla.testing.sim.workloads.history import History
from ottla.testing.sim.workloads.topic_changer import Presence, TopicChanger


class ChangesLast(Invariant):
    name = "a confirmed change of the metadata lasts"

    def __init__(self, cluster: SimulatedCluster, history: History, changers: list[TopicChanger]) -> None:
        super().__init__(cluster, history)
        self._changers = changers

    def at_end(self, found: FinalRead) -> None:
        for machine in self.cluster.machines.values():
            if machine.metadata is None:
                continue
            topics = machine.metadata.image.topics.by_name
            for changer in self._changers:
                for name, presence in changer.topics.items():
                    if presence is not Presence.UNKNOWN and (name in topics) != (presence is Presence.THERE):
                        self.violated(f"for node {machine.node_id} {name} is not {presence.value}")
                    if presence is Presence.THERE and len(topics[name].partitions) < changer.partitions[name]:
                        self.violated(f"for node {machine.node_id} {name} has lost partitions")
