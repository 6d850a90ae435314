"""Topics that a connector needs and that may not be there: its own, its dead letters', the offsets topic."""

from contextlib import suppress

from ottla.client.admin.topics import NewTopic
from ottla.client.errors import TopicAlreadyExists, UnknownTopicOrPartition
from ottla.spark.sink.cluster_access import ClusterAccess


def create_if_missing(access: ClusterAccess, wanted: NewTopic) -> None:
    """Makes the topic if it is not there; somebody else may do so at the same time. Raises what the cluster says."""
    try:
        access.describe_topics([wanted.name]).raise_first()
    except UnknownTopicOrPartition:
        with suppress(TopicAlreadyExists):
            access.create_topics([wanted]).raise_first()
