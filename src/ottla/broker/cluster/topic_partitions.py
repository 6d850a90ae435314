"""DescribeTopicPartitions 0: partitions with their eligible leaders, a page at a time (KIP-966).

Topics come in the order of their names, so that a cursor, the topic and partition to continue with, means the same when
topics have come and gone between two pages. A page has at least one partition, and at most what the request and
`max.request.partition.size.limit` allow; a topic that does not fit begins the next page.
"""

from collections.abc import Iterator

from ottla.broker.cluster.cluster_metadata import ClusterMetadata
from ottla.broker.cluster.cluster_view import ClusterView
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.machines.metadata.image.partition_image import PartitionImage
from ottla.machines.metadata.topic_names import INTERNAL, name_problem
from ottla.runtime.request import RequestContext, Respond
from ottla.security.authorized_operations import ALL_ON_TOPIC
from ottla.serving.node_settings import NodeSettings
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse

Topic = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
Partition = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition
Cursor = DescribeTopicPartitionsResponse.Cursor


def handle_describe_topic_partitions(
    metadata: ClusterMetadata,
    node_settings: NodeSettings,
    context: RequestContext,
    request: DescribeTopicPartitionsRequest,
    respond: Respond,
) -> None:
    cursor = request.cursor
    names = {topic.name for topic in request.topics}
    if cursor is not None and (cursor.partition_index < 0 or (names and cursor.topic_name not in names)):
        respond(
            DescribeTopicPartitionsResponse(
                topics=[Topic(error_code=ErrorCode.INVALID_REQUEST, name=topic.name) for topic in request.topics]
            )
        )
        return
    pages = _Page(
        metadata.image,
        ClusterView(metadata.image, context.connection.listener),
        limit=max(
            1,
            min(node_settings.effective.integer("max.request.partition.size.limit"), request.response_partition_limit),
        ),
    )
    for name, first in _wanted(metadata.image, names, cursor):
        if not pages.add(name, first, tell_missing=bool(names)):
            break
    respond(pages.response)


def _wanted(
    image: MetadataImage, names: set[str], cursor: DescribeTopicPartitionsRequest.Cursor | None
) -> Iterator[tuple[str, int]]:
    """Topics in order, each with the partition to begin at."""
    for name in sorted(names or image.topics.by_name):
        if cursor is None or name > cursor.topic_name:
            yield name, 0
        elif name == cursor.topic_name:
            yield name, cursor.partition_index


class _Page:
    def __init__(self, image: MetadataImage, view: ClusterView, *, limit: int) -> None:
        self.response = DescribeTopicPartitionsResponse()
        self._topics = image.topics.by_name
        self._view = view
        self._room = limit

    def add(self, name: str, first: int, *, tell_missing: bool) -> bool:
        """As many of a topic's partitions as fit; False when the page is full and says where to continue."""
        if not self._room:
            self.response.next_cursor = Cursor(topic_name=name, partition_index=first)
            return False
        topic = self._topics.get(name)
        if topic is None:
            if tell_missing:
                self.response.topics.append(_missing(name))
            return True
        end = min(len(topic.partitions), first + self._room)
        partitions = [self._partition(index, topic.partitions[index]) for index in range(first, end)]
        self.response.topics.append(
            Topic(
                name=name,
                topic_id=topic.id,
                is_internal=name in INTERNAL,
                partitions=partitions,
                topic_authorized_operations=ALL_ON_TOPIC,
            )
        )
        self._room -= len(partitions)
        if end < len(topic.partitions):
            self.response.next_cursor = Cursor(topic_name=name, partition_index=end)
            return False
        return True

    def _partition(self, index: int, partition: PartitionImage) -> Partition:
        return Partition(
            partition_index=index,
            leader_id=partition.leader if self._view.has_endpoint(partition.leader) else -1,
            leader_epoch=partition.leader_epoch,
            replica_nodes=partition.replicas,
            isr_nodes=partition.isr,
            eligible_leader_replicas=partition.eligible_leader_replicas,
            last_known_elr=partition.last_known_elr,
            offline_replicas=self._view.offline_replicas(partition),
        )


def _missing(name: str) -> Topic:
    problem = name_problem(name)
    error = ErrorCode.INVALID_TOPIC_EXCEPTION if problem else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return Topic(error_code=error, name=name, is_internal=name in INTERNAL, topic_authorized_operations=ALL_ON_TOPIC)
