"""What a consumer can ask of the cluster apart from what it reads: topics and their partitions."""

from typing import Any, NamedTuple

from ottla.base.ids import Uuid
from ottla.client.cluster.cluster import Cluster
from ottla.client.errors import KafkaError, RequestTimedOut, UnknownTopicOrPartition, error_for
from ottla.client.topic_partition import PartitionInfo
from ottla.wire.messages import MetadataRequest

_UNKNOWN_TOPIC_PATIENCE_S = 1.0
"""How long a topic that a broker does not know may be one that it has not heard of yet."""


async def list_topics(
    cluster: Cluster, timeout_ms: float, topics: list[str] | None = None
) -> dict[str, tuple[PartitionInfo, ...]]:
    """Every topic that this client may see, internal ones too; or those of these topics that there are."""
    response = await _ask(cluster, topics, timeout_ms)
    return {topic.name: _partitions(topic) for topic in response.topics if not topic.error_code}


class TopicFound(NamedTuple):
    topic_id: Uuid
    """Another one when a topic was deleted and made anew. Zero with brokers that have none."""
    is_internal: bool
    partitions: tuple[PartitionInfo, ...]


async def find_topics(cluster: Cluster, timeout_ms: float, topics: list[str] | None = None) -> dict[str, TopicFound]:
    """The same with what a topic is known by."""
    response = await _ask(cluster, topics, timeout_ms)
    return {
        topic.name: TopicFound(topic.topic_id, topic.is_internal, _partitions(topic))
        for topic in response.topics
        if not topic.error_code
    }


async def partitions_for(cluster: Cluster, topic: str, timeout_ms: float) -> tuple[PartitionInfo, ...]:
    """A topic's partitions. Raises `UnknownTopicOrPartition` if there is no such topic: it does not wait for one."""
    began_s = cluster.world.now_s()
    deadline_s = began_s + timeout_ms / 1000
    failures = 0
    while True:
        left_ms = (deadline_s - cluster.world.now_s()) * 1000
        response = await _ask(cluster, [topic], left_ms)
        [found] = response.topics
        if not found.error_code:
            return _partitions(found)
        problem = error_for(found.error_code, f"topic {topic!r} cannot be looked up")
        pause_ms = cluster.backoff.after(failures, cluster.world.entropy)
        failures += 1
        is_unknown = isinstance(problem, UnknownTopicOrPartition)
        if is_unknown and cluster.world.now_s() - began_s > _UNKNOWN_TOPIC_PATIENCE_S:
            raise problem
        if not problem.retriable or left_ms <= pause_ms:
            raise problem
        await cluster.world.sleep(pause_ms)


async def _ask(cluster: Cluster, topics: list[str] | None, timeout_ms: float) -> Any:
    world = cluster.world
    deadline_s = world.now_s() + timeout_ms / 1000
    failures = 0
    while True:
        request = MetadataRequest(allow_auto_topic_creation=False)
        request.topics = topics if topics is None else [MetadataRequest.MetadataRequestTopic(name=n) for n in topics]
        left_ms = max((deadline_s - world.now_s()) * 1000, 0)
        try:
            asked = cluster.ask_any(request)
            return await world.within(
                asked, left_ms, lambda: RequestTimedOut("no broker answered a metadata request in time")
            )
        except KafkaError as problem:
            pause_ms = cluster.backoff.after(failures, world.entropy)
            failures += 1
            if not cluster.may_pass(problem) or left_ms <= pause_ms:
                raise
        await world.sleep(pause_ms)


def _partitions(topic: Any) -> tuple[PartitionInfo, ...]:
    return tuple(
        PartitionInfo(
            topic.name,
            one.partition_index,
            one.leader_id if one.leader_id >= 0 else None,
            tuple(one.replica_nodes),
            tuple(one.isr_nodes),
            tuple(one.offline_replicas),
        )
        for one in sorted(topic.partitions, key=lambda one: int(one.partition_index))
    )
