"""Produce, Fetch, ListOffsets, OffsetForLeaderEpoch, DeleteRecords."""

from typing import Any, Final

from ottla.apis.error_responses import refusal_response
from ottla.records.header import HEADER_SIZE
from ottla.runtime.request import RefusedRequest
from ottla.serving.access.check_shapes import check_each, divide, each_topic, joined, with_entries
from ottla.serving.access.rights import Question, Rights
from ottla.wire.acls import AclOperation
from ottla.wire.errors import ErrorCode

_PRODUCE_BY_ID: Final = 13
_FETCH_BY_ID: Final = 13
_FETCH_HAS_REPLICA_STATE: Final = 15
_FINAL_EPOCH: Final = -1
_NO_SESSION: Final = 0
_ATTRIBUTES_AT: Final = 22
_IS_TRANSACTIONAL: Final = 0x10

list_offsets = each_topic(AclOperation.DESCRIBE)
delete_records = each_topic(AclOperation.DELETE)


def produce(rights: Rights, question: Question) -> None:
    """WRITE on the transactional id if there is a transaction in it, and on each topic.

    An unknown id is answered here: a handler that has to wait might find a topic for it, whose right nobody looked for.

    To a client that asks for no answer it is said by hanging up, as about any other error.
    """
    request, version = question.request, question.version
    name = request.transactional_id
    if name is not None and _has_transaction(request) and not rights.allow_transaction(AclOperation.WRITE, name):
        _refuse_all(question, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        return
    by_id = version >= _PRODUCE_BY_ID
    unknown: list[Any] = []

    def is_allowed(topic: Any) -> bool:
        name = rights.topic_name(topic.topic_id) if by_id else topic.name
        return name is not None and rights.allow_topic(AclOperation.WRITE, name)

    known = request.topic_data
    if by_id:
        known, unknown = divide(known, lambda topic: rights.topic_name(topic.topic_id) is not None)
    allowed, refused = divide(known, is_allowed)
    if not refused and not unknown:
        question.pass_on()
        return
    if request.acks == 0:
        if allowed:
            question.proceed(with_entries(request, "topic_data", allowed), question.respond)
        else:
            question.respond(None)
        _hang_up(question)
        return
    refusal = _refused(question, refused, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    refusal.responses = [*refusal.responses, *_refused(question, unknown, ErrorCode.UNKNOWN_TOPIC_ID).responses]
    if not allowed:
        question.respond(refusal)
        return
    rest = with_entries(request, "topic_data", allowed)
    question.proceed(rest, joined(question.respond, "responses", refusal.responses))


def _refused(question: Question, topics: list[Any], error: ErrorCode) -> Any:
    return refusal_response(with_entries(question.request, "topic_data", topics), question.version, error)


def _refuse_all(question: Question, error: ErrorCode) -> None:
    if question.request.acks == 0:
        question.respond(None)
        _hang_up(question)
    else:
        question.refuse(error)


def _hang_up(question: Question) -> None:
    assert question.context is not None, "nobody else produces"
    question.context.connection.hang_up(RefusedRequest("a produce request with acks=0 was not allowed"))


def _has_transaction(request: Any) -> bool:
    for topic in request.topic_data:
        for partition in topic.partition_data:
            records = partition.records or b""
            if len(records) >= HEADER_SIZE and records[_ATTRIBUTES_AT] & _IS_TRANSACTIONAL:
                return True
    return False


def fetch(rights: Rights, question: Question) -> None:
    """CLUSTER_ACTION for a follower, READ on each topic for everyone else.

    What a session is about is not in the request, so the handler asks as it reads (`RequestContext.may_use`). It also
    does if an id is unknown, which may be known when a request that waits is answered. A request without a session,
    whose topics may all be read, is an ordinary one.
    """
    request, version, context = question.request, question.version, question.context
    assert context is not None, "a controller has a check of its own"
    replica_id = request.replica_state.replica_id if version >= _FETCH_HAS_REPLICA_STATE else request.replica_id
    if replica_id >= 0:
        if not rights.allow_cluster(AclOperation.CLUSTER_ACTION):
            context.may_use = _nothing
        question.pass_on()
        return
    has_session = request.session_id != _NO_SESSION or request.session_epoch != _FINAL_EPOCH
    if has_session or not _are_readable(rights, request.topics, by_id=version >= _FETCH_BY_ID):
        context.may_use = lambda name: rights.allow_topic(AclOperation.READ, name)
    question.pass_on()


def _nothing(_name: str) -> bool:
    return False


def _are_readable(rights: Rights, topics: list[Any], *, by_id: bool) -> bool:
    for topic in topics:
        name = rights.topic_name(topic.topic_id) if by_id else topic.topic
        if name is None or not rights.allow_topic(AclOperation.READ, name, tell=False):
            return False
    return True


def offset_for_leader_epoch(rights: Rights, question: Question) -> None:
    """CLUSTER_ACTION for all of it, or DESCRIBE on each topic."""
    if rights.allow_cluster(AclOperation.CLUSTER_ACTION, tell=False):
        question.pass_on()
        return
    check_each(
        question,
        "topics",
        "topics",
        lambda topic: rights.allow_topic(AclOperation.DESCRIBE, topic.topic),
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    )
