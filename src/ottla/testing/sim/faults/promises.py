"""What may be taken from a cluster without breaking what it has promised: the one thing that faults must heed.

Theory of operation. An acknowledged record is on the replicas in sync and on the eligible leaders (KIP-966). A node
that ends other than in good order keeps its records unless its power was cut, but loses its place among those: its
controller cannot know. When all are out, the last that led is made the leader again. So nodes may end in any number
and order, as long as none of them has lost records.

A replica *has lost* records when its machine lost its power and had not flushed them, when a sync failed and took them
along, or when its directory failed: until it is in sync again, in the life that is on. A replica *keeps* a partition
when it is in sync or an eligible leader, by the committed metadata, in the life that is on, has in fact every record
that is committed or acknowledged, and sits on a sound disk. From that follow the two rules, for each partition on its
own:

- Records may be taken from a replica only where another one keeps the partition.
- While some replica has lost records, a replica may end only where another one keeps the partition. Else the controller
  might be left with nobody but the one that has lost some.

What is left out of runs by this: the last replica that keeps a partition does not end, and does not lose records,
before another one is in sync again. Apache Kafka promises nothing there, either. All other faults overlap freely: every
node may be down, cut off or paused at once where nobody has lost anything; and of three replicas one may have lost its
records while another is killed.
"""

from collections.abc import Callable, Iterator

from ottla.base.ids import TopicPartition
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.machines.metadata.image.partition_image import PartitionImage
from ottla.testing.sim.cluster.cluster_health import broker_epoch
from ottla.testing.sim.cluster.machine import Machine
from ottla.testing.sim.cluster.simulated_cluster import SimulatedCluster
from ottla.testing.sim.workloads.history import Fate, History

IsInIt = Callable[[TopicPartition], bool]


class Promises:
    def __init__(self, cluster: SimulatedCluster, history: History) -> None:
        self._cluster = cluster
        self._history = history
        self._losses: dict[int, IsInIt] = {}
        """By node: of which partitions its replicas have lost records, since `_lost` was last made."""
        self._lost: set[tuple[int, TopicPartition]] = set()
        """The replicas that have lost records."""

    def on_lost(self, machine: Machine, is_in_it: IsInIt = lambda name: True) -> None:
        """Records that were promised may be gone from this machine, or from what is lost of it."""
        before = self._losses.get(machine.node_id)
        self._losses[machine.node_id] = is_in_it if before is None else lambda name: before(name) or is_in_it(name)

    def may_lose(self, machine: Machine, is_in_it: IsInIt = lambda name: True) -> bool:
        """Whether the machine may lose the records of its replicas, or of those that are in what is lost."""
        image = self._image()
        return image is not None and all(
            keepers - {machine.node_id}
            for name, partition, keepers in self._partitions(image)
            if machine.node_id in partition.replicas and is_in_it(name)
        )

    def may_end(self, machine: Machine, is_in_it: IsInIt = lambda name: True) -> bool:
        """Whether the node, or its replicas that are in it, may end in any way that leaves the disk as it is."""
        me = {machine.node_id}
        if not ({node_id for node_id, _ in self._lost} | self._losses.keys()) - me:
            return True
        image = self._image()
        if image is None:
            return False
        still: set[tuple[int, TopicPartition]] = set()
        may_end = True
        for name, partition, keepers in self._partitions(image):
            lost = {one for one in partition.replicas if self._has_lost(one, name)} - keepers
            still |= {(node_id, name) for node_id in lost}
            may_lead = {*partition.isr, *partition.eligible_leader_replicas}
            if lost - me and me & may_lead and not keepers - me and is_in_it(name):
                may_end = False
        self._lost, self._losses = still, {}
        return may_end

    def _has_lost(self, node_id: int, name: TopicPartition) -> bool:
        """Whether a replica had, when somebody last looked."""
        is_in_it = self._losses.get(node_id)
        return (node_id, name) in self._lost or (is_in_it is not None and is_in_it(name))

    def _image(self) -> MetadataImage | None:
        """That of the node which knows most of what is committed; None while no node runs."""
        known = [one.metadata for one in self._cluster.machines.values() if one.metadata is not None]
        return max(known, key=lambda metadata: metadata.committed_offset).image if known else None

    def _partitions(self, image: MetadataImage) -> Iterator[tuple[TopicPartition, PartitionImage, set[int]]]:
        """Every partition, with the nodes that keep it."""
        ends = self._acknowledged()
        epochs = {id: broker.epoch for id, broker in image.brokers.by_id.items()}
        for topic in image.topics.by_name.values():
            for index, partition in topic.partitions.items():
                name = TopicPartition(topic.name, index)
                yield name, partition, self._keepers(name, partition, epochs, ends.get(name, 0))

    def _keepers(
        self, name: TopicPartition, partition: PartitionImage, epochs: dict[int, int], acknowledged_end: int
    ) -> set[int]:
        ends: dict[int, int] = {}
        committed_end = acknowledged_end
        for node_id in partition.replicas:
            machine = self._cluster.machines[node_id]
            broker = machine.node.broker if machine.is_serving and machine.node is not None else None
            replica = broker.partitions.get(name) if broker is not None else None
            if replica is None:
                continue
            committed_end = max(committed_end, replica.log.high_watermark)
            if _is_sound(machine, replica.directory) and broker_epoch(machine) == epochs.get(node_id, -1):
                ends[node_id] = replica.log.log_end_offset
        may_lead = {*partition.isr, *partition.eligible_leader_replicas}
        return {node_id for node_id, end in ends.items() if node_id in may_lead and end >= committed_end}

    def _acknowledged(self) -> dict[TopicPartition, int]:
        """Behind the last acknowledged record of each partition."""
        ends: dict[TopicPartition, int] = {}
        for record in self._history.sent.values():
            if record.fate is Fate.ACKNOWLEDGED:
                ends[record.partition] = max(record.offset + 1, ends.get(record.partition, 0))
        return ends


def _is_sound(machine: Machine, path: str) -> bool:
    """Whether a node that serves continues, and this directory of its with it.

    It gives up if it cannot tell a controller of a directory that has failed.
    """
    if machine.may_fail or path in machine.failed_directories:
        return False
    return not machine.failed_directories or machine.has_reported_failures
