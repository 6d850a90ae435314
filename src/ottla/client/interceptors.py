"""Objects of the application's that see, and may change, every record: `interceptor.classes` (KIP-42).

They are given as objects, in a list, and called in its order; each is given what the one before it returned. What one
raises is logged, and the record is passed on as it was: an interceptor must not keep records from being sent or read.
So it is if one returns something else, None for instance, or changes a list of records in place and then raises.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from ottla.base.ids import TopicPartition
from ottla.client.serialization import Header
from ottla.client.settings import ClientSettings
from ottla.client.topic_partition import OffsetAndMetadata

T = TypeVar("T")
_KEY = "interceptor.classes"


class RecordToSend(NamedTuple):
    """What `send` was given, before it is serialized."""

    topic: str
    value: Any = None
    key: Any = None
    partition: int | None = None
    timestamp_ms: int | None = None
    headers: Sequence[Header] | None = None


class ProducerInterceptor:
    """What a producer calls. All three are optional for classes that inherit from it."""

    def on_send(self, record: RecordToSend) -> RecordToSend:
        """Within `send`, on its caller's thread. Returns the record to send."""
        return record

    def on_acknowledgement(self, delivery: Any) -> None:
        """A record that was handed over is written, or failed. Before its own callback, and where that runs."""

    def close(self) -> None:
        """The producer was closed."""


class ConsumerInterceptor:
    """What a consumer calls, within the application's calls. All are optional for classes that inherit from it."""

    def on_consume(self, records: list[Any]) -> list[Any]:
        """Before `poll` returns them. Returns the list of those to hand out; the others count as consumed."""
        return records

    def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """The coordinator has these offsets."""

    def close(self) -> None:
        """The consumer was closed."""


class Interceptors:
    """Those of one client, in order; false if there are none. `report` is called with what they raise."""

    def __init__(self, settings: ClientSettings, report: Callable[[Exception], None]) -> None:
        given: Any = settings.plug_in(_KEY)
        self._all: tuple[Any, ...] = tuple(given or ())
        self._report = report
        self._is_closed = False

    def __bool__(self) -> bool:
        return bool(self._all)

    def on_send(self, record: RecordToSend) -> RecordToSend:
        for one in self._all:
            record = self._passed("on_send", one, record, record)
        return record

    def on_consume(self, records: list[Any]) -> list[Any]:
        """The list that is given stays as it is, for a caller who is interrupted here."""
        for one in self._all:
            records = self._passed("on_consume", one, records, records.copy())
        return records

    def acknowledging(self, on_delivery: Callable[[Any], None] | None) -> Callable[[Any], None]:
        """The callback of one delivery, for these and for the application."""

        def delivered(delivery: Any) -> None:
            self._tell("on_acknowledgement", delivery)
            if on_delivery is not None:
                on_delivery(delivery)

        return delivered

    def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        self._tell("on_commit", offsets)

    def close(self) -> None:
        """Once: a client may be closed again."""
        if not self._is_closed:
            self._is_closed = True
            self._tell("close")

    def _passed(self, name: str, one: Any, before: T, given: T) -> T:
        """What an interceptor makes of what it is given, or what was there before."""
        try:
            returned = getattr(one, name)(given)
            if isinstance(returned, type(before)):
                return returned
            raise TypeError(
                f"{type(one).__name__}.{name} returned a {type(returned).__name__}, not a {type(before).__name__}"
            )
        except Exception as problem:
            self._report(problem)
            return before

    def _tell(self, name: str, *arguments: Any) -> None:
        for one in self._all:
            try:
                getattr(one, name)(*arguments)
            except Exception as problem:
                self._report(problem)
