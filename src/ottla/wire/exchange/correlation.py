"""A client's side of a connection: which request a response answers, and so how it is to be read.

A response tells neither its API nor its version, only the number of its request. A node answers the requests of one
connection in their order, so a response that belongs to any but the oldest is a broken node's, and so is one that
nobody asked for.
"""

from collections import deque
from typing import Any, Generic, NamedTuple, TypeVar

from ottla.base.errors import RemoteProtocolError
from ottla.base.ports import Buffer
from ottla.wire.codec import Piece
from ottla.wire.frame import correlation_id_of, decode_response_of, encode_request_parts
from ottla.wire.message import Message
from ottla.wire.request_forms import Filled

AskedT = TypeVar("AskedT")

_LARGEST_ID = 0x7FFFFFFF


def out_of_order(correlation_id: int, expected: int) -> RemoteProtocolError:
    return RemoteProtocolError(f"a response with correlation id {correlation_id} where {expected} comes next")


class _InFlight(NamedTuple):
    correlation_id: int
    api_key: int
    version: int
    asked: Any


class Correlation(Generic[AskedT]):
    """One connection's requests in flight. `asked` is what the caller wants to have back with the response."""

    def __init__(self, client_id: str | None) -> None:
        self._client_id = client_id
        self._next_id = 0
        self._in_flight: deque[_InFlight] = deque()

    def __len__(self) -> int:
        return len(self._in_flight)

    def next_id(self) -> int:
        """The number of a request that is not asked here: ApiVersions is, before its version is known."""
        correlation_id = self._next_id
        self._next_id = correlation_id + 1 & _LARGEST_ID
        return correlation_id

    def ask(self, request: Message | Filled, version: int, asked: AskedT, *, has_response: bool = True) -> list[Piece]:
        """The bytes to send. Produce with acks=0 has no response, and must not be waited for."""
        correlation_id = self._next_id  # As `next_id`, without the call.
        if request.__class__ is Filled:
            parts, api_key = request.parts(correlation_id), request.api_key
        else:
            parts = encode_request_parts(request, version, correlation_id, self._client_id)  # type: ignore[arg-type]
            api_key = request._schema.api_key  # type: ignore[union-attr]
        self._next_id = correlation_id + 1 & _LARGEST_ID
        if has_response:
            self._in_flight.append(_InFlight(correlation_id, api_key, version, asked))
        return parts

    def on_frame(self, frame: Buffer) -> tuple[AskedT, Any]:
        """What was asked and the response to it. Raises `RemoteProtocolError`: then the connection is of no use."""
        correlation_id = correlation_id_of(frame)
        if not self._in_flight:
            raise RemoteProtocolError(f"a response with correlation id {correlation_id} that nobody asked for")
        oldest = self._in_flight[0]
        if oldest.correlation_id != correlation_id:
            raise out_of_order(correlation_id, oldest.correlation_id)
        response = decode_response_of(oldest.api_key, oldest.version, frame)
        self._in_flight.popleft()
        return oldest.asked, response

    def in_flight(self) -> list[AskedT]:
        """What was asked and is not answered yet, the oldest first."""
        return [one.asked for one in self._in_flight]

    def take_unanswered(self) -> list[AskedT]:
        """What was asked and will not be answered: the connection is closed."""
        unanswered = self.in_flight()
        self._in_flight.clear()
        return unanswered
