"""Poison records, sent aside to a topic of their own, with headers that say why, from where and how often.

    letters = DeadLetters(producer, "orders-dead", group_id="billing")
    for record in consumer:
        try:
            handle(record)
        except Exception as problem:
            letters.send(record, problem).result()

Key, value, timestamp and the record's own headers stay as they are. A record that comes back (read from the dead-letter
topic, it fails again) keeps what was said of its origin and counts one more attempt.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from ottla.client.errors import DeserializationFailed
from ottla.client.serialization import Header
from ottla.records.kernel import ConsumerRecord

SentT_co = TypeVar("SentT_co", covariant=True)
SentT = TypeVar("SentT")

PREFIX: Final = "dead-letter."
TOPIC: Final = PREFIX + "topic"
PARTITION: Final = PREFIX + "partition"
OFFSET: Final = PREFIX + "offset"
GROUP: Final = PREFIX + "group"
ATTEMPTS: Final = PREFIX + "attempts"
REASON: Final = PREFIX + "reason"
MESSAGE: Final = PREFIX + "message"
_OF_THE_ORIGIN: Final = (TOPIC, PARTITION, OFFSET)
_MOST_MESSAGE_BYTES: Final = 4096


class Sender(Protocol[SentT_co]):
    """A producer, blocking or of asyncio."""

    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        *,
        timestamp_ms: int | None = None,
        headers: Sequence[Header] | None = None,
    ) -> SentT_co: ...


class Origin(NamedTuple):
    """Where a dead letter was read the first time."""

    topic: str
    partition: int
    offset: int


class DeadLetters(Generic[SentT]):
    """`topic` is one for all, or a function of the record: `lambda record: f"{record.topic}-dead"`.

    What cannot be deserialized comes as a `DeserializationFailed`, whose `record` has the bytes; `send` takes them from
    it. Records that were deserialized need a producer that can serialize them again.
    """

    def __init__(
        self,
        producer: Sender[SentT],
        topic: str | Callable[[ConsumerRecord], str],
        *,
        group_id: str | None = None,
    ) -> None:
        self._producer = producer
        self._topic = topic
        self._group_id = group_id

    def send(self, record: ConsumerRecord, problem: BaseException) -> SentT:
        """Returns what the producer's `send` does: wait for it before the record's offset is committed."""
        if isinstance(problem, DeserializationFailed) and problem.record is not None:
            record = problem.record
        topic = self._topic if isinstance(self._topic, str) else self._topic(record)
        return self._producer.send(
            topic,
            record.value,
            record.key,
            timestamp_ms=record.timestamp if record.timestamp >= 0 else None,
            headers=dead_letter_headers(record, problem, self._group_id),
        )


def dead_letter_headers(record: ConsumerRecord, problem: BaseException, group_id: str | None = None) -> list[Header]:
    """The record's headers, and those that tell its story."""
    story = {name: value for name, value in record.headers if name in _OF_THE_ORIGIN}
    if TOPIC not in story:
        story = {
            TOPIC: record.topic.encode(),
            PARTITION: b"%d" % record.partition,
            OFFSET: b"%d" % record.offset,
        }
    if group_id is not None:
        story[GROUP] = group_id.encode()
    cause = problem.__cause__ if isinstance(problem, DeserializationFailed) and problem.__cause__ else problem
    story[ATTEMPTS] = b"%d" % (attempts_of(record) + 1)
    story[REASON] = f"{type(cause).__module__}.{type(cause).__qualname__}".removeprefix("builtins.").encode()
    story[MESSAGE] = str(cause).encode(errors="replace")[:_MOST_MESSAGE_BYTES]
    return [header for header in record.headers if not header[0].startswith(PREFIX)] + list(story.items())


def attempts_of(record: ConsumerRecord) -> int:
    """How often it has become a dead letter so far."""
    for name, value in record.headers:
        if name == ATTEMPTS and value is not None and value.isdigit():
            return int(value)
    return 0


def origin_of(record: ConsumerRecord) -> Origin:
    """Where it was read the first time: here, if it is no dead letter."""
    story = dict(record.headers)
    try:
        return Origin((story[TOPIC] or b"").decode(), int(story[PARTITION] or b""), int(story[OFFSET] or b""))
    except (KeyError, TypeError, ValueError):
        return Origin(record.topic, record.partition, record.offset)
