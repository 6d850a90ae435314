"""Fetch with an error that was asked for: at every partition of the fetch, or at those of one topic.

A fetch within a session (KIP-227) names only what has changed, so the session says which partitions it is about. The
node handles the request, so that the session's epoch continues; but it must not wait for records, since the error is
there. What it has read of partitions that fail is left out.
"""

from typing import Any, Final

from ottla.broker.data.fetch_sessions import FetchSession, FetchSessions
from ottla.node.faults.named_topics import NameOf, topic_of
from ottla.runtime.request import Handler, RequestContext, Respond
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message
from ottla.wire.messages import FetchResponse

_OF_THE_WHOLE_FETCH: Final = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)

_Topic = FetchResponse.FetchableTopicResponse
_Partition = FetchResponse.PartitionData


def fetches(sessions: FetchSessions, request: Any, topic: str, name_of: NameOf) -> bool:
    """Whether a fetch is about the topic."""
    if any(topic_of(entry, name_of) == topic for entry in request.topics):
        return True
    session = sessions.find(request.session_id)
    return session is not None and any(topic_of(wanted, name_of) == topic for wanted in session.partitions.values())


def fail_fetch(
    sessions: FetchSessions,
    handler: Handler,
    context: RequestContext,
    request: Any,
    respond: Respond,
    error: ErrorCode,
    topic: str | None,
    name_of: NameOf,
) -> None:
    if error in _OF_THE_WHOLE_FETCH:
        respond(FetchResponse(error_code=error))
        return
    asked = {(_id(entry), one.partition): entry for entry in request.topics for one in entry.partitions}

    def changed(reply: Message | None) -> None:
        assert isinstance(reply, FetchResponse)
        if not reply.error_code:
            session = sessions.find(reply.session_id)
            about: dict[Any, Any] = dict(session.partitions) if session is not None else asked
            failing = {key: entry for key, entry in about.items() if topic in (None, topic_of(entry, name_of))}
            _replace(reply, failing, error)
            _make_news(session, failing)
        respond(reply)

    request.max_wait_ms = 0
    handler(context, request, changed)


def _replace(reply: FetchResponse, failing: dict[Any, Any], error: ErrorCode) -> None:
    for read in reply.responses:
        read.partitions = [one for one in read.partitions if (_id(read), one.partition_index) not in failing]
    reply.responses = [read for read in reply.responses if read.partitions]
    for (_, index), entry in failing.items():
        partition = _Partition(partition_index=index, error_code=error, high_watermark=-1, records=b"")
        reply.responses.append(_Topic(topic=entry.topic or "", topic_id=entry.topic_id, partitions=[partition]))


def _make_news(session: FetchSession | None, failing: dict[Any, Any]) -> None:
    """The client has not got what the node thinks that it has: it is news again."""
    if session is not None:
        for key in failing:
            session.partitions[key].sent_high_watermark = -1


def _id(entry: Any) -> Any:
    """As sessions know topics: by name, or by id where the version has ids."""
    return entry.topic or entry.topic_id
