"""Incremental fetch sessions (KIP-227): a client names its partitions once, and afterwards only what changes.

Theory of operation. A full fetch (epoch 0) opens a session if there is room; the reply carries its id. From then on the
client sends the id and the next epoch, the partitions whose position has changed, and those to forget; the node
remembers the rest, and leaves partitions without news out of its replies. Both sides count epochs, so that a lost or
doubled request is noticed: the client then starts over with a full fetch. Epoch -1 closes the session.

Partitions that were sent data go to the end of the session's row, so that in the end every one has its turn.

When the table is full, a session that was not used for two minutes has to go for a new one, or, if it has existed for
two minutes, one with fewer partitions than the new one has. Sessions of followers come before those of consumers.
"""

from collections.abc import Callable, Iterable
from typing import TypeAlias

from ottla.base.ids import ZERO_UUID, Uuid
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import FetchRequest, FetchResponse

NO_SESSION = 0
FIRST_EPOCH = 0
FINAL_EPOCH = -1
_EVICTABLE_AFTER_MS = 120_000
_MAX_EPOCH = 0x7FFFFFFF
_MAX_SESSION_ID = 0x7FFFFFFF

PartitionKey: TypeAlias = tuple[Uuid | str, int]
"""How a session knows a partition: by topic id, or by name where the version has no ids."""


class Wanted:
    """A partition that is fetched: from where, how much, and what the client last got about it."""

    __slots__ = (
        "current_leader_epoch",
        "index",
        "last_fetched_epoch",
        "log_start_offset",
        "max_bytes",
        "offset",
        "sent_high_watermark",
        "sent_log_start_offset",
        "topic",
        "topic_id",
    )

    def __init__(self, topic: str | None, topic_id: Uuid, asked: FetchRequest.FetchPartition) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.index = asked.partition
        self.sent_high_watermark = -1
        self.sent_log_start_offset = -1
        self.update(asked)

    def update(self, asked: FetchRequest.FetchPartition) -> None:
        self.offset = asked.fetch_offset
        self.max_bytes = asked.partition_max_bytes
        self.current_leader_epoch = asked.current_leader_epoch
        self.last_fetched_epoch = asked.last_fetched_epoch
        self.log_start_offset = asked.log_start_offset

    def knows(self, high_watermark: int, log_start_offset: int) -> bool:
        """Whether the client got that before."""
        return self.sent_high_watermark == high_watermark and self.sent_log_start_offset == log_start_offset

    def note_sent(self, data: FetchResponse.PartitionData) -> bool:
        """Remembers what the client is about to get; False if it knows all of it already."""
        is_news = (
            not self.knows(data.high_watermark, data.log_start_offset)
            or data.error_code != ErrorCode.NONE
            or len(data.records) > 0  # type: ignore[arg-type]
            or data.diverging_epoch.end_offset >= 0
            or data.preferred_read_replica >= 0
        )
        # After an error the partition is news again, so that the client learns that it is over.
        self.sent_high_watermark = -1 if data.error_code else data.high_watermark
        self.sent_log_start_offset = data.log_start_offset
        return is_news


Read: TypeAlias = list[tuple[PartitionKey, Wanted, FetchResponse.PartitionData]]
"""Partitions of a fetch, and what they have."""


class FetchSession:
    __slots__ = ("created_ms", "epoch", "id", "is_follower", "partitions", "used_ms", "uses_topic_ids")

    def __init__(
        self, id: int, partitions: dict[PartitionKey, Wanted], now_ms: int, *, uses_topic_ids: bool, is_follower: bool
    ) -> None:
        self.id = id
        self.epoch = FIRST_EPOCH + 1
        self.partitions = partitions
        self.created_ms = now_ms
        self.used_ms = now_ms
        self.uses_topic_ids = uses_topic_ids
        self.is_follower = is_follower


class FetchContext:
    """One fetch: the partitions to read, and how its reply is made."""

    __slots__ = ("_epoch", "_opens", "_sessions", "error", "partitions", "session")

    def __init__(
        self,
        sessions: "FetchSessions",
        partitions: dict[PartitionKey, Wanted],
        *,
        session: FetchSession | None = None,
        opens: bool = False,
        error: ErrorCode = ErrorCode.NONE,
    ) -> None:
        self.partitions = partitions
        self.session = session
        self.error = error
        self._sessions = sessions
        self._opens = opens
        self._epoch = session.epoch if session else 0

    def finish(self, read: Read, now_ms: int, *, by_id: bool, follower: bool) -> tuple[int, ErrorCode, Read]:
        """The session id and error for the reply, and the partitions that belong into it."""
        if self.session is not None:
            return self._finish_incremental(self.session, read)
        if not self._opens:
            return NO_SESSION, self.error, read
        session_id = self._sessions.open(self.partitions, now_ms, uses_topic_ids=by_id, is_follower=follower)
        if session_id:
            for _, wanted, data in read:
                wanted.note_sent(data)
        return session_id, ErrorCode.NONE, read

    def throttled(self) -> tuple[int, ErrorCode]:
        """Session id and error for a reply without partitions, by which nothing is reported: the client asks again."""
        if self.session is None:
            return NO_SESSION, ErrorCode.NONE
        is_current = self.session.epoch == self._epoch
        return self.session.id, ErrorCode.NONE if is_current else ErrorCode.INVALID_FETCH_SESSION_EPOCH

    def _finish_incremental(self, session: FetchSession, read: Read) -> tuple[int, ErrorCode, Read]:
        if session.epoch != self._epoch:
            # The client has given up on this request and gone on with the session.
            return session.id, ErrorCode.INVALID_FETCH_SESSION_EPOCH, []
        news: Read = []
        for key, wanted, data in read:
            if wanted.note_sent(data):
                news.append((key, wanted, data))
                if len(data.records):  # type: ignore[arg-type]
                    del session.partitions[key]
                    session.partitions[key] = wanted
        return session.id, ErrorCode.NONE, news


class FetchSessions:
    """All sessions of a node; at most `slots` (max.incremental.fetch.session.cache.slots).

    `randrange` is as in `Entropy`. A session's id must not be guessed: a client that has it may change the session.
    """

    def __init__(self, slots: int, randrange: Callable[[int], int]) -> None:
        self._slots = slots
        self._sessions: dict[int, FetchSession] = {}
        self._randrange = randrange
        self.evictions = 0

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partition_count(self) -> int:
        return sum(len(session.partitions) for session in self._sessions.values())

    def find(self, session_id: int) -> FetchSession | None:
        return self._sessions.get(session_id)

    def begin(
        self, request: FetchRequest, wanted: dict[PartitionKey, Wanted], *, by_id: bool, now_ms: int
    ) -> FetchContext:
        """What a request is about, given the partitions that it names."""
        if request.session_epoch in (FIRST_EPOCH, FINAL_EPOCH):
            if request.session_id != NO_SESSION:
                self._sessions.pop(request.session_id, None)
            return FetchContext(self, wanted, opens=request.session_epoch == FIRST_EPOCH)
        session = self._sessions.get(request.session_id)
        if session is None:
            return FetchContext(self, {}, error=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != request.session_epoch:
            return FetchContext(self, {}, error=ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != by_id:
            return FetchContext(self, {}, error=ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        return self._continue_session(session, request, wanted, by_id=by_id, now_ms=now_ms)

    def _continue_session(
        self,
        session: FetchSession,
        request: FetchRequest,
        wanted: dict[PartitionKey, Wanted],
        *,
        by_id: bool,
        now_ms: int,
    ) -> FetchContext:
        for key, one in wanted.items():
            known = session.partitions.get(key)
            if known is None:
                session.partitions[key] = one
            else:
                known.offset = one.offset
                known.max_bytes = one.max_bytes
                known.current_leader_epoch = one.current_leader_epoch
                known.last_fetched_epoch = one.last_fetched_epoch
                known.log_start_offset = one.log_start_offset
        for topic in request.forgotten_topics_data:
            for index in topic.partitions:
                session.partitions.pop((topic.topic_id if by_id else topic.topic, index), None)
        if not session.partitions:
            del self._sessions[session.id]
            return FetchContext(self, wanted)
        session.used_ms = now_ms
        session.epoch = 1 if session.epoch == _MAX_EPOCH else session.epoch + 1
        return FetchContext(self, session.partitions, session=session)

    def open(
        self, partitions: dict[PartitionKey, Wanted], now_ms: int, *, uses_topic_ids: bool, is_follower: bool
    ) -> int:
        """The id of a new session, or 0 if there is no room for it."""
        if self._slots <= 0:
            return NO_SESSION
        if len(self._sessions) >= self._slots and not self._evict_for(len(partitions), is_follower, now_ms):
            return NO_SESSION
        session_id = self._new_id()
        self._sessions[session_id] = FetchSession(
            session_id, partitions, now_ms, uses_topic_ids=uses_topic_ids, is_follower=is_follower
        )
        return session_id

    def _new_id(self) -> int:
        while (session_id := 1 + self._randrange(_MAX_SESSION_ID)) in self._sessions:
            pass
        return session_id

    def _evict_for(self, size: int, is_follower: bool, now_ms: int) -> bool:
        victim = self._stale(self._sessions.values(), now_ms) or self._lesser(size, is_follower, now_ms)
        if victim is None:
            return False
        del self._sessions[victim.id]
        self.evictions += 1
        return True

    @staticmethod
    def _stale(sessions: Iterable[FetchSession], now_ms: int) -> FetchSession | None:
        oldest = min(sessions, key=lambda session: session.used_ms)
        return oldest if now_ms - oldest.used_ms > _EVICTABLE_AFTER_MS else None

    def _lesser(self, size: int, is_follower: bool, now_ms: int) -> FetchSession | None:
        """The least of those that the new one may displace, if it is less than the new one."""
        candidates = [
            session
            for session in self._sessions.values()
            if now_ms - session.created_ms > _EVICTABLE_AFTER_MS or (is_follower and not session.is_follower)
        ]
        if not candidates:
            return None
        least = min(candidates, key=lambda session: (session.is_follower, len(session.partitions), session.id))
        rank = (least.is_follower, len(least.partitions), least.id)
        return least if (is_follower, size, 0) >= rank else None


def wanted_partitions(
    request: FetchRequest, by_id: bool, names: "dict[Uuid, str | None]"
) -> dict[PartitionKey, Wanted]:
    """The partitions that a request names. One that is named twice counts as it was named last."""
    wanted: dict[PartitionKey, Wanted] = {}
    for topic in request.topics:
        topic_key: Uuid | str = topic.topic_id if by_id else topic.topic
        name = names.get(topic.topic_id) if by_id else topic.topic
        for asked in topic.partitions:
            wanted[topic_key, asked.partition] = Wanted(name, topic.topic_id if by_id else ZERO_UUID, asked)
    return wanted
