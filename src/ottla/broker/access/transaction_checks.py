"""Transactional ids, and producers without one."""

from typing import Any, Final

from ottla.apis.error_responses import refusal_response
from ottla.security.api_access import TOPIC_WORDS
from ottla.serving.access.check_shapes import check_each, divide, each, each_topic, on_cluster
from ottla.serving.access.rights import Question, Rights
from ottla.wire.acls import AclOperation
from ottla.wire.errors import ErrorCode

_ADDED_BY_BROKERS: Final = 4
_REFUSED: Final = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED

describe_producers = each_topic(AclOperation.READ, words=TOPIC_WORDS)
write_txn_markers = on_cluster(AclOperation.ALTER, AclOperation.CLUSTER_ACTION)


def init_producer_id(rights: Rights, question: Question) -> None:
    """WRITE on the transactional id. Without one, IDEMPOTENT_WRITE, or WRITE on any topic (KIP-679)."""
    name = question.request.transactional_id
    if name is not None:
        if not rights.allow_transaction(AclOperation.WRITE, name):
            question.refuse(_REFUSED)
            return
        if getattr(question.request, "enable2_pc", False) and not rights.allow_transaction(
            AclOperation.TWO_PHASE_COMMIT, name
        ):
            question.refuse(_REFUSED)
            return
    elif not rights.allow_any_topic(AclOperation.WRITE) and not rights.allow_cluster(AclOperation.IDEMPOTENT_WRITE):
        question.refuse(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        return
    question.pass_on()


def add_partitions_to_txn(rights: Rights, question: Question) -> None:
    """Brokers ask for several transactions (CLUSTER_ACTION). A producer needs WRITE on its id and on each topic, and
    nothing is added if one of them is refused.
    """
    request = question.request
    if question.version >= _ADDED_BY_BROKERS:
        on_cluster(AclOperation.CLUSTER_ACTION)(rights, question)
        return
    if not rights.allow_transaction(AclOperation.WRITE, request.v3_and_below_transactional_id):
        question.refuse(_REFUSED)
        return
    known = rights.image.topics.by_name
    topics = request.v3_and_below_topics
    _, refused = divide(topics, lambda topic: rights.allow_topic(AclOperation.WRITE, topic.name))
    if not refused:
        question.pass_on()
        return
    hidden = {topic.name for topic in refused}
    response: Any = refusal_response(request, question.version, ErrorCode.OPERATION_NOT_ATTEMPTED)
    for topic in response.results_by_topic_v3_and_below:
        there = known[topic.name].partitions if topic.name in known else ()
        for partition in topic.results_by_partition:
            if topic.name in hidden:
                partition.partition_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif partition.partition_index not in there:
                partition.partition_error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    question.respond(response)


def _may_commit(rights: Rights, question: Question) -> bool:
    """Whether the client may commit offsets of this group in this transaction; if not, it gets an error."""
    request = question.request
    if not rights.allow_transaction(AclOperation.WRITE, request.transactional_id):
        question.refuse(_REFUSED)
    elif not rights.allow_group(AclOperation.READ, request.group_id):
        question.refuse(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    else:
        return True
    return False


def add_offsets_to_txn(rights: Rights, question: Question) -> None:
    if _may_commit(rights, question):
        question.pass_on()


def end_txn(rights: Rights, question: Question) -> None:
    if rights.allow_transaction(AclOperation.WRITE, question.request.transactional_id):
        question.pass_on()
    else:
        question.refuse(_REFUSED)


def txn_offset_commit(rights: Rights, question: Question) -> None:
    if _may_commit(rights, question):
        check_each(
            question,
            "topics",
            "topics",
            lambda topic: rights.allow_topic(AclOperation.READ, topic.name),
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        )


_describe_each = each(
    "transactional_ids",
    "transaction_states",
    lambda rights, name: rights.allow_transaction(AclOperation.DESCRIBE, name),
    _REFUSED,
)


def describe_transactions(rights: Rights, question: Question) -> None:
    """DESCRIBE on each id; of its topics those are reported on which the client has it too."""

    def reply(response: Any) -> None:
        for state in response.transaction_states:
            state.topics = [
                topic for topic in state.topics if rights.allow_topic(AclOperation.DESCRIBE, topic.topic, tell=False)
            ]
        question.respond(response)

    _describe_each(rights, question._replace(respond=reply))


def list_transactions(rights: Rights, question: Question) -> None:
    def reply(response: Any) -> None:
        response.transaction_states = [
            state
            for state in response.transaction_states
            if rights.allow_transaction(AclOperation.DESCRIBE, state.transactional_id, tell=False)
        ]
        question.respond(response)

    question.proceed(question.request, reply)
