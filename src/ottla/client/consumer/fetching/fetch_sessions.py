"""What a broker remembers of a consumer's fetches, so that a request only tells what has changed (KIP-227).

Theory of operation. A session begins with a full request: session 0, epoch 0. If the broker answers with a session id,
the next requests have that id and count epochs up from 1; they carry the partitions that are new or have moved, and
name those to forget. When the answer is an error of the session, or none comes, nobody knows what the broker
remembers, and the next request is a full one again. Epoch -1 ends a session.

Where a single partition is read there is nothing to remember. Then a full request has epoch -1, too, and no session
begins: brokers answer it with less work.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ottla.base.ids import ZERO_UUID, TopicPartition, Uuid
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import FetchRequest

NO_SESSION: Final = 0
_INITIAL_EPOCH: Final = 0
_FINAL_EPOCH: Final = -1
_LAST_EPOCH: Final = 0x7FFFFFFF
_FIRST_WITH_TOPIC_IDS: Final = 13

SESSION_ERRORS: Final = frozenset(
    (
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    )
)


class PartitionFetch(NamedTuple):
    """What a request says of one partition."""

    topic_id: Uuid
    fetch_offset: int
    max_bytes: int
    leader_epoch: int


class SessionRequest(NamedTuple):
    session_id: int
    epoch: int
    fetched: Mapping[TopicPartition, PartitionFetch]
    forgotten: Mapping[TopicPartition, Uuid]
    has_topic_ids: bool

    def topics(self, version: int) -> list[FetchRequest.FetchTopic]:
        topics: dict[tuple[str, Uuid], FetchRequest.FetchTopic] = {}
        for partition, fetch in self.fetched.items():
            key = partition.topic, fetch.topic_id
            topic = topics.get(key)
            if topic is None:
                topic = topics[key] = FetchRequest.FetchTopic(partitions=[], **_named(key, version))
            topic.partitions.append(
                FetchRequest.FetchPartition(
                    partition=partition.partition,
                    fetch_offset=fetch.fetch_offset,
                    partition_max_bytes=fetch.max_bytes,
                    current_leader_epoch=fetch.leader_epoch,
                )
            )
        return list(topics.values())

    def forgotten_topics(self, version: int) -> list[FetchRequest.ForgottenTopic]:
        indexes: dict[tuple[str, Uuid], list[int]] = {}
        for partition, topic_id in self.forgotten.items():
            indexes.setdefault((partition.topic, topic_id), []).append(partition.partition)
        return [FetchRequest.ForgottenTopic(partitions=found, **_named(key, version)) for key, found in indexes.items()]


def _named(key: tuple[str, Uuid], version: int) -> dict[str, Any]:
    return {"topic_id": key[1]} if version >= _FIRST_WITH_TOPIC_IDS else {"topic": key[0]}


class FetchSession:
    """One with one broker. A request must be answered or failed before the next is made."""

    def __init__(self) -> None:
        self._id = NO_SESSION
        self._epoch = _INITIAL_EPOCH
        self._known: dict[TopicPartition, PartitionFetch] = {}
        self._asked_full = True
        self._has_topic_ids = True
        self._names: dict[Uuid, str] = {}

    @property
    def partitions(self) -> Mapping[TopicPartition, PartitionFetch]:
        """All that the last request stood for, whether it named them or not."""
        return self._known

    @property
    def is_open(self) -> bool:
        return self._id != NO_SESSION

    def request(self, wanted: dict[TopicPartition, PartitionFetch]) -> SessionRequest:
        has_topic_ids = all(fetch.topic_id != ZERO_UUID for fetch in wanted.values())
        if has_topic_ids != self._has_topic_ids:
            self._epoch = _INITIAL_EPOCH  # The broker names partitions as the session began.
            self._has_topic_ids = has_topic_ids
        known, self._known = self._known, wanted
        self._asked_full = self._epoch == _INITIAL_EPOCH
        self._names = {fetch.topic_id: partition.topic for partition, fetch in wanted.items()}
        if self._asked_full:
            epoch = _FINAL_EPOCH if len(wanted) == 1 else _INITIAL_EPOCH
            return SessionRequest(self._id, epoch, wanted, {}, has_topic_ids)
        changed = {partition: fetch for partition, fetch in wanted.items() if known.get(partition) != fetch}
        forgotten = {
            partition: fetch.topic_id
            for partition, fetch in known.items()
            if partition not in wanted or wanted[partition].topic_id != fetch.topic_id
        }
        return SessionRequest(self._id, self._epoch, changed, forgotten, has_topic_ids)

    def partition_of(self, topic: str, topic_id: Uuid, index: int) -> TopicPartition | None:
        """What a response speaks of; None if nobody asked for it."""
        partition = TopicPartition(topic or self._names.get(topic_id, ""), index)
        return partition if partition in self._known else None

    def on_response(self, response: Any) -> bool:
        """Returns whether its partitions mean something."""
        if response.error_code:
            if response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
                self._id = NO_SESSION
            self._epoch = _INITIAL_EPOCH
            return False
        if self._asked_full:
            self._id = response.session_id
            self._epoch = _INITIAL_EPOCH if response.session_id == NO_SESSION else 1
        else:
            self._epoch = 1 if self._epoch == _LAST_EPOCH else self._epoch + 1
        return True

    def on_failure(self) -> None:
        """No response came: the broker is asked to close the session that it may have, and to begin another."""
        self._epoch = _INITIAL_EPOCH

    def last_request(self) -> SessionRequest:
        """Ends the session."""
        return SessionRequest(self._id, _FINAL_EPOCH, {}, {}, self._has_topic_ids)
