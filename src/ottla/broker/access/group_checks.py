"""Groups, their members and their offsets."""

from typing import Any, Final

from ottla.apis.error_responses import refusal_response
from ottla.security.api_access import GROUP_WORDS, TRANSACTION_WORDS
from ottla.serving.access.check_shapes import check_each, divide, each, joined, on_group, with_entries
from ottla.serving.access.rights import Question, Rights
from ottla.wire.acls import AclOperation, AclResource
from ottla.wire.errors import ErrorCode
from ottla.wire.message import like
from ottla.wire.messages import OffsetFetchResponse

_FIND_SEVERAL: Final = 4
_GROUPS, _TRANSACTIONS = 0, 1
_COMMIT_BY_ID: Final = 10
_FETCH_HAS_ERROR: Final = 2
_FETCH_SEVERAL: Final = 8
_FETCH_BY_ID: Final = 10
_HIDDEN_TOPICS: Final = "The group has described topic(s) that the client is not authorized to describe."

join_group = sync_group = heartbeat = leave_group = on_group(AclOperation.READ)
delete_groups = each(
    "groups_names",
    "results",
    lambda rights, name: rights.allow_group(AclOperation.DELETE, name),
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
)


def find_coordinator(rights: Rights, question: Question) -> None:
    """DESCRIBE on what is looked for."""
    request = question.request
    if request.key_type == _GROUPS:
        resource, error, words = AclResource.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED, GROUP_WORDS
    elif request.key_type == _TRANSACTIONS:
        resource, error = AclResource.TRANSACTIONAL_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        words = TRANSACTION_WORDS
    elif rights.allow_cluster(AclOperation.CLUSTER_ACTION):
        question.pass_on()
        return
    else:
        question.refuse(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        return
    if question.version < _FIND_SEVERAL:
        if rights.allow(AclOperation.DESCRIBE, resource, request.key):
            question.pass_on()
        else:
            question.refuse(error, words)
        return
    check_each(
        question,
        "coordinator_keys",
        "coordinators",
        lambda key: rights.allow(AclOperation.DESCRIBE, resource, key),
        error,
    )


def describe_groups(rights: Rights, question: Question) -> None:
    """DESCRIBE on each group. Which operations are allowed is reported if it was asked for."""
    request = question.request
    answered = _with_operations(rights, question) if request.include_authorized_operations else question
    check_each(
        answered,
        "groups",
        "groups",
        lambda name: rights.allow_group(AclOperation.DESCRIBE, name),
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
    )


def consumer_group_describe(rights: Rights, question: Question) -> None:
    """DESCRIBE on each group, and on every topic that a member of it reads: or nothing of the group is reported."""
    request = question.request
    answered = _with_operations(rights, question) if request.include_authorized_operations else question

    def reply(response: Any) -> None:
        for group in response.groups:
            if not group.error_code and not _may_see_topics(rights, group):
                group.error_code, group.error_message = ErrorCode.TOPIC_AUTHORIZATION_FAILED, _HIDDEN_TOPICS
                group.members = []
        answered.respond(response)

    check_each(
        answered._replace(respond=reply),
        "group_ids",
        "groups",
        lambda name: rights.allow_group(AclOperation.DESCRIBE, name),
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
    )


def _with_operations(rights: Rights, question: Question) -> Question:
    def reply(response: Any) -> None:
        for group in response.groups:
            if not group.error_code:
                group.authorized_operations = rights.operations(AclResource.GROUP, group.group_id)
        question.respond(response)

    return question._replace(respond=reply)


def _may_see_topics(rights: Rights, group: Any) -> bool:
    names = {
        name
        for member in group.members
        for name in (
            *member.subscribed_topic_names,
            *(topic.topic_name for topic in member.assignment.topic_partitions),
            *(topic.topic_name for topic in member.target_assignment.topic_partitions),
        )
    }
    return all(rights.allow_topic(AclOperation.DESCRIBE, name) for name in sorted(names))


def list_groups(rights: Rights, question: Question) -> None:
    """All groups for DESCRIBE on the cluster; else those on which the client has it."""
    if rights.allow_cluster(AclOperation.DESCRIBE, tell=False):
        question.pass_on()
        return

    def reply(response: Any) -> None:
        response.groups = [
            one for one in response.groups if rights.allow_group(AclOperation.DESCRIBE, one.group_id, tell=False)
        ]
        question.respond(response)

    question.proceed(question.request, reply)


def consumer_group_heartbeat(rights: Rights, question: Question) -> None:
    """READ on the group and DESCRIBE on all topics that are named; a pattern finds those that may be described."""
    request = question.request
    if not rights.allow_group(AclOperation.READ, request.group_id):
        question.refuse(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    elif not all(
        rights.allow_topic(AclOperation.DESCRIBE, name) for name in dict.fromkeys(request.subscribed_topic_names or ())
    ):
        question.refuse(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    else:
        assert question.context is not None, "controllers have no groups"
        question.context.may_use = lambda name: rights.allow_topic(AclOperation.DESCRIBE, name, tell=False)
        question.pass_on()


def offset_commit(rights: Rights, question: Question) -> None:
    """READ on the group, and on each topic."""
    if not rights.allow_group(AclOperation.READ, question.request.group_id):
        question.refuse(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        return
    _check_topics(rights, question, AclOperation.READ, by_id=question.version >= _COMMIT_BY_ID)


def offset_delete(rights: Rights, question: Question) -> None:
    """DELETE on the group, and READ on each topic."""
    if not rights.allow_group(AclOperation.DELETE, question.request.group_id):
        question.refuse(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        return
    allowed, refused = divide(question.request.topics, lambda one: rights.allow_topic(AclOperation.READ, one.name))
    if not refused:
        question.pass_on()
        return
    answered = _undeleted(refused)

    def reply(response: Any) -> None:
        if not response.error_code:
            response.topics = [*response.topics, *answered]
        question.respond(response)

    question.proceed(with_entries(question.request, "topics", allowed), reply)


def _undeleted(topics: list[Any]) -> list[Any]:
    from ottla.wire.messages import OffsetDeleteResponse

    error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    partition, of_topic = (
        OffsetDeleteResponse.OffsetDeleteResponsePartition,
        OffsetDeleteResponse.OffsetDeleteResponseTopic,
    )
    return [
        of_topic(
            name=topic.name,
            partitions=[partition(partition_index=one.partition_index, error_code=error) for one in topic.partitions],
        )
        for topic in topics
    ]


def _check_topics(rights: Rights, question: Question, operation: AclOperation, *, by_id: bool) -> None:
    def is_allowed(topic: Any) -> bool:
        name = rights.topic_name(topic.topic_id) if by_id else topic.name
        return name is None or rights.allow_topic(operation, name)

    check_each(question, "topics", "topics", is_allowed, ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def offset_fetch(rights: Rights, question: Question) -> None:
    """DESCRIBE on each group, and on each topic. A client that asks for all topics gets those that it may describe."""
    if question.version < _FETCH_SEVERAL:
        _fetch_one(rights, question)
        return
    request = question.request
    allowed, refused = divide(request.groups, lambda group: rights.allow_group(AclOperation.DESCRIBE, group.group_id))
    by_id = question.version >= _FETCH_BY_ID
    hidden: dict[int, list[Any]] = {}
    asked = []
    for place, group in enumerate(allowed):
        if group.topics is not None:
            topics, hidden[place] = divide(group.topics, lambda topic: _may_see(rights, topic, by_id))
            group = with_entries(group, "topics", topics)
        asked.append(group)
    answered = refusal_response(
        with_entries(request, "groups", refused), question.version, ErrorCode.GROUP_AUTHORIZATION_FAILED
    )

    def reply(response: Any) -> None:
        for place, group in enumerate(response.groups):
            if not group.error_code:
                if place in hidden:
                    group.topics = [*group.topics, *(_unfetched(topic) for topic in hidden[place])]
                else:
                    group.topics = [topic for topic in group.topics if _may_see(rights, topic, by_id, tell=False)]
        response.groups = [*response.groups, *answered.groups]  # type: ignore[attr-defined]
        question.respond(response)

    if asked:
        question.proceed(with_entries(request, "groups", asked), reply)
    else:
        question.respond(answered)


def _fetch_one(rights: Rights, question: Question) -> None:
    request = question.request
    if not rights.allow_group(AclOperation.DESCRIBE, request.group_id):
        if question.version < _FETCH_HAS_ERROR:
            question.refuse(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        else:
            question.respond(OffsetFetchResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED))
        return
    if request.topics is None:

        def reply(response: Any) -> None:
            response.topics = [topic for topic in response.topics if _may_see(rights, topic, by_id=False, tell=False)]
            question.respond(response)

        question.proceed(request, reply)
        return
    allowed, refused = divide(request.topics, lambda topic: _may_see(rights, topic, by_id=False))
    answered = [_unfetched_alone(topic) for topic in refused]
    question.proceed(with_entries(request, "topics", allowed), joined(question.respond, "topics", answered))


def _may_see(rights: Rights, topic: Any, by_id: bool, *, tell: bool = True) -> bool:
    name = rights.topic_name(topic.topic_id) if by_id else topic.name
    return name is None or rights.allow_topic(AclOperation.DESCRIBE, name, tell=tell)


_UNFETCHED: Final = OffsetFetchResponse.OffsetFetchResponsePartitions(
    committed_offset=-1,
    committed_leader_epoch=-1,
    metadata="",
    error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
)
_UNFETCHED_ALONE: Final = OffsetFetchResponse.OffsetFetchResponsePartition(
    committed_offset=-1,
    committed_leader_epoch=-1,
    metadata="",
    error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
)


def _unfetched(topic: Any) -> Any:
    answer = OffsetFetchResponse.OffsetFetchResponseTopics(name=topic.name, topic_id=topic.topic_id)
    answer.partitions = [_numbered(_UNFETCHED, index) for index in topic.partition_indexes]
    return answer


def _unfetched_alone(topic: Any) -> Any:
    answer = OffsetFetchResponse.OffsetFetchResponseTopic(name=topic.name)
    answer.partitions = [_numbered(_UNFETCHED_ALONE, index) for index in topic.partition_indexes]
    return answer


def _numbered(prototype: Any, index: int) -> Any:
    answer = like(prototype)
    answer.partition_index = index
    return answer
