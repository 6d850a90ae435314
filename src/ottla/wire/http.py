"""HTTP/1.1 without I/O, for servers and clients: bytes in, messages out, within limits.

The parser is llhttp (`httptools`, Node's own), strict about what may hide a second request in a first one. Measured
here: 8 us for a request with six headers, where h11 takes 310. What it leaves open is bounded here: how long a head may
be, how many headers it may have, how long a body.

A request that offers to change the protocol (`Upgrade: h2c`, as Java's client does) is answered as it is, and what
follows it is HTTP/1.1 again.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser, HttpResponseParser

from ottla.base.errors import RemoteProtocolError

MOST_HEADERS: Final = 100
_OFFER: Final = ("connection", "upgrade", "http2-settings")
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"

REASONS: Final[Mapping[int, str]] = {
    200: "OK",
    201: "Created",
    202: "Accepted",
    204: "No Content",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    406: "Not Acceptable",
    408: "Request Timeout",
    409: "Conflict",
    413: "Content Too Large",
    415: "Unsupported Media Type",
    422: "Unprocessable Entity",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    503: "Service Unavailable",
    504: "Gateway Timeout",
}


class BadHttp(RemoteProtocolError):
    """What came is not HTTP, or beyond a limit. `status` is what a server answers with before it hangs up."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class HttpRequest(NamedTuple):
    """A whole request. Names of headers are in lower case; of one that is there twice, the values with a comma between.

    `target` is what stands in the request line: path and query, percent-encoded.
    """

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes
    keeps_alive: bool = True

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]


class HttpResponse(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes
    keeps_alive: bool = True


class _Message:
    """What the parser tells while a message comes."""

    def __init__(self, most_head: int, most_body: int) -> None:
        self.most_head = most_head
        self.most_body = most_body
        self.done: list[Any] = []
        self.wants_continue = False
        self.has_begun = False
        self.parser: HttpRequestParser | HttpResponseParser
        self.begin()

    def on_message_begin(self) -> None:
        self.begin()
        self.has_begun = True

    def begin(self) -> None:
        self.url = b""
        self.headers: dict[str, str] = {}
        self.body: list[bytes] = []
        self.body_bytes = 0
        self.head_bytes = 0

    def on_url(self, url: bytes) -> None:
        self.url += url
        self._count(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value) + 4)
        text = name.decode("latin-1").lower()
        shown = value.decode("latin-1").strip()
        if text in self.headers:
            if text in ("host", "content-length", "authorization"):
                raise BadHttp(400, f"the header {text} is there twice")
            shown = f"{self.headers[text]}, {shown}"
        elif len(self.headers) >= MOST_HEADERS:
            raise BadHttp(431, f"more than {MOST_HEADERS} headers")
        self.headers[text] = shown

    def _count(self, size: int) -> None:
        self.head_bytes += size
        if self.head_bytes > self.most_head:
            raise BadHttp(431, f"the head of the message is longer than {self.most_head} bytes")

    def on_headers_complete(self) -> None:
        length = self.headers.get("content-length")
        if length is not None and length.isdecimal() and int(length) > self.most_body:
            raise self._too_long()
        if self.headers.get("expect", "").lower() == "100-continue":
            self.wants_continue = True

    def on_body(self, data: bytes) -> None:
        self.body_bytes += len(data)
        if self.body_bytes > self.most_body:
            raise self._too_long()
        self.body.append(data)

    def _too_long(self) -> BadHttp:
        return BadHttp(413, f"the body of the message is longer than {self.most_body} bytes")


class _IncomingRequest(_Message):
    def on_message_complete(self) -> None:
        parser = self.parser
        assert isinstance(parser, HttpRequestParser)
        method = parser.get_method().decode("latin-1")
        target = self.url.decode("latin-1")
        body = self.body[0] if len(self.body) == 1 else b"".join(self.body)
        keeps_alive = parser.should_keep_alive() or _still_keeps_alive(parser.get_http_version(), self.headers)
        self.done.append(HttpRequest(method, target, self.headers, body, keeps_alive))
        self.wants_continue = self.has_begun = False


class _IncomingResponse(_Message):
    def on_message_complete(self) -> None:
        parser = self.parser
        assert isinstance(parser, HttpResponseParser)
        status = parser.get_status_code()
        if 100 <= status < 200:
            return
        body = self.body[0] if len(self.body) == 1 else b"".join(self.body)
        self.done.append(HttpResponse(status, self.headers, body, parser.should_keep_alive()))


def _still_keeps_alive(version: str, headers: Mapping[str, str]) -> bool:
    """An upgrade that nobody accepts ends nothing, though the parser says so."""
    return version == "1.1" and "upgrade" in headers and "close" not in headers.get("connection", "").lower()


class RequestReader:
    """Of one connection. `take` gives the requests that are complete; what is left over is kept."""

    def __init__(self, most_head: int, most_body: int) -> None:
        self._message = _IncomingRequest(most_head, most_body)
        self._begin()

    def _begin(self) -> None:
        self._message.begin()
        self._parser = self._message.parser = HttpRequestParser(self._message)

    @property
    def has_begun(self) -> bool:
        """Whether a part of a request is there."""
        return self._message.has_begun

    @property
    def wants_continue(self) -> bool:
        """Whether the client waits with its body until it hears `CONTINUE`. Asking makes it be forgotten."""
        wants, self._message.wants_continue = self._message.wants_continue, False
        return wants

    def take(self, data: bytes | bytearray | memoryview) -> list[HttpRequest]:
        """Raises `BadHttp`; nothing more can be read then."""
        found: list[HttpRequest] = []
        self._message.done = found
        _feed(self, data)
        return found

    def _again(self) -> None:
        """The parser takes what follows an offer to change the protocol for another one: also the request's body. So
        its head is reported again, without the offer. Raises `BadHttp` for CONNECT, which is an offer by itself.
        """
        found = self._message.done
        request: HttpRequest = found[-1]
        if request.method == "CONNECT":
            raise BadHttp(400, "this is no proxy: CONNECT is not served")
        self._begin()
        self._message.done = found
        if request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers:
            found.pop()
            headers = {name: value for name, value in request.headers.items() if name not in _OFFER}
            self._parser.feed_data(
                request_bytes(request.method, request.target, headers.pop("host", ""), None, headers)
            )


def _feed(reader: RequestReader, data: bytes | bytearray | memoryview) -> None:
    """In one loop: a client may send hundreds of offers at once."""
    left = memoryview(data)
    try:
        while True:
            try:
                reader._parser.feed_data(left)
                return
            except HttpParserUpgrade as upgrade:
                left = left[upgrade.args[0] :]
                reader._again()
                if not left:
                    return
    except HttpParserError as problem:
        cause = problem.__context__
        if isinstance(cause, BadHttp):
            raise cause from None
        raise BadHttp(400, f"not an HTTP request: {problem}") from None


class ResponseReader:
    """Of one connection of a client."""

    def __init__(self, most_head: int, most_body: int) -> None:
        self._message = _IncomingResponse(most_head, most_body)
        self._parser = self._message.parser = HttpResponseParser(self._message)

    def take(self, data: bytes | bytearray | memoryview) -> list[HttpResponse]:
        """Raises `BadHttp`."""
        found: list[HttpResponse] = []
        self._message.done = found
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade:
            raise BadHttp(400, "the server has changed the protocol, and nobody asked for that") from None
        except HttpParserError as problem:
            cause = problem.__context__
            if isinstance(cause, BadHttp):
                raise cause from None
            raise BadHttp(400, f"not an HTTP response: {problem}") from None
        return found


def response_bytes(
    status: int,
    body: bytes,
    content_type: str | None = None,
    headers: Iterable[tuple[str, str]] = (),
    *,
    closes: bool = False,
    is_head: bool = False,
) -> bytes:
    """A whole response. `is_head`: of a HEAD request, which has the length of a body and no body."""
    head = response_head(status, len(body), content_type, headers, closes=closes)
    return head if is_head else head + body


def response_head(
    status: int,
    length: int,
    content_type: str | None = None,
    headers: Iterable[tuple[str, str]] = (),
    *,
    closes: bool = False,
) -> bytes:
    """Of a response whose body has this length."""
    lines = [f"HTTP/1.1 {status} {REASONS.get(status, 'Unknown')}"]
    if content_type is not None:
        lines.append(f"Content-Type: {content_type}")
    if status != 204:
        lines.append(f"Content-Length: {length}")
    lines += (f"{name}: {value}" for name, value in headers)
    if closes:
        lines.append("Connection: close")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def closing(response: bytes) -> tuple[bytes, memoryview]:
    """The same response, after which the connection is closed. In two parts: a large body is not copied."""
    rest = response.index(b"\r\n") + 2
    return response[:rest] + b"Connection: close\r\n", memoryview(response)[rest:]


def request_bytes(method: str, target: str, host: str, body: bytes | None, headers: Mapping[str, str]) -> bytes:
    """A whole request of a client. Raises `ValueError` for a header that would end its line."""
    lines = [f"{method} {target} HTTP/1.1", f"Host: {host}"]
    for name, value in headers.items():
        if "\r" in value or "\n" in value or "\r" in name or "\n" in name:
            raise ValueError(f"the header {name!r} has a line break in it")
        lines.append(f"{name}: {value}")
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + (body or b"")
