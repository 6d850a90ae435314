"""Requests and responses as they cross a connection: a size, a header of the right version, a message.

A frame is what the four-byte size announces, without it: readers strip the size, and what is encoded here starts with
it, ready to be sent. The header's version follows from whether the message's version is flexible (KIP-482), except that
the response to ApiVersions always has the oldest header: a client that asks does not know yet what the node speaks.
"""

from collections.abc import Callable, Generator
from functools import cache, lru_cache, partial
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from ottla.base.lent import Seen
from ottla.base.ports import Buffer
from ottla.wire import messages
from ottla.wire.apis import ApiKey
from ottla.wire.codec import Piece, decode_from, encode_into, join, join_around
from ottla.wire.faults import TrailingBytesError, TruncatedError, UnsupportedVersionError
from ottla.wire.message import Decoder, Message, like
from ottla.wire.messages import RequestHeader, ResponseHeader
from ottla.wire.schema import request_names
from ottla.wire.writing import payload_size

try:
    from ottla.wire import _native
    from ottla.wire.plans import decode_plan, encode_plan
except ImportError:  # there was no C compiler when the package was installed
    _native = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from ottla.wire.decoding import Steps

_SIZE = Struct(">i")
_KEY_AND_VERSION = Struct(">hh")
_REQUEST_START = Struct(">ihhi")
_PLAIN_RESPONSE_START = Struct(">ii")
_FLEXIBLE_RESPONSE_START = Struct(">iiB")
_PLAIN_REQUEST, _FLEXIBLE_REQUEST = 1, 2
_PLAIN_RESPONSE, _FLEXIBLE_RESPONSE = 0, 1


class Request(NamedTuple):
    header: RequestHeader
    message: Message


class UnsupportedRequestError(UnsupportedVersionError):
    """A request whose header can be read but whose API or version is unknown. The header allows for the one polite
    reply there is: to ApiVersions, version 0 with UNSUPPORTED_VERSION and the versions that would do.
    """

    def __init__(self, header: RequestHeader) -> None:
        super().__init__(f"the API with key {header.request_api_key}", header.request_api_version)
        self.header = header


def request_header_version(api_key: int, version: int) -> int:
    return _FLEXIBLE_REQUEST if version in request_type(api_key)._schema.flexible else _PLAIN_REQUEST


def response_header_version(api_key: int, version: int) -> int:
    if api_key == ApiKey.API_VERSIONS:
        return _PLAIN_RESPONSE
    return _FLEXIBLE_RESPONSE if version in response_type(api_key)._schema.flexible else _PLAIN_RESPONSE


@cache
def request_type(api_key: int) -> type[Message]:
    """The class of an API's requests; raises `KeyError` for a key that is none."""
    return getattr(messages, request_names()[api_key])  # type: ignore[no-any-return]


@cache
def response_type(api_key: int) -> type[Message]:
    return getattr(messages, request_names()[api_key].removesuffix("Request") + "Response")  # type: ignore[no-any-return]


class ReceivedRequest(Protocol):
    """What a node keeps of a request. Its class has a slot for each of these."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    message: Message | None
    size: int


ReceivedT = TypeVar("ReceivedT", bound=ReceivedRequest)


def request_reader(cls: type[ReceivedT]) -> Callable[[ReceivedT, Seen], ReceivedT]:
    """A function of a prototype and a frame: the request in that frame, all its other slots like the prototype's.

    It reads what `decode_request` does, and raises what that raises: in one compiled step, if there is a compiler.
    """
    if _native is not None:
        return _native.RequestReader(cls, _plan_of_request).read
    return read_request_in_python


def read_request_in_python(prototype: ReceivedT, frame: Seen) -> ReceivedT:
    header, message = decode_request(frame)
    request = like(prototype)
    request.api_key = header.request_api_key
    request.api_version = header.request_api_version
    request.correlation_id = header.correlation_id
    request.client_id = header.client_id
    request.message = message
    request.size = len(frame)
    return request


def _plan_of_request(frame: Seen) -> "_native.StructPlan":
    _find_request_decoders(frame)
    api_key, version = _KEY_AND_VERSION.unpack_from(frame)
    return decode_plan(request_type(api_key), version)


def decode_request(frame: Seen) -> Request:
    """Header and message. Raises `UnsupportedRequestError` when the API or its version is unknown.

    Bytes after the message are passed over, as Apache Kafka does: librdkafka sends some after a MetadataRequest.
    """
    decoders = _request_decoders.get(bytes(frame[:4])) or _find_request_decoders(frame)
    header, start = decoders[0](frame, 0)
    message, _ = decoders[1](frame, start)
    return _as_request((header, message))


def decode_request_in_steps(frame: Seen) -> Generator[None, None, Request]:
    """As `decode_request`, yielding between entries: for large frames. Also refuses more than `MOST_ENTRIES`."""
    header_decoder, _ = _request_decoders.get(bytes(frame[:4])) or _find_request_decoders(frame)
    header, start = header_decoder(frame, 0)
    message, _ = yield from _step_decoder(header.request_api_key, header.request_api_version)(frame, start)
    return Request(header, message)


@cache
def _step_decoder(api_key: int, version: int) -> "Callable[[Seen, int], Steps]":
    from ottla.wire.decoding import compile_step_decoder  # Most nodes never need it.

    return compile_step_decoder(request_type(api_key), version)


_as_request = partial(tuple.__new__, Request)  # half the time of its constructor

_request_decoders: dict[bytes, tuple[Decoder, Decoder]] = {}
"""First four bytes of a frame (API key and version) to the decoders of header and message; only of those that exist."""


def _find_request_decoders(frame: Seen) -> tuple[Decoder, Decoder]:
    if len(frame) < _KEY_AND_VERSION.size:
        raise TruncatedError("a request without a header", 0)
    api_key, version = _KEY_AND_VERSION.unpack_from(frame)
    try:
        header_decoder = RequestHeader._decoders[request_header_version(api_key, version)]
        decoders = header_decoder, request_type(api_key)._decoders[version]
    except KeyError:
        header, _ = decode_from(RequestHeader, frame, 0, _PLAIN_REQUEST)
        raise UnsupportedRequestError(header) from None
    _request_decoders[bytes(frame[:4])] = decoders
    return decoders


def encode_request(message: Message, version: int, correlation_id: int, client_id: str | None) -> bytes:
    header = _request_header(message, version, correlation_id, client_id)
    return _whole(header, request_header_version(message._schema.api_key, version), message, version)


def encode_request_parts(message: Message, version: int, correlation_id: int, client_id: str | None) -> list[Piece]:
    """The same as parts, records payloads uncopied; see `codec.encode_parts`.

    The header is written by hand, as that of a response: a client does this for every request.
    """
    pieces: list[Any] = [b""]
    payloads: list[int] = []
    encode_into(message, version, pieces, payloads)
    parts: list[Any] = join_around(message, version, pieces, payloads)
    api_key = message._schema.api_key
    client = _client_in_header(client_id, request_header_version(api_key, version))
    size = _REQUEST_START.size - _SIZE.size + len(client) + sum(map(payload_size, parts))
    parts[0] = _REQUEST_START.pack(size, api_key, version, correlation_id) + client + parts[0]
    return parts


def decode_response(message: type[Message], frame: Buffer, version: int) -> tuple[int, Any]:
    """Correlation id and message of a response to a request of that `version`."""
    header_version = response_header_version(message._schema.api_key, version)
    correlation_id, start = correlation_id_of(frame), _SIZE.size
    if header_version == _FLEXIBLE_RESPONSE:
        # Nothing has ever been among the tagged fields of this header.
        start = start + 1 if len(frame) > start and not frame[start] else decode_from(ResponseHeader, frame, 0, 1)[1]
    value, end = decode_from(message, frame, start, version)
    if end != len(frame):
        raise TrailingBytesError(f"{message.__name__} ends {len(frame) - end} bytes early", end)
    return correlation_id, value


def decode_response_of(api_key: int, version: int, frame: Buffer) -> Any:
    """The message of a response whose correlation id was looked at: what a client does for every one."""
    known = _response_decoders.get((api_key, version))
    if known is not None:
        start, decoder = known
        # Nothing has ever been among the tagged fields of a flexible header: then the byte before the message is 0.
        if start == _SIZE.size or (len(frame) > _SIZE.size and not frame[_SIZE.size]):
            value, end = decoder(frame, start)
            if end == len(frame):
                return value
    message = response_type(api_key)
    _, value = decode_response(message, frame, version)
    is_plain = response_header_version(api_key, version) == _PLAIN_RESPONSE
    _response_decoders[api_key, version] = _SIZE.size + (not is_plain), message._decoders[version]
    return value


_response_decoders: dict[tuple[int, int], tuple[int, Decoder]] = {}
"""API and version of a request to where the message of its response begins, mostly, and what decodes it."""


def correlation_id_of(response_frame: Buffer) -> int:
    """Which request a response answers: what tells its API and version, and so how to decode the rest."""
    if len(response_frame) < _SIZE.size:
        raise TruncatedError("a response without a header", 0)
    return _SIZE.unpack_from(response_frame)[0]  # type: ignore[no-any-return]


def encode_response(message: Message, version: int, correlation_id: int) -> bytes:
    header = ResponseHeader(correlation_id=correlation_id)
    return _whole(header, response_header_version(message._schema.api_key, version), message, version)


def encode_response_in_python(message: Message, version: int, correlation_id: int) -> list[Piece]:
    """See `encode_response_parts`. The header is written by hand: there are only these two."""
    pieces: list[Any] = [b""]
    payloads: list[int] = []
    encode_into(message, version, pieces, payloads)
    header_size, is_plain = _response_start(message._schema.api_key, version)
    if payloads:
        parts: list[Any] = join_around(message, version, pieces, payloads)
        size = header_size + sum(map(payload_size, parts))
    else:
        parts = [join(message, version, pieces)]
        size = header_size + len(parts[0])
    if is_plain:
        parts[0] = _PLAIN_RESPONSE_START.pack(size, correlation_id) + parts[0]
    else:
        parts[0] = _FLEXIBLE_RESPONSE_START.pack(size, correlation_id, 0) + parts[0]
    return parts


def _plan_of_response(message: Message, version: int) -> "tuple[_native.EncodePlan, bool] | None":
    """Of a message's class and version, and whether its header has tagged fields."""
    if version not in message._schema.versions:
        return None
    is_plain = response_header_version(message._schema.api_key, version) == _PLAIN_RESPONSE
    return encode_plan(type(message), version), not is_plain


encode_response_parts: Callable[[Message, int, int], list[Piece]] = encode_response_in_python
"""Message, version and correlation id to the same as `encode_response`, as parts: records payloads are uncopied; see
`codec.encode_parts`. A node does this for every reply, in one compiled step if there is a compiler.
"""
if _native is not None:
    encode_response_parts = _native.ResponseWriter(_plan_of_response, encode_response_in_python).parts


@cache
def _response_start(api_key: int, version: int) -> tuple[int, bool]:
    """How many bytes the header of a response has after the size, and whether it is the plain one."""
    is_plain = response_header_version(api_key, version) == _PLAIN_RESPONSE
    start = _PLAIN_RESPONSE_START if is_plain else _FLEXIBLE_RESPONSE_START
    return start.size - _SIZE.size, is_plain


def _request_header(message: Message, version: int, correlation_id: int, client_id: str | None) -> RequestHeader:
    return RequestHeader(
        request_api_key=message._schema.api_key,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id=client_id,
    )


def _whole(header: Message, header_version: int, message: Message, version: int) -> bytes:
    pieces: list[Any] = []
    encode_into(header, header_version, pieces, [])
    encode_into(message, version, pieces, [])
    frame = join(message, version, pieces)
    return _SIZE.pack(len(frame)) + frame


@lru_cache(64)
def _client_in_header(client_id: str | None, header_version: int) -> bytes:
    """The end of a request's header, the same for all requests of a client."""
    pieces: list[Any] = []
    encode_into(RequestHeader(client_id=client_id), header_version, pieces, [])
    return b"".join(pieces)[_REQUEST_START.size - _SIZE.size :]
