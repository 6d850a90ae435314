"""Metadata, DescribeTopicPartitions, DescribeCluster: a topic that may not be described is not there."""

from typing import Any, Final

from ottla.base.ids import ZERO_UUID
from ottla.machines.metadata.topic_names import INTERNAL
from ottla.serving.access.check_shapes import divide, with_entries
from ottla.serving.access.rights import Question, Rights
from ottla.wire.acls import AclOperation, AclResource
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import DescribeTopicPartitionsResponse, MetadataResponse

_ALL_IF_EMPTY: Final = 0
_REFUSED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED


def metadata(rights: Rights, question: Question) -> None:
    """DESCRIBE on each topic; to create one by asking for it, CREATE on it or on the cluster.

    A client that asks for all topics gets those that it may describe. Ids are no secret, names are.
    """
    request = question.request
    asks_all = request.topics is None or (question.version == _ALL_IF_EMPTY and not request.topics)
    refused: list[Any] = []
    asked = request
    if not asks_all:
        allowed, hidden = divide(request.topics, lambda topic: _may_see(rights, topic))
        allowed, uncreated = divide(allowed, lambda topic: not _is_kept_from_creating(rights, request, topic))
        refused = [_hidden(topic) for topic in hidden] + [_uncreated(topic) for topic in uncreated]
        asked = with_entries(request, "topics", allowed)
    is_emptied = not asks_all and not asked.topics

    def reply(response: Any) -> None:
        # The oldest version would tell of all topics, for want of one to ask for.
        topics = () if is_emptied else response.topics
        if asks_all:
            topics = [one for one in topics if rights.allow_topic(AclOperation.DESCRIBE, one.name, tell=False)]
        if request.include_topic_authorized_operations:
            for topic in topics:
                if topic.name is not None:
                    topic.topic_authorized_operations = rights.operations(AclResource.TOPIC, topic.name)
        if request.include_cluster_authorized_operations:
            response.cluster_authorized_operations = rights.cluster_operations()
        response.topics = [*topics, *refused]
        question.respond(response)

    question.proceed(asked, reply)


def _may_see(rights: Rights, topic: Any) -> bool:
    name = topic.name if topic.topic_id == ZERO_UUID else rights.topic_name(topic.topic_id)
    return name is None or rights.allow_topic(AclOperation.DESCRIBE, name)


def _is_kept_from_creating(rights: Rights, request: Any, topic: Any) -> bool:
    """Whether the topic would be created, which its client may not."""
    if topic.topic_id != ZERO_UUID or topic.name is None or topic.name in rights.image.topics.by_name:
        return False
    if not request.allow_auto_topic_creation or not rights.node_settings.effective["auto.create.topics.enable"]:
        return False
    if rights.allow_cluster(AclOperation.CREATE, tell=False):
        return False
    return not rights.allow_topic(AclOperation.CREATE, topic.name)


def _hidden(topic: Any) -> Any:
    by_id = topic.topic_id != ZERO_UUID
    return MetadataResponse.MetadataResponseTopic(
        error_code=_REFUSED, name=None if by_id else topic.name, topic_id=topic.topic_id
    )


def _uncreated(topic: Any) -> Any:
    return MetadataResponse.MetadataResponseTopic(
        error_code=_REFUSED, name=topic.name, is_internal=topic.name in INTERNAL
    )


def describe_topic_partitions(rights: Rights, question: Question) -> None:
    """As Metadata. A page has the topics that may be described, and behind them those that may not."""
    request = question.request
    allowed, hidden = divide(request.topics, lambda topic: rights.allow_topic(AclOperation.DESCRIBE, topic.name))
    if request.topics and not allowed:
        question.respond(DescribeTopicPartitionsResponse(topics=[_hidden_page(topic.name) for topic in hidden]))
        return
    asked = with_entries(request, "topics", allowed)
    if not request.topics:
        names = (name for name in rights.image.topics.by_name if _is_after(request.cursor, name))
        seen = [name for name in names if rights.allow_topic(AclOperation.DESCRIBE, name, tell=False)]
        if not seen:
            question.respond(DescribeTopicPartitionsResponse())
            return
        topic = type(request).TopicRequest
        asked = with_entries(request, "topics", [topic(name=name) for name in seen])
        if request.cursor is not None and request.cursor.topic_name not in seen:
            asked.cursor = type(request).Cursor(topic_name=min(seen), partition_index=0)

    def reply(response: Any) -> None:
        for topic in response.topics:
            topic.topic_authorized_operations = rights.operations(AclResource.TOPIC, topic.name)
        response.topics = [*response.topics, *(_hidden_page(topic.name) for topic in hidden)]
        question.respond(response)

    question.proceed(asked, reply)


def _is_after(cursor: Any, name: str) -> bool:
    return cursor is None or bool(name >= cursor.topic_name)


def _hidden_page(name: str) -> Any:
    return DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic(
        error_code=_REFUSED, name=name, is_internal=False
    )
