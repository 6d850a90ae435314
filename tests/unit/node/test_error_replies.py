"""Errors on request, for every API that is about topics, in every version: at the topic alone, and encodable."""

from typing import Any

import pytest

from ottla.apis.error_responses import error_response
from ottla.apis.table import APIS
from ottla.node.faults.error_replies import fail_after, fail_before
from ottla.node.faults.named_topics import names, topic_lists, topic_of
from ottla.runtime.request import ClientConnection, RequestContext
from ottla.wire.apis import ApiKey, api
from ottla.wire.errors import ErrorCode
from ottla.wire.frame import encode_response, request_type, response_type
from ottla.wire.message import Message, WireStruct

NAMES = {bytes([number]) * 16: name for number, name in enumerate(("bad", "good"), 1)}
IDS = {name: topic_id for topic_id, name in NAMES.items()}
ERROR = ErrorCode.POLICY_VIOLATION

# A transaction's partitions are added all together or not at all: there no topic fails alone.
WHOLE = {ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.OFFSET_DELETE}
CASES = [
    (row.key, version)
    for row in APIS.values()
    if row.topics is not None and row.key != ApiKey.FETCH
    for version in api(row.key).stable_versions
]
every_case = pytest.mark.parametrize(
    ("key", "version"), CASES, ids=[f"{api(key).name}-{version}" for key, version in CASES]
)


def filled(struct: Any, message: type[Message], version: int, topic: str) -> Any:
    """Every list has one entry, and all that names a topic names this one, by id where the version has ids."""
    for field in struct._struct.fields:
        if version not in field.versions:
            continue
        if field.is_array and field.struct is not None:
            entry = filled(getattr(message, field.type)(), message, version, topic)
            setattr(struct, field.attribute, [entry])
        elif field.is_array and field.type == "int32":
            setattr(struct, field.attribute, [0])
        elif field.attribute == "acks":
            struct.acks = -1
        elif field.attribute == "topic_names":
            struct.topic_names = [topic]
        elif field.attribute in ("name", "topic"):
            setattr(struct, field.attribute, topic)
        elif field.attribute == "topic_id":
            struct.topic_id = IDS[topic]
    return struct


def request_for(key: int, version: int, *topics: str) -> Any:
    """A request about these topics."""
    made = [filled(request_type(key)(), request_type(key), version, topic) for topic in topics]
    lists = [[getattr(owner, attribute) for owner, attribute in topic_lists(one, version)] for one in made]
    for number, (owner, attribute) in enumerate(topic_lists(made[0], version)):
        setattr(owner, attribute, [entry for of_one in lists for entry in of_one[number]])
    return made[0]


def succeed(context: RequestContext, request: Any, respond: Any) -> None:
    """Answers for each topic that is asked for."""
    version = context.api_version
    if context.api_key == ApiKey.OFFSET_FETCH:
        reply = response_type(context.api_key)()
        for owner, attribute in topic_lists(request, version):
            entries = [one for entry in getattr(owner, attribute) for one in found(topic_of(entry, NAMES.get), version)]
            if owner is request:
                reply.topics = entries  # type: ignore[attr-defined]
            else:
                reply.groups = [type(reply).OffsetFetchResponseGroup(topics=entries)]  # type: ignore[attr-defined]
    else:
        reply = error_response(request, version, ErrorCode.NONE)
    respond(reply)


def found(topic: str | None, version: int) -> list[Any]:
    assert topic is not None
    message = response_type(ApiKey.OFFSET_FETCH)
    reply = filled(message(), message, version, topic)
    entries: list[Any] = reply.topics if version < 8 else reply.groups[0].topics
    return entries


def outcomes(struct: WireStruct, version: int) -> dict[str, set[int]]:
    """The error codes at and below each topic of a reply; those above are under no name."""
    by_topic: dict[str, set[int]] = {"": set()}

    def walk(struct: WireStruct, topic: str | None) -> None:
        topic = topic_of(struct, NAMES.get) or topic
        for field in struct._struct.fields:
            value = getattr(struct, field.attribute)
            if field.attribute in ("error_code", "partition_error_code") and version in field.versions:
                by_topic.setdefault(topic or "", set()).add(value)
            for entry in value if isinstance(value, list) else ():
                if isinstance(entry, WireStruct):
                    walk(entry, topic)

    walk(struct, None)
    return by_topic


def answer(fail: Any, key: int, version: int, request: Any, topic: str | None = "bad") -> tuple[Any, list[Any]]:
    """The reply, and the requests that were handled."""
    handled: list[Any] = []
    replies: list[Any] = []
    context = RequestContext(key, version, 1, "client", ClientConnection(1, "PLAINTEXT", "host"), 0.0)

    def handler(context: RequestContext, request: Any, respond: Any) -> None:
        handled.append(request)
        succeed(context, request, respond)

    fail(handler, context, request, replies.append, ERROR, topic, NAMES.get)
    (reply,) = replies
    assert encode_response(reply, version, 1)
    return reply, handled


@every_case
def test_a_request_names_its_topics_and_no_other(key: int, version: int) -> None:
    request = request_for(key, version, "bad", "good")
    assert names(request, version, "bad", NAMES.get)
    assert names(request, version, "good", NAMES.get)
    assert not names(request, version, "another", NAMES.get)


@every_case
def test_only_the_topic_fails(key: int, version: int) -> None:
    reply, _ = answer(fail_before, key, version, request_for(key, version, "bad", "good"))
    seen = outcomes(reply, version)
    if key in WHOLE:
        assert set().union(*seen.values()) == {ERROR}
    else:
        assert seen.pop("") <= {ErrorCode.NONE}
        assert seen == {"bad": {ERROR}, "good": {ErrorCode.NONE}}


@every_case
def test_what_fails_before_its_effect_is_not_handled(key: int, version: int) -> None:
    _, handled = answer(fail_before, key, version, request_for(key, version, "bad", "good"))
    reads = {key for key, _ in CASES} - {
        ApiKey.PRODUCE,
        ApiKey.OFFSET_COMMIT,
        ApiKey.TXN_OFFSET_COMMIT,
        ApiKey.DELETE_RECORDS,
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.CREATE_PARTITIONS,
        *WHOLE,
    }
    if key in WHOLE:
        assert handled == []
    elif key not in reads:
        (request,) = handled
        assert not names(request, version, "bad", NAMES.get)
        assert names(request, version, "good", NAMES.get)
    _, handled = answer(fail_before, key, version, request_for(key, version, "bad"))
    assert key in reads or handled == []


@every_case
def test_what_fails_after_its_effect_is_handled_whole(key: int, version: int) -> None:
    reply, (request,) = answer(fail_after, key, version, request_for(key, version, "bad", "good"))
    assert names(request, version, "bad", NAMES.get)
    if key not in WHOLE:
        seen = outcomes(reply, version)
        assert seen["bad"] == {ERROR}
        assert seen["good"] == {ErrorCode.NONE}


@every_case
def test_without_a_topic_all_of_it_fails(key: int, version: int) -> None:
    reply, _ = answer(fail_before, key, version, request_for(key, version, "bad", "good"), topic=None)
    assert set().union(*outcomes(reply, version).values()) == {ERROR}


def test_offsets_of_all_topics_name_every_topic() -> None:
    request = request_for(ApiKey.OFFSET_FETCH, 9, "good")
    request.groups[0].topics = None
    assert names(request, 9, "bad", NAMES.get)
