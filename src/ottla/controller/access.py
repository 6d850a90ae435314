"""Checks of what is asked of a controller, on its own listeners and through a broker that forwards a client's request.

`ottla.apis` says which API has which. What a node asks of the controller in its own process is not looked at: it is the
node.
"""

from collections.abc import Iterator
from typing import Any, Final

from ottla.base.ids import ZERO_UUID
from ottla.security.api_access import TOPIC_WORDS
from ottla.serving.access import shared_checks
from ottla.serving.access.check_shapes import divide, joined, on_cluster, with_entries
from ottla.serving.access.rights import Question, Rights
from ottla.wire.acls import AclOperation
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import CreatePartitionsResponse, CreateTopicsResponse, DeleteTopicsResponse

_REFUSED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_TELLS_CONFIGS: Final = 5
_DELETES_STATES: Final = 6
_DELETES_WITH_WORDS: Final = 5


def create_topics(rights: Rights, question: Question) -> None:
    """CREATE on the cluster, or on each topic. Clients that may describe its settings get what was created."""
    request = question.request
    allowed: list[Any] = request.topics
    refused: list[Any] = []
    if not rights.allow_cluster(AclOperation.CREATE, tell=False):
        allowed, refused = divide(request.topics, lambda topic: rights.allow_topic(AclOperation.CREATE, topic.name))
    names = dict.fromkeys(topic.name for topic in refused)
    result = CreateTopicsResponse.CreatableTopicResult
    refusals = [result(name=name, error_code=_REFUSED, error_message="Authorization failed.") for name in names]

    def reply(response: Any) -> None:
        for topic in response.topics:
            if topic.error_code or question.version < _TELLS_CONFIGS:
                continue
            if not rights.allow_topic(AclOperation.DESCRIBE_CONFIGS, topic.name, tell=False):
                topic.topic_config_error_code = _REFUSED
                topic.num_partitions = topic.replication_factor = -1
                topic.configs = []
        response.topics = [*response.topics, *refusals]
        question.respond(response)

    if allowed or not refused:
        question.proceed(with_entries(request, "topics", allowed), reply)
    else:
        question.respond(CreateTopicsResponse(topics=refusals))


def delete_topics(rights: Rights, question: Question) -> None:
    """DELETE on the cluster, or on each topic. A client that may not describe a topic does not get its name."""
    if rights.allow_cluster(AclOperation.DELETE, tell=False):
        question.pass_on()
        return
    request = question.request
    has_states = question.version >= _DELETES_STATES
    asked = "topics" if has_states else "topic_names"
    refused: list[Any] = []
    allowed: list[Any] = []
    for entry in getattr(request, asked):
        name, topic_id = (entry.name, entry.topic_id) if has_states else (entry, ZERO_UUID)
        refusals = _kept(rights, name, topic_id, TOPIC_WORDS if question.version >= _DELETES_WITH_WORDS else None)
        if refusals is None:
            allowed.append(entry)
        else:
            refused.append(refusals)
    if not refused:
        question.pass_on()
    elif allowed:
        question.proceed(with_entries(request, asked, allowed), joined(question.respond, "responses", refused))
    else:
        question.respond(DeleteTopicsResponse(responses=refused))


def _kept(rights: Rights, name: str | None, topic_id: Any, words: str | None) -> Any:
    """The answer about a topic that is not deleted; None if it may be, or does not exist for all that is known."""
    by_id = name is None
    known = rights.topic_name(topic_id) if by_id else name
    if known is None:
        return None
    may_describe = rights.allow_topic(AclOperation.DESCRIBE, known)
    if may_describe and rights.allow_topic(AclOperation.DELETE, known):
        return None
    answer = DeleteTopicsResponse.DeletableTopicResult(error_code=_REFUSED, error_message=words)
    answer.name = None if by_id and not may_describe else known
    answer.topic_id = topic_id if by_id else ZERO_UUID
    topic = rights.image.topics.by_name.get(known)
    if may_describe and topic is None:
        return None
    if may_describe and topic is not None:
        answer.topic_id = topic.id
    return answer


def create_partitions(rights: Rights, question: Question) -> None:
    request = question.request
    allowed, refused = divide(request.topics, lambda topic: rights.allow_topic(AclOperation.ALTER, topic.name))
    if not refused:
        question.pass_on()
        return
    result = CreatePartitionsResponse.CreatePartitionsTopicResult
    refusals = [result(name=name, error_code=_REFUSED, error_message=None) for name in _names(refused)]
    if allowed:
        question.proceed(with_entries(request, "topics", allowed), joined(question.respond, "results", refusals))
    else:
        question.respond(CreatePartitionsResponse(results=refusals))


def _names(topics: list[Any]) -> Iterator[str]:
    return iter(dict.fromkeys(topic.name for topic in topics))


def alter_configs(rights: Rights, question: Question) -> None:
    shared_checks.check_resources(rights, question, AclOperation.ALTER_CONFIGS, "responses")


def describe_cluster(rights: Rights, question: Question) -> None:
    """A controller shows the cluster to administrators alone (KIP-919)."""
    if rights.allow_cluster(AclOperation.ALTER):
        shared_checks.describe_cluster(rights, question)
    else:
        question.refuse(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, rights.missing(AclOperation.ALTER))


of_nodes: Final = on_cluster(AclOperation.CLUSTER_ACTION)
"""What replicas of the metadata log fetch, though clients may fetch from brokers."""
