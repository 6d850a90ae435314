"""The metadata name the log directory in which each replica really is (KIP-858): in the end, and once they have.

A broker that has nothing more to tell has reported where its replicas are, last of all. If the metadata then name
another of its directories, something older was heard after it. The broker tells again when it hears of that; but until
then the controller goes by the wrong one, should a directory fail, and so does the node, should it start anew.
"""

from typing import Any

from ottla.broker.partitions.partition import Partition
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.testing.sim.cluster.machine import Machine
from ottla.testing.sim.cluster.simulated_cluster import SimulatedCluster
from ottla.testing.sim.invariants.invariant import Invariant, PeriodicInvariant
from ottla.testing.sim.workloads.history import History


class DirectoriesAreKnown(Invariant):
    name = "the metadata know the directory of every replica"

    def pending(self) -> str:
        for machine in self.cluster.machines.values():
            broker = machine.node.broker if machine.is_serving and machine.node is not None else None
            if broker is None or machine.metadata is None:
                continue
            held = broker.partitions
            for partition in held.values():
                name = partition.name
                topic = machine.metadata.image.topics.by_name.get(name.topic)
                image = topic.partitions.get(name.partition) if topic is not None else None
                real = held.identity.directory_ids.get(partition.directory)
                if image is not None and image.directory(machine.node_id) != real:
                    recorded = image.directory(machine.node_id)
                    where = f"{partition.directory} ({real!r})"
                    return f"{name} of node {machine.node_id} is in {where}; the metadata say {recorded!r}"
        return ""


class DirectoriesAreToldInOrder(PeriodicInvariant):
    name = "the metadata keep the directory that a broker has reported last"
    every_us = 500

    def __init__(self, cluster: SimulatedCluster, history: History) -> None:
        super().__init__(cluster, history)
        self._known_offset = 0
        """Of the metadata, that some node has known to be committed."""

    def look(self) -> None:
        latest, known_offset = None, self._known_offset
        for machine in self.cluster.machines.values():
            metadata = machine.metadata
            if metadata is not None and metadata.committed_offset > known_offset:
                latest, known_offset = metadata, metadata.committed_offset
        if latest is None:
            return
        self._known_offset = latest.committed_offset
        for machine in self.cluster.machines.values():
            broker = machine.node.broker if machine.is_serving and machine.node is not None else None
            if broker is None or machine.may_fail or machine.failed_directories:
                continue
            if len(broker.partitions.identity.directory_ids) > 1 and not broker.directory_assignments._is_telling:
                self._look_at(machine, broker, latest.image)

    def _look_at(self, machine: Machine, broker: Any, image: MetadataImage) -> None:
        own = broker.partitions.identity.directory_ids
        moves, assignments = broker.replica_moves._moves, broker.directory_assignments
        for partition in broker.partitions.values():
            place = partition.topic_id, partition.name.partition
            if place in assignments._unsent_assignments or place in assignments._waiting:
                continue
            recorded = _recorded(machine, partition, image)
            move = moves.get(partition.name)
            is_target = move is not None and own.get(move.target.path) == recorded
            if recorded in own.values() and recorded != own.get(partition.directory) and not is_target:
                said = next(path for path, directory_id in own.items() if directory_id == recorded)
                self.violated(f"{partition.name} of node {machine.node_id} is in {partition.directory}, not in {said}")


def _recorded(machine: Machine, partition: Partition, image: MetadataImage) -> object:
    topic = image.topics.by_name.get(partition.name.topic)
    known = topic.partitions.get(partition.name.partition) if topic is not None else None
    is_same = topic is not None and topic.id == partition.topic_id
    return known.directory(machine.node_id) if known is not None and is_same else None
