"""Asks HTTP servers. One connection is kept to each; everything is bounded: time, bytes, redirects, tries.

    client = WebClient(Limits(), tls)
    reply = client.ask(Request("GET", url, headers=…))       # one try; raises `Retriable` if there is no reply
    reply = patiently(client, [request], Patience(), log)    # until there is a reply that is not "later"

A request that finds its kept connection closed by the server is sent once more on a new one. Any other failure is
`Retriable`, and whether the server did what was asked is not known: what is sent is such that it may be sent twice.

Redirects are followed where the request may be repeated as it is: a GET by any, a request with a body by 307 and 308.
Another origin gets none of the configured headers, and https never leads to http. Each hop's address is checked.
"""

import base64
import binascii
import http.client
import io
import socket
import ssl
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from logging import Logger
from random import SystemRandom
from time import monotonic, sleep, time
from typing import Any, Final, NamedTuple
from urllib.parse import urljoin, urlsplit

from ottla.base.pacing import Backoff
from ottla.connect.connectors.web.addresses import connect
from ottla.connect.errors import ConnectError, Retriable
from ottla.connect.options import InvalidOption

_MOST_REDIRECTS: Final = 5
_MOST_CONNECTIONS: Final = 4
_LONGEST_PAUSE_S: Final = 300.0
"""A server may ask for less patience than this, not for more: the connector starts anew then."""
_LATER: Final = (408, 425, 429)
_MOVED: Final = (301, 302, 303, 307, 308)
_SAME_REQUEST: Final = (307, 308)
_SHOWN: Final = 300
_LOOKED_THROUGH: Final = 64 << 10
_SHORTEST_SECRET: Final = 4


class Url(NamedTuple):
    scheme: str
    host: str
    port: int
    target: str

    @property
    def origin(self) -> tuple[str, str, int]:
        return self.scheme, self.host, self.port

    @property
    def authority(self) -> str:
        """As the Host header has it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        """For people: without the query, where keys may be."""
        return f"{self.scheme}://{self.authority}{self.target.partition('?')[0]}"

    @property
    def text(self) -> str:
        return f"{self.scheme}://{self.authority}{self.target}"


_PORTS: Final = {"http": 80, "https": 443}


def parse_url(text: str, setting: str) -> Url:
    """Raises `InvalidOption`, which names the setting."""
    shown = text.partition("?")[0]
    if any(ord(letter) <= 32 or ord(letter) > 126 for letter in text):
        raise InvalidOption(f"{setting} has a blank or a character that is not ASCII: escape it with %")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise InvalidOption(f"{setting}: {error}") from None
    if parts.username is not None or parts.password is not None:
        raise InvalidOption(f"{setting} has a user or a password in it: use the settings for credentials")
    if parts.scheme not in _PORTS or not parts.hostname:
        raise InvalidOption(f"{setting}={shown}: it must be http://HOST… or https://HOST…")
    target = parts.path or "/"
    if parts.query:
        target += f"?{parts.query}"
    return Url(parts.scheme, parts.hostname, port or _PORTS[parts.scheme], target)


class Limits(NamedTuple):
    connect_s: float = 10.0
    request_s: float = 30.0
    """From sending to the last byte of the reply, however slowly it comes."""
    reply_bytes: int = 16 << 20


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    url: Url
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    """For any origin: what the body is."""
    own_headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """For the URL's own origin: credentials, and what else was configured."""
    cuts_reply: bool = False
    """Whether a reply that is too long is cut; else it is refused."""

    def secrets(self) -> tuple[str, ...]:
        """Texts that a server may repeat, and that no message has: its own headers, what is in them behind the scheme,
        and of basic credentials the password. The longest come first."""
        found: set[str] = set()
        for value in self.own_headers.values():
            scheme, _, shown = value.partition(" ")
            found |= {value, shown.strip()}
            if scheme.lower() == "basic":
                with suppress(binascii.Error, UnicodeDecodeError):
                    found.add(base64.b64decode(shown).decode().partition(":")[2])
        return tuple(sorted((one for one in found if len(one) >= _SHORTEST_SECRET), key=len, reverse=True))


def for_people(text: str, secrets: Sequence[str]) -> str:
    """What a server says, for a message: without secrets, printable, in one line, and not long."""
    for one in secrets:
        text = text.replace(one, "[hidden]")
    text = "".join(letter if letter.isprintable() else "?" for letter in " ".join(text.split()))
    return f"{text[:_SHOWN]}…" if len(text) > _SHOWN else text


class Reply(NamedTuple):
    status: int
    headers: Mapping[str, str]
    """Names are in lower case. Of several with one name, joined by commas."""
    body: bytes
    url: Url
    secrets: tuple[str, ...] = ()
    """Those of the request."""

    def __repr__(self) -> str:
        return f"Reply({self.status} {self.url})"

    @property
    def is_later(self) -> bool:
        """Whether the same may be answered otherwise in a while."""
        return self.status in _LATER or self.status >= 500

    @property
    def is_good(self) -> bool:
        return 200 <= self.status < 300

    def shown(self) -> str:
        """For people: the status, and the beginning of what the server says."""
        said = for_people(self.body[:_LOOKED_THROUGH].decode("utf-8", "replace"), self.secrets)
        return f"{self.url} answered {self.status}" + (f": {said}" if said else "")


class TooLong(ConnectError):
    """A reply with more bytes than are allowed."""


class WebClient:
    """One thread's. `tls` makes the context for https; it is asked once."""

    def __init__(self, limits: Limits, tls: Callable[[], ssl.SSLContext] = ssl.create_default_context) -> None:
        self.limits = limits
        self._tls = tls
        self._context: ssl.SSLContext | None = None
        self._kept: dict[tuple[str, str, int], http.client.HTTPConnection] = {}

    def close(self) -> None:
        for one in self._kept.values():
            one.close()
        self._kept.clear()

    def ask(self, request: Request) -> Reply:
        """The reply, behind redirects. Raises `Retriable` if there is none, `ConnectError` for what will not change."""
        deadline_s = monotonic() + self.limits.connect_s + self.limits.request_s
        first = request
        for _ in range(_MOST_REDIRECTS + 1):
            reply = self._ask_once(request, deadline_s)
            if reply.status not in _MOVED or "location" not in reply.headers:
                return reply
            request = self._redirected(first, request, reply)
        raise ConnectError(f"{first.url} redirects more than {_MOST_REDIRECTS} times: set the address to the last one")

    def _redirected(self, first: Request, request: Request, reply: Reply) -> Request:
        where = urljoin(request.url.text, reply.headers["location"])
        url = parse_url(where.partition("#")[0], f"the redirect of {request.url}")
        if request.method not in ("GET", "HEAD") and reply.status not in _SAME_REQUEST:
            raise ConnectError(
                f"{request.url} answers a {request.method} with a redirect ({reply.status}) to {url}, where the body "
                "would be lost: set the address to that one"
            )
        if request.url.scheme == "https" and url.scheme == "http":
            raise ConnectError(
                f"{request.url} redirects to {url}, without TLS: if you mean it, set the address to that"
            )
        own = first.own_headers if url.origin == first.url.origin else {}
        return replace(request, url=url, own_headers=own)

    def _ask_once(self, request: Request, deadline_s: float) -> Reply:
        origin = request.url.origin
        kept = self._kept.pop(origin, None)
        if kept is not None:
            try:
                return self._exchanged(kept, request, deadline_s)
            except _Closed:
                kept.close()  # The server had enough of this connection before our request: it has not seen it.
            except BaseException:
                kept.close()
                raise
        made = self._connected(request.url, deadline_s)
        try:
            return self._exchanged(made, request, deadline_s)
        except BaseException:
            made.close()
            raise

    def _connected(self, url: Url, deadline_s: float) -> http.client.HTTPConnection:
        timeout_s = min(self.limits.connect_s, max(deadline_s - monotonic(), 0.01))
        plain = connect(url.host, url.port, timeout_s)
        made = http.client.HTTPConnection(url.host, url.port)
        try:
            made.sock = _Timed(self._secured(plain, url) if url.scheme == "https" else plain)
        except BaseException:
            plain.close()
            raise
        return made

    def _secured(self, plain: socket.socket, url: Url) -> ssl.SSLSocket:
        if self._context is None:
            self._context = self._tls()
        try:
            return self._context.wrap_socket(plain, server_hostname=url.host)
        except ssl.SSLCertVerificationError as error:
            raise ConnectError(
                f"the certificate of {url} is not trusted: {error.verify_message}; set ssl.truststore.…"
            ) from None
        except (OSError, ValueError) as error:
            raise Retriable(f"no TLS with {url}: {error}") from None

    def _exchanged(self, connection: http.client.HTTPConnection, request: Request, deadline_s: float) -> Reply:
        url = request.url
        timed: Any = connection.sock
        timed.deadline_s = min(deadline_s, monotonic() + self.limits.request_s)
        headers = {"Host": url.authority, "User-Agent": "ottla-connect", **request.headers, **request.own_headers}
        try:
            with suppress(BrokenPipeError, ConnectionResetError):
                # A server may refuse a body before it has all of it, and close: its reply is there to be read.
                connection.request(request.method, url.target, request.body, headers)
            reply = connection.getresponse()
        except TimeoutError:
            raise Retriable(f"{url} did not answer in time") from None
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError) as error:
            if timed.has_received:
                raise Retriable(f"{url} closed the connection: {error}") from None
            raise _Closed(f"{url} closed the connection: {error}") from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            said = for_people(str(error), request.secrets()) or type(error).__name__
            raise Retriable(f"no reply from {url}: {said}") from None
        return self._read(connection, request, reply)

    def _read(self, connection: http.client.HTTPConnection, request: Request, reply: http.client.HTTPResponse) -> Reply:
        url, most = request.url, self.limits.reply_bytes
        body = bytearray()
        try:
            while len(body) <= most:
                piece = reply.read(min(64 << 10, most + 1 - len(body)))
                if not piece:
                    break
                body += piece
        except TimeoutError:
            raise Retriable(f"{url} did not finish its reply in time") from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            said = for_people(str(error), request.secrets())
            raise Retriable(f"the reply of {url} ends too early: {said}") from None
        is_cut = len(body) > most
        if is_cut and not request.cuts_reply:
            raise TooLong(f"the reply of {url} has more than {most} bytes")
        declared = reply.headers.get("content-length", "")
        if not is_cut and request.method != "HEAD" and declared.isdecimal() and len(body) < int(declared):
            raise Retriable(f"the reply of {url} ends too early: {len(body)} of {declared} bytes")
        joined: dict[str, str] = {}
        for name, value in reply.headers.items():
            name = name.lower()
            joined[name] = f"{joined[name]}, {value}" if name in joined else value
        if is_cut or reply.will_close:
            connection.close()
        else:
            while len(self._kept) >= _MOST_CONNECTIONS:
                self._kept.pop(next(iter(self._kept))).close()
            self._kept[url.origin] = connection
        return Reply(reply.status, joined, bytes(body[:most]), url, request.secrets())


class _Closed(Retriable):
    """The connection was closed before a byte of the reply."""


class _Timed:
    """What http.client takes for a socket: each read and write ends at the deadline of the request under way."""

    def __init__(self, plain: socket.socket) -> None:
        self._plain = plain
        self.deadline_s = 0.0
        self.has_received = False

    def _left(self) -> socket.socket:
        left_s = self.deadline_s - monotonic()
        if left_s <= 0:
            raise TimeoutError("timed out")
        self._plain.settimeout(left_s)
        return self._plain

    def sendall(self, data: Any) -> None:
        self.has_received = False
        self._left().sendall(data)

    def makefile(self, mode: str, *_: Any) -> io.BufferedReader:
        assert mode == "rb"
        return io.BufferedReader(_Received(self))

    def receive_into(self, buffer: Any) -> int:
        count = self._left().recv_into(buffer)
        self.has_received = self.has_received or count > 0
        return count

    def close(self) -> None:
        with suppress(OSError):
            self._plain.close()


class _Received(io.RawIOBase):
    def __init__(self, timed: _Timed) -> None:
        self._timed = timed

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._timed.receive_into(buffer)


class Patience(NamedTuple):
    """How often a request is tried again before the connector starts anew, and the pauses between."""

    retries: int = 5
    first_s: float = 0.5
    most_s: float = 30.0

    def pause_s(self, tries: int, reply: Reply | None) -> float:
        asked_s = None if reply is None else retry_after_s(reply.headers.get("retry-after", ""), time())
        backoff = Backoff(first_ms=max(int(self.first_s * 1000), 1), most_ms=max(int(self.most_s * 1000), 1))
        return asked_s if asked_s is not None else backoff.after(tries, SystemRandom()) / 1000


def retry_after_s(text: str, now_s: float) -> float | None:
    """What a Retry-After header says, seconds or a date; never more than the longest pause. None if it says nothing."""
    text = text.strip()
    if text.isascii() and text.isdecimal():
        return min(float(text[:9]), _LONGEST_PAUSE_S)
    try:
        moment_s = parsedate_to_datetime(text).timestamp()
    except (TypeError, ValueError, OverflowError, OSError, IndexError):
        return None
    return min(max(moment_s - now_s, 0.0), _LONGEST_PAUSE_S)


def patiently(client: WebClient, requests: Sequence[Request], patience: Patience, log: Logger) -> Reply:
    """The first reply that is not "later". Several requests are the same to several servers, tried in turn. Raises
    `Retriable` when the tries are over."""
    tries = 0
    while True:
        reply: Reply | None = None
        try:
            reply = client.ask(requests[tries % len(requests)])
        except Retriable as error:
            problem = error
        else:
            if not reply.is_later:
                return reply
            problem = Retriable(reply.shown())
        if tries >= patience.retries:
            raise problem
        pause_s = patience.pause_s(tries, reply)
        tries += 1
        log.warning("%s; next try in %.1f s (%d of %d)", problem, pause_s, tries, patience.retries)
        sleep(pause_s)
