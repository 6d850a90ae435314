"""Who may ask what of a controller, on its own listeners and through a broker that passes a client's request on.

The rows are Apache Kafka's. What a node asks of the controller in its own process is not looked at: it is the node.
"""

from collections.abc import Iterator
from typing import Any, Final

from ottla.base.ids import ZERO_UUID
from ottla.broker.access.check_shapes import (
    CLUSTER_WORDS,
    NO_WORDS,
    TOPIC_WORDS,
    divide,
    joined,
    on_cluster,
    open_to_all,
    with_entries,
)
from ottla.broker.access.cluster_checks import describe_cluster
from ottla.broker.access.rights import Check, Question, Rights
from ottla.broker.access.setting_checks import check_resources
from ottla.broker.access.token_checks import create_token
from ottla.wire.acls import AclOperation
from ottla.wire.apis import ApiKey
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import CreatePartitionsResponse, CreateTopicsResponse, DeleteTopicsResponse

_REFUSED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_TELLS_CONFIGS: Final = 5
_DELETES_STATES: Final = 6
_DELETES_WITH_WORDS: Final = 5


def create_topics(rights: Rights, question: Question) -> None:
    """CREATE on the cluster, or on each topic. What was created is told to clients that may describe its settings."""
    request = question.request
    allowed: list[Any] = request.topics
    refused: list[Any] = []
    if not rights.allow_cluster(AclOperation.CREATE, tell=False):
        allowed, refused = divide(request.topics, lambda topic: rights.allow_topic(AclOperation.CREATE, topic.name))
    names = dict.fromkeys(topic.name for topic in refused)
    result = CreateTopicsResponse.CreatableTopicResult
    told = [result(name=name, error_code=_REFUSED, error_message="Authorization failed.") for name in names]

    def reply(response: Any) -> None:
        for topic in response.topics:
            if topic.error_code or question.version < _TELLS_CONFIGS:
                continue
            if not rights.allow_topic(AclOperation.DESCRIBE_CONFIGS, topic.name, tell=False):
                topic.topic_config_error_code = _REFUSED
                topic.num_partitions = topic.replication_factor = -1
                topic.configs = []
        response.topics = [*response.topics, *told]
        question.respond(response)

    if allowed or not refused:
        question.go_on(with_entries(request, "topics", allowed), reply)
    else:
        question.respond(CreateTopicsResponse(topics=told))


def delete_topics(rights: Rights, question: Question) -> None:
    """DELETE on the cluster, or on each topic. The name of a topic is not told to a client that may not describe it."""
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
        told = _kept(rights, name, topic_id, TOPIC_WORDS if question.version >= _DELETES_WITH_WORDS else None)
        if told is None:
            allowed.append(entry)
        else:
            refused.append(told)
    if not refused:
        question.pass_on()
    elif allowed:
        question.go_on(with_entries(request, asked, allowed), joined(question.respond, "responses", refused))
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
    told = [result(name=name, error_code=_REFUSED, error_message=None) for name in _names(refused)]
    if allowed:
        question.go_on(with_entries(request, "topics", allowed), joined(question.respond, "results", told))
    else:
        question.respond(CreatePartitionsResponse(results=told))


def _names(topics: list[Any]) -> Iterator[str]:
    return iter(dict.fromkeys(topic.name for topic in topics))


def _describe_configs(rights: Rights, question: Question) -> None:
    check_resources(rights, question, AclOperation.DESCRIBE_CONFIGS, "results")


def _alter_configs(rights: Rights, question: Question) -> None:
    check_resources(rights, question, AclOperation.ALTER_CONFIGS, "responses")


def _describe_cluster(rights: Rights, question: Question) -> None:
    if rights.allow_cluster(AclOperation.ALTER):
        describe_cluster(rights, question)
    else:
        question.refuse(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, rights.missing(AclOperation.ALTER))


_OF_NODES: Final = on_cluster(AclOperation.CLUSTER_ACTION)
_ALTER: Final = on_cluster(AclOperation.ALTER)
_DESCRIBE: Final = on_cluster(AclOperation.DESCRIBE)

CHECKS: Final[dict[int, Check]] = {
    # What administrators ask
    ApiKey.CREATE_TOPICS: create_topics,
    ApiKey.DELETE_TOPICS: delete_topics,
    ApiKey.CREATE_PARTITIONS: create_partitions,
    ApiKey.ELECT_LEADERS: _ALTER,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _ALTER,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: _DESCRIBE,
    ApiKey.ALTER_CONFIGS: _alter_configs,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _alter_configs,
    ApiKey.DESCRIBE_CONFIGS: _describe_configs,
    ApiKey.ALTER_CLIENT_QUOTAS: on_cluster(AclOperation.ALTER_CONFIGS, words=CLUSTER_WORDS),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _ALTER,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: on_cluster(AclOperation.DESCRIBE, words=NO_WORDS),
    ApiKey.CREATE_DELEGATION_TOKEN: create_token,
    ApiKey.RENEW_DELEGATION_TOKEN: open_to_all,
    ApiKey.EXPIRE_DELEGATION_TOKEN: open_to_all,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: open_to_all,
    ApiKey.UPDATE_FEATURES: _ALTER,
    ApiKey.UNREGISTER_BROKER: _ALTER,
    ApiKey.DESCRIBE_QUORUM: on_cluster(AclOperation.DESCRIBE, words=CLUSTER_WORDS),
    ApiKey.ADD_RAFT_VOTER: on_cluster(AclOperation.ALTER, words=CLUSTER_WORDS),
    ApiKey.REMOVE_RAFT_VOTER: on_cluster(AclOperation.ALTER, words=CLUSTER_WORDS),
    ApiKey.DESCRIBE_ACLS: _DESCRIBE,
    ApiKey.CREATE_ACLS: _ALTER,
    ApiKey.DELETE_ACLS: _ALTER,
    # What nodes of the cluster ask
    ApiKey.BROKER_REGISTRATION: _OF_NODES,
    ApiKey.BROKER_HEARTBEAT: _OF_NODES,
    ApiKey.CONTROLLER_REGISTRATION: _OF_NODES,
    ApiKey.ALTER_PARTITION: _OF_NODES,
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: _OF_NODES,
    ApiKey.ALLOCATE_PRODUCER_IDS: _OF_NODES,
    ApiKey.VOTE: _OF_NODES,
    ApiKey.BEGIN_QUORUM_EPOCH: _OF_NODES,
    ApiKey.END_QUORUM_EPOCH: _OF_NODES,
    ApiKey.FETCH: _OF_NODES,
    ApiKey.FETCH_SNAPSHOT: _OF_NODES,
    ApiKey.UPDATE_RAFT_VOTER: _OF_NODES,
    ApiKey.ENVELOPE: _OF_NODES,
    # What belongs to the connection. A controller shows the cluster to administrators alone (KIP-919).
    ApiKey.API_VERSIONS: open_to_all,
    ApiKey.SASL_HANDSHAKE: open_to_all,
    ApiKey.SASL_AUTHENTICATE: open_to_all,
    ApiKey.DESCRIBE_CLUSTER: _describe_cluster,
}
