"""A change of the cluster that was confirmed lasts: a topic that was created is there, one that was deleted is gone."""

from ottla.base.ids import uuid_text
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
            topics = {uuid_text(id): topic for id, topic in machine.metadata.image.topics.by_id.items()}
            for changer in self._changers:
                for name, id in changer.ids.items():
                    presence, topic = changer.topics[name], topics.get(id)
                    if presence is not Presence.UNKNOWN and (topic is not None) != (presence is Presence.THERE):
                        self.violated(f"for node {machine.node_id} {name} is not {presence.value}")
                    elif topic is not None and len(topic.partitions) < changer.partitions[name]:
                        self.violated(f"for node {machine.node_id} {name} has lost partitions")
