"""Requests that Apache Kafka and our node must answer alike, in scenes. A scene makes the topics it needs.

Most go out in the oldest and the newest version of their API, where what differs between versions shows.
"""

from collections.abc import Callable

from tests.interop.compared_nodes import Step
from tests.interop.requests_to_compare import (
    cluster,
    controllers,
    fetches,
    logs,
    produces,
    quotas,
    settings,
    topics,
    users,
)

SCENES: dict[str, Callable[[], list[Step]]] = {
    "versions and features": cluster.versions_and_features,
    "the cluster": cluster.the_cluster,
    "metadata": cluster.metadata,
    "pages of partitions": cluster.pages_of_partitions,
    "topics created": topics.created,
    "partitions added": topics.partitions_added,
    "topics deleted": topics.deleted,
    "leaders and reassignments": topics.leaders_and_reassignments,
    "settings of brokers": settings.of_brokers,
    "settings of topics": settings.of_topics,
    "settings of groups and metrics": settings.of_groups_and_metrics,
    "levels of loggers": settings.of_loggers,
    "settings replaced": settings.replaced,
    "settings described": settings.described,
    "quotas": quotas.quotas,
    "users": users.users,
    "batches": produces.batches,
    "batches that are refused": produces.refused,
    "an idempotent producer": produces.idempotent,
    "producer ids": produces.producer_ids,
    "fetches": fetches.fetches,
    "fetch sessions": fetches.sessions,
    "offsets": logs.offsets,
    "records deleted": logs.records_deleted,
    "log directories": logs.directories,
    "the controllers' listener": controllers.listener,
}
