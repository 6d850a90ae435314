"""Replies with an error that was asked for, where the clients of that API look for it.

Most APIs answer for each topic, partition or group, and there the error goes; a client that found it elsewhere would
take it for another. With a topic, only the entries of that topic fail, and the others are handled as ever.

A request that fails before it has had an effect is not handled, or not that part of it. One that fails afterwards is
handled, and its reply is changed: the client cannot know what became of it. One that only reads has no effect: it is
handled, and its reply changed, where that is needed to know what to say.
"""

from collections.abc import Callable
from typing import Any, Final

from ottla.apis.description import NamedTopics
from ottla.apis.error_responses import error_response
from ottla.base.errors import RemoteProtocolError
from ottla.node.faults.named_topics import NameOf, named_topics, topic_lists, topic_of
from ottla.runtime.request import Handler, RequestContext, Respond
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message, WireStruct

_ERROR_CODES: Final = ("error_code", "partition_error_code")
_NO_TOPICS: Final = NamedTopics(())

# What a reply has in place of what it cannot say.
_UNKNOWN: Final = dict.fromkeys(
    ("base_offset", "log_append_time_ms", "offset", "end_offset", "leader_epoch", "committed_offset", "low_watermark"),
    -1,
)


class FaultOnRequest(RemoteProtocolError):
    """A connection that is closed because a test has asked for it, or for an error that no reply can carry."""


def fail_before(
    handler: Handler,
    context: RequestContext,
    request: Message,
    respond: Respond,
    error: ErrorCode,
    topic: str | None,
    name_of: NameOf,
) -> None:
    """Answers with the error, without the effect on what fails."""
    topics = named_topics(context.api_key) or _NO_TOPICS
    if topics.only_reads and (topic is not None or error_response(request, context.api_version, error) is None):
        fail_after(handler, context, request, respond, error, topic, name_of)
    elif topic is not None and topics.outcomes is not None:
        _fail_topic(handler, context, request, respond, error, topic, topics.outcomes, name_of)
    else:
        tell(context, respond, error_response(request, context.api_version, error))


def fail_after(
    handler: Handler,
    context: RequestContext,
    request: Message,
    respond: Respond,
    error: ErrorCode,
    topic: str | None,
    name_of: NameOf,
) -> None:
    """Has the request handled, and answers with the error."""

    def changed(reply: Message | None) -> None:
        if reply is not None:
            put_error(reply, context.api_version, error, lambda entry: topic in (None, topic_of(entry, name_of)))
        tell(context, respond, reply)

    handler(context, request, changed)


def tell(context: RequestContext, respond: Respond, reply: Message | None) -> None:
    """Gives the reply out; without one, hangs up: nothing else can tell the client of an error."""
    if reply is None:
        context.connection.hang_up(FaultOnRequest("an error on request, which this request has no place for"))
    respond(reply)


def put_error(struct: WireStruct, version: int, error: ErrorCode, is_hit: Callable[[Any], bool]) -> None:
    """Puts the error into the entries that are hit, and all that is within them."""
    hit = is_hit(struct)
    for field in struct._struct.fields:
        if version not in field.versions:
            continue
        value = getattr(struct, field.attribute)
        if hit and field.attribute in _ERROR_CODES:
            setattr(struct, field.attribute, error)
        elif hit and field.attribute in _UNKNOWN:
            setattr(struct, field.attribute, _UNKNOWN[field.attribute])
        elif isinstance(value, list):
            for entry in value:
                if isinstance(entry, WireStruct):
                    put_error(entry, version, error, _everything if hit else is_hit)


def _everything(_entry: Any) -> bool:
    return True


def _fail_topic(
    handler: Handler,
    context: RequestContext,
    request: Message,
    respond: Respond,
    error: ErrorCode,
    topic: str,
    outcomes: str,
    name_of: NameOf,
) -> None:
    """Refuses the topic's entries, and has the others handled."""
    refused, others = {}, {}
    for owner, attribute in topic_lists(request, context.api_version):
        entries = getattr(owner, attribute) or []
        refused[attribute] = [entry for entry in entries if topic_of(entry, name_of) == topic]
        others[attribute] = [entry for entry in entries if topic_of(entry, name_of) != topic]
    for attribute, entries in refused.items():
        setattr(request, attribute, entries)
    refusal: Any = error_response(request, context.api_version, error)
    if not any(others.values()):
        tell(context, respond, refusal)
        return
    for attribute, entries in others.items():
        setattr(request, attribute, entries)

    def completed(reply: Message | None) -> None:
        if reply is not None and refusal is not None:
            setattr(reply, outcomes, [*getattr(reply, outcomes), *getattr(refusal, outcomes)])
        tell(context, respond, reply)

    handler(context, request, completed)
