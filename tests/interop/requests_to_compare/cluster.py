"""What a client asks first: versions, brokers, topics."""

from typing import Any

from ottla.base.ids import Uuid
from ottla.wire.messages import (
    ApiVersionsRequest,
    DescribeClusterRequest,
    DescribeQuorumRequest,
    DescribeTopicPartitionsRequest,
    MetadataRequest,
    UnregisterBrokerRequest,
    UpdateFeaturesRequest,
)
from tests.interop.compared_nodes import Settle, Step, ask
from tests.interop.requests_to_compare.topics import create

NOBODYS_ID = Uuid(b"x" * 16)
CLUSTER_METADATA = "__cluster_metadata"


def update_features(*updates: tuple[str, int, int], **fields: Any) -> UpdateFeaturesRequest:
    keys = [
        UpdateFeaturesRequest.FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=type)
        for name, level, type in updates
    ]
    return UpdateFeaturesRequest(timeout_ms=1000, feature_updates=keys, **fields)


def versions_and_features() -> list[Step]:
    named = ApiVersionsRequest(client_software_name="x", client_software_version="1")
    return [
        *ask(ApiVersionsRequest(), 0),
        *ask(named, 3, 4),
        *ask(ApiVersionsRequest(client_software_name=" ", client_software_version="1"), 3),
        *ask(update_features(("nobody", 1, 1)), 1, 2),
        *ask(update_features(("metadata.version", 99, 1)), 1, 2),
        *ask(update_features(("group.version", 0, 1)), 1, 2),
        *ask(update_features(("group.version", -1, 1)), 1, 2),
        *ask(update_features(("group.version", 1, 7)), 1, 2),
        *ask(update_features(), 1, 2),
        *ask(update_features(("group.version", 1, 1), validate_only=True), 1, 2),
        *ask(named, 4),
    ]


def quorum(topic: str, *partitions: int) -> DescribeQuorumRequest:
    asked = [DescribeQuorumRequest.PartitionData(partition_index=index) for index in partitions]
    return DescribeQuorumRequest(topics=[DescribeQuorumRequest.TopicData(topic_name=topic, partitions=asked)])


def the_cluster() -> list[Step]:
    return [
        *ask(DescribeClusterRequest(include_cluster_authorized_operations=True), 0, 1, 2),
        *(step for type in (0, 2, 3) for step in ask(DescribeClusterRequest(endpoint_type=type), 2)),
        *ask(DescribeClusterRequest(include_fenced_brokers=True), 2),
        *ask(quorum(CLUSTER_METADATA, 0), 0, 1, 2),
        *ask(DescribeQuorumRequest(), 2),
        *ask(quorum("orders", 0), 2),
        *ask(quorum(CLUSTER_METADATA, 0, 1), 2),
        *ask(UnregisterBrokerRequest(broker_id=9), 0),
    ]


def metadata_of(*names: str | None, auto_create: bool = False) -> MetadataRequest:
    topics = [MetadataRequest.MetadataRequestTopic(name=name) for name in names]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=auto_create)


def metadata() -> list[Step]:
    operations = {"include_topic_authorized_operations": True, "include_cluster_authorized_operations": True}
    by_id = MetadataRequest.MetadataRequestTopic(name=None, topic_id=NOBODYS_ID)
    several = metadata_of("md-a", "nobody", "md-a", "md-b", "bad name", "")
    return [
        *create(("md-a", 1), ("md-b", 3)),
        Settle(("md-a", "md-b")),
        *ask(MetadataRequest(topics=None), *range(1, 14)),
        *ask(MetadataRequest(topics=[]), 0, 1),
        *ask(MetadataRequest(topics=None, **operations), 8, 10),
        *ask(several, 4, 7, 12, 13),
        *ask(MetadataRequest(topics=[by_id]), 12),
        *ask(metadata_of(None), 10, 12),
        *ask(metadata_of("bad name", auto_create=True), 12),
        *ask(metadata_of("__cluster_metadata", auto_create=True), 12),
    ]


def pages(*names: str, limit: int = 2000, cursor: tuple[str, int] | None = None) -> DescribeTopicPartitionsRequest:
    topics = [DescribeTopicPartitionsRequest.TopicRequest(name=name) for name in names]
    begin = None
    if cursor is not None:
        begin = DescribeTopicPartitionsRequest.Cursor(topic_name=cursor[0], partition_index=cursor[1])
    return DescribeTopicPartitionsRequest(topics=topics, response_partition_limit=limit, cursor=begin)


def pages_of_partitions() -> list[Step]:
    requests = [
        pages(),
        pages(limit=2),
        pages("pg-b", "pg-a", "nobody", "bad name", limit=2),
        pages("pg-b", "nobody", limit=3),
        pages("pg-b", "pg-a", cursor=("pg-az", 1)),
        pages("pg-b", cursor=("pg-b", 7)),
        pages("pg-b", limit=0),
        pages("nobody"),
        pages(cursor=("pg-b", 1)),
    ]
    made = [*create(("pg-a", 1), ("pg-b", 3)), Settle(("pg-a", "pg-b"))]
    return [*made, *(step for request in requests for step in ask(request, 0))]
