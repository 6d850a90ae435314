"""A request of very many names is decided on by the rules, and leaves what is remembered of other clients alone."""

from typing import Any

import pytest

from ottla.base.ids import ZERO_UUID
from ottla.controller.access import delete_topics
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.security.acls.authorizer import Authorizer
from ottla.serving.access.denials import Denials
from ottla.serving.access.gate import Gate
from ottla.serving.access.rights import MOST_REMEMBERED, Question, Rights
from ottla.wire.acls import AclOperation, AclPermission, AclResource, PatternType
from ottla.wire.messages import AccessControlEntryRecord, DeleteTopicsRequest, DeleteTopicsResponse

MANY = 60_000
"""More than an authorizer remembers."""


def gate() -> Gate:
    """Alice may delete and see what begins with `mine`."""
    rule = AccessControlEntryRecord(
        id=ZERO_UUID,
        resource_type=AclResource.TOPIC,
        resource_name="mine",
        pattern_type=PatternType.PREFIXED,
        principal="User:alice",
        host="*",
        operation=AclOperation.DELETE,
        permission_type=AclPermission.ALLOW,
    )
    authorizer = Authorizer()
    authorizer.load({1: rule})
    return Gate(authorizer, Denials(lambda: 0.0), MetadataImage(), None)  # type: ignore[arg-type]


@pytest.mark.parametrize("count", [10, MANY])
def test_names_are_decided_on_however_many_they_are(count: int) -> None:
    names = [f"{'mine' if number % 3 else 'other'}-{number}" for number in range(count)]
    passed: list[Any] = []
    replies: list[DeleteTopicsResponse] = []
    question = Question(
        DeleteTopicsRequest(topic_names=names),
        5,
        replies.append,
        lambda request, respond: passed.append((request.topic_names, respond)),
    )
    delete_topics(Rights(gate(), "User:alice", "10.0.0.1", "DELETE_TOPICS"), question)
    ((allowed, respond),) = passed
    assert allowed == [name for name in names if name.startswith("mine")]
    respond(DeleteTopicsResponse())
    (reply,) = replies
    assert [one.name for one in reply.responses] == [name for name in names if name.startswith("other")]


def test_what_is_remembered_of_others_outlives_a_request_of_very_many_names() -> None:
    guard = gate()
    authorizer = guard.authorizer
    Rights(guard, "User:bob", "10.0.0.2", "FETCH").allow_topic(AclOperation.READ, "orders")
    remembered = dict(authorizer._remembered)
    assert len(remembered) == 1
    rights = Rights(guard, "User:alice", "10.0.0.1", "DELETE_TOPICS")
    for number in range(MANY):
        assert rights.allow_topic(AclOperation.DELETE, f"mine-{number}")
    assert remembered.items() <= authorizer._remembered.items()
    assert len(authorizer._remembered) == MOST_REMEMBERED + 1
