"""A follower's end of an incremental fetch session (KIP-227): what its leader knows of what is wanted.

The first request names every partition, and the leader gives the session an id. After that only the partitions whose
position has changed are named, and those that are no longer wanted. A lost request, or a leader that has forgotten the
session, makes both sides start over.
"""

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from ottla.base.ids import Uuid
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import FetchRequest

_NO_SESSION = 0
_FIRST_EPOCH = 0
_MAX_EPOCH = 0x7FFFFFFF

SESSION_ERRORS = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)

Key: TypeAlias = tuple[Uuid, int]


class Position(NamedTuple):
    """What is asked of a partition."""

    offset: int
    leader_epoch: int
    last_fetched_epoch: int
    log_start_offset: int


class FollowerSession:
    """`wanted` are the partitions that the next request is about."""

    def __init__(self) -> None:
        self.wanted: dict[Key, Position] = {}
        self._sent: dict[Key, Position] = {}
        self._changed: dict[Key, None] = {}
        self._id = _NO_SESSION
        self._epoch = _FIRST_EPOCH

    def want(self, key: Key, position: Position) -> None:
        self.wanted[key] = position
        self._changed[key] = None

    def leave_out(self, key: Key) -> None:
        if self.wanted.pop(key, None) is not None:
            self._changed[key] = None

    def fill(self, request: FetchRequest, max_bytes: int) -> None:
        """Writes what is to be asked now into a request."""
        request.session_id, request.session_epoch = self._id, self._epoch
        if self._epoch == _FIRST_EPOCH:
            named, forgotten = list(self.wanted), list[Key]()
            self._sent = dict(self.wanted)
        else:
            named = [key for key in self._changed if key in self.wanted and self.wanted[key] != self._sent.get(key)]
            forgotten = [key for key in self._changed if key not in self.wanted and key in self._sent]
            for key in named:
                self._sent[key] = self.wanted[key]
            for key in forgotten:
                del self._sent[key]
        self._changed.clear()
        request.topics = [
            FetchRequest.FetchTopic(
                topic_id=topic_id,
                partitions=[_asked(index, self._sent[topic_id, index], max_bytes) for index in indexes],
            )
            for topic_id, indexes in _by_topic(named)
        ]
        request.forgotten_topics_data = [
            FetchRequest.ForgottenTopic(topic_id=topic_id, partitions=indexes)
            for topic_id, indexes in _by_topic(forgotten)
        ]

    def asked(self, key: Key) -> Position | None:
        """What the leader knows that is wanted of a partition."""
        return self._sent.get(key)

    def on_reply(self, error: ErrorCode, session_id: int) -> None:
        if error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
            self._id, self._epoch = _NO_SESSION, _FIRST_EPOCH
        elif error:
            self.on_lost()
        elif session_id == _NO_SESSION:
            self._id, self._epoch = _NO_SESSION, _FIRST_EPOCH  # The leader has no room for sessions.
        else:
            self._id = session_id
            self._epoch = 1 if self._epoch == _MAX_EPOCH else self._epoch + 1

    def on_lost(self) -> None:
        """Nobody knows whether the leader has seen the last request. The next one ends its session."""
        self._epoch = _FIRST_EPOCH


def _asked(index: int, position: Position, max_bytes: int) -> FetchRequest.FetchPartition:
    return FetchRequest.FetchPartition(
        partition=index,
        current_leader_epoch=position.leader_epoch,
        fetch_offset=position.offset,
        last_fetched_epoch=position.last_fetched_epoch,
        log_start_offset=position.log_start_offset,
        partition_max_bytes=max_bytes,
    )


def _by_topic(keys: Iterable[Key]) -> Iterable[tuple[Uuid, list[int]]]:
    topics: dict[Uuid, list[int]] = {}
    for topic_id, index in keys:
        topics.setdefault(topic_id, []).append(index)
    return topics.items()
