"""Where tokens come from: a provider's token endpoint, a file, or nowhere (unsigned, for trying things out).

As in Apache Kafka 4.3: `sasl.oauthbearer.jwt.retriever.class` says which, by the class's name; by default the scheme of
`sasl.oauthbearer.token.endpoint.url` does. At an endpoint, the grant is that of client credentials, with a secret or an
assertion, or that of an assertion alone (jwt-bearer).
"""

import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote_plus, urlencode

from ottla.client.io.token_endpoint import HttpReply, post
from ottla.client.login.token_login import Refused
from ottla.client.login.tokens import unsigned_token
from ottla.client.promise import Promise, spawn
from ottla.client.world import Aside

if TYPE_CHECKING:
    from ssl import SSLContext

_HEADERS: Final = {
    "Accept": "application/json",
    "Cache-Control": "no-cache",
    "Content-Type": "application/x-www-form-urlencoded",
}
_FOR_GOOD: Final = frozenset((400, 401, 402, 403, 404, 405, 406, 407, 409, 410, 411, 412, 413, 414, 415, 501, 505))
"""Answers after which Kafka's clients do not ask again."""
_MOST_SHOWN: Final = 300
_STRING_CLAIM: Final = "unsecuredLoginStringClaim_"
_NUMBER_CLAIM: Final = "unsecuredLoginNumberClaim_"

MakeAssertion = Callable[[int], str]
"""An assertion for a request at that time, in ms since 1970. Raises `OSError` or `ValueError`."""


class Endpoint(NamedTuple):
    url: str
    connect_timeout_s: float
    read_timeout_s: float
    context: "SSLContext | None"


class ClientSecret(NamedTuple):
    client_id: str
    secret: str
    scope: str | None
    is_urlencoded: bool
    """Whether id and secret are encoded in the header, as RFC 6749 says and few providers do."""

    def request(self, now_ms: int) -> tuple[dict[str, str], str]:
        encode = quote_plus if self.is_urlencoded else str
        basic = b64encode(f"{encode(self.client_id)}:{encode(self.secret)}".encode()).decode()
        return {**_HEADERS, "Authorization": f"Basic {basic}"}, _form("client_credentials", scope=self.scope)

    def __repr__(self) -> str:
        return f"ClientSecret({self.client_id!r}, [hidden])"


class ClientAssertion(NamedTuple):
    make: MakeAssertion
    client_id: str | None
    scope: str | None

    def request(self, now_ms: int) -> tuple[dict[str, str], str]:
        kind = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
        form = _form(
            "client_credentials",
            client_assertion_type=kind,
            client_assertion=self.make(now_ms),
            client_id=self.client_id,
            scope=self.scope,
        )
        return dict(_HEADERS), form


class JwtBearer(NamedTuple):
    make: MakeAssertion
    scope: str | None

    def request(self, now_ms: int) -> tuple[dict[str, str], str]:
        grant = "urn:ietf:params:oauth:grant-type:jwt-bearer"
        return dict(_HEADERS), _form(grant, assertion=self.make(now_ms), scope=self.scope)


class EndpointSource:
    """Asks on another thread, also for the assertion: a key may have to be read and deciphered."""

    def __init__(self, aside: Aside, endpoint: Endpoint, grant: ClientSecret | ClientAssertion | JwtBearer) -> None:
        self._aside = aside
        self._endpoint = endpoint
        self._grant = grant

    def fetch(self, now_ms: int) -> Promise[str]:
        return spawn(self._fetch(now_ms))

    async def _fetch(self, now_ms: int) -> str:
        return _token_in(await self._aside(partial(self._ask, now_ms)), self._endpoint.url)

    def _ask(self, now_ms: int) -> HttpReply:
        try:
            headers, body = self._grant.request(now_ms)
        except (OSError, ValueError) as problem:
            raise Refused(f"the assertion cannot be made: {problem}") from problem
        url, connect_timeout_s, read_timeout_s, context = self._endpoint
        return post(
            url, headers, body, connect_timeout_s=connect_timeout_s, read_timeout_s=read_timeout_s, context=context
        )


class FileSource:
    """Read anew each time: the program that writes the file may put a newer token there."""

    def __init__(self, path: str) -> None:
        self._path = path

    def fetch(self, now_ms: int) -> Promise[str]:
        try:
            with open(self._path, encoding="utf-8") as file:
                return Promise.resolved(file.read())
        except (OSError, UnicodeError) as problem:
            return Promise.rejected(Refused(f"{self._path} cannot be read: {problem}"))


class UnsignedSource:
    """As Kafka's client does without a login handler: claims from JAAS options, and nobody vouches for them."""

    def __init__(self, options: Mapping[str, str]) -> None:
        numbers = {name: float(value) for name, value in _prefixed(options, _NUMBER_CLAIM).items()}
        self._claims: dict[str, object] = {**_prefixed(options, _STRING_CLAIM), **numbers}
        self._lifetime_s = int(options.get("unsecuredLoginLifetimeSeconds", "3600"))

    def fetch(self, now_ms: int) -> Promise[str]:
        begins_s = now_ms / 1000
        return Promise.resolved(unsigned_token({**self._claims, "iat": begins_s, "exp": begins_s + self._lifetime_s}))


def _token_in(reply: HttpReply, url: str) -> str:
    if reply.status not in (200, 201):
        reason = f"{url} answered {reply.status}{_said(reply.body)}"
        raise Refused(reason) if reply.status in _FOR_GOOD else OSError(reason)
    try:
        token = json.loads(reply.body)["access_token"]
    except (ValueError, KeyError, TypeError):
        raise OSError(f"the answer of {url} has no access_token") from None
    if not isinstance(token, str):
        raise Refused(f"the access_token of {url} is not a string")
    return token


def _said(body: bytes) -> str:
    """What RFC 6749 lets a provider say about an error, which holds no secret."""
    try:
        answer = json.loads(body)
        said = [
            str(answer[key]) for key in ("error", "error_description", "errorCode", "errorSummary") if key in answer
        ]
    except (ValueError, TypeError):
        return ""
    return f": {' - '.join(said)}"[:_MOST_SHOWN] if said else ""


def _form(grant_type: str, **fields: str | None) -> str:
    return urlencode({"grant_type": grant_type, **{name: value for name, value in fields.items() if value}})


def _prefixed(options: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {name.removeprefix(prefix): value for name, value in options.items() if name.startswith(prefix)}
