"""What a client knows of the cluster: brokers, topics and leaders, at one moment. Never changed, only replaced."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, NamedTuple

from ottla.base.ids import ZERO_UUID, TopicPartition, Uuid
from ottla.client.settings import Address
from ottla.client.topic_partition import Broker

NO_NODE: Final = -1


class PartitionView(NamedTuple):
    partition: int
    leader: int
    """`NO_NODE` while there is none."""
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...]
    error: int
    """An `ErrorCode`, or one of a newer broker's."""


class TopicView(NamedTuple):
    name: str
    topic_id: Uuid
    is_internal: bool
    error: int
    partitions: Mapping[int, PartitionView]
    authorized_operations: int


class Leader(NamedTuple):
    node_id: int
    epoch: int


class ClusterView(NamedTuple):
    brokers: Mapping[int, Broker]
    controller_id: int = NO_NODE
    cluster_id: str | None = None
    topics: Mapping[str, TopicView] = {}
    names: Mapping[Uuid, str] = {}
    """Of the topics that have ids."""

    def leader_of(self, partition: TopicPartition) -> Leader | None:
        """None if the partition is not known, has no leader now, or its leader's address is not known."""
        topic = self.topics.get(partition.topic)
        known = None if topic is None else topic.partitions.get(partition.partition)
        if known is None or known.leader not in self.brokers:
            return None
        return Leader(known.leader, known.leader_epoch)

    def partitions_of(self, topic: str) -> Iterator[TopicPartition]:
        known = self.topics.get(topic)
        if known is not None:
            for index in sorted(known.partitions):
                yield TopicPartition(topic, index)

    def with_leader(self, partition: TopicPartition, leader: Leader, endpoint: Broker | None = None) -> "ClusterView":
        """As a reply of a broker says (KIP-951). An epoch that is not newer than ours is old news."""
        topic = self.topics.get(partition.topic)
        known = None if topic is None else topic.partitions.get(partition.partition)
        if topic is None or known is None or leader.epoch <= known.leader_epoch:
            return self
        brokers = self.brokers if endpoint is None else {**self.brokers, endpoint.id: endpoint}
        moved = known._replace(leader=leader.node_id, leader_epoch=leader.epoch)
        partitions = {**topic.partitions, partition.partition: moved}
        return self._replace(brokers=brokers, topics={**self.topics, topic.name: topic._replace(partitions=partitions)})


def bootstrap_view(addresses: Collection[Address]) -> ClusterView:
    """What is known before anything was asked: brokers with negative ids, until metadata names them."""
    return ClusterView({-1 - index: Broker(-1 - index, *address) for index, address in enumerate(addresses)})


def view_of(response: Any, before: ClusterView) -> ClusterView:
    """What a MetadataResponse tells. Leaders of an older epoch than we know of the same topic are left as they were:
    the broker that was asked may lag behind another.
    """
    topics = {topic.name: _topic(topic, before) for topic in response.topics if topic.name is not None}
    return ClusterView(
        {one.node_id: Broker(one.node_id, one.host, one.port, one.rack) for one in response.brokers},
        response.controller_id,
        response.cluster_id,
        topics,
        {topic.topic_id: name for name, topic in topics.items() if topic.topic_id != ZERO_UUID},
    )


def _topic(topic: Any, before: ClusterView) -> TopicView:
    known = before.topics.get(topic.name)
    if known is not None and known.topic_id != topic.topic_id:
        known = None
    partitions = {}
    for one in topic.partitions:
        view = PartitionView(
            one.partition_index,
            one.leader_id,
            one.leader_epoch,
            tuple(one.replica_nodes),
            tuple(one.isr_nodes),
            tuple(one.offline_replicas),
            one.error_code,
        )
        old = None if known is None else known.partitions.get(one.partition_index)
        if old is not None and old.leader_epoch > view.leader_epoch >= 0:
            view = view._replace(leader=old.leader, leader_epoch=old.leader_epoch)
        partitions[view.partition] = view
    return TopicView(
        topic.name,
        topic.topic_id,
        topic.is_internal,
        topic.error_code,
        partitions,
        topic.topic_authorized_operations,
    )
