"""Telling a broker who we are: the step between the broker's versions and the first request, and again in time.

Theory of operation. A connection hands over a way to ask (`exchange`), which goes past the requests that wait. With
SASL the broker is told the mechanism (SaslHandshake), and then tokens go to and fro (SaslAuthenticate) until the
mechanism is complete. The broker may limit how long that holds (KIP-368): then the same is done again on the same
connection, before the next request that is asked late in that time. A random share of it is left, so that clients do
not come all at once.
"""

from collections.abc import Callable
from typing import Any, Final, Protocol

from ottla.base.ports import Entropy
from ottla.client.errors import SaslAuthenticationFailed, UnsupportedSaslMechanism, error_for
from ottla.client.network.api_versions import ApiVersions
from ottla.client.promise import Promise, spawn
from ottla.wire.apis import ApiKey
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message
from ottla.wire.messages import SaslAuthenticateRequest, SaslHandshakeRequest

Exchange = Callable[[Message, int], Promise[Any]]
"""Sends a request in a version, and promises the response."""

NO_LIMIT: Final = float("inf")
_RAW_TOKENS: Final = 0
"""SaslHandshake of version 0 is followed by tokens without headers, which brokers before 1.0 want."""
_LEAST_SHARE: Final = 0.85
_STEPS: Final = 1000
_RANDOM_SHARE: Final = 0.10


class Authentication(Protocol):
    def begin(self, exchange: Exchange, versions: ApiVersions) -> Promise[float]:
        """Done when the broker knows who we are, with the milliseconds after which it is to be told again.

        Rejected with the reason that it does not believe us.
        """
        ...


class NoAuthentication:
    def begin(self, exchange: Exchange, versions: ApiVersions) -> Promise[float]:
        return Promise.resolved(NO_LIMIT)


class Mechanism(Protocol):
    """A client's end of a SASL mechanism (`security.sasl`)."""

    @property
    def name(self) -> str: ...
    @property
    def is_complete(self) -> bool: ...
    def respond(self, challenge: bytes | None) -> bytes | None: ...


class Login(Protocol):
    """What a client has to show."""

    def mechanism(self, host: str) -> Promise[Mechanism]:
        """Makes one for one exchange with a broker on that host. Rejected with a `KafkaError`."""
        ...

    def close(self) -> None:
        """The client is closed: nothing is renewed any more."""
        ...


class SaslAuthentication:
    """Of one connection."""

    def __init__(self, login: Login, host: str, entropy: Entropy) -> None:
        self._login = login
        self._host = host
        self._entropy = entropy

    def begin(self, exchange: Exchange, versions: ApiVersions) -> Promise[float]:
        return spawn(self._authenticate(exchange, versions))

    async def _authenticate(self, exchange: Exchange, versions: ApiVersions) -> float:
        mechanism = await self._login.mechanism(self._host)
        await self._agree_on(mechanism.name, exchange, versions)
        version = versions.newest(ApiKey.SASL_AUTHENTICATE)
        response = self._respond(mechanism, None)
        while True:
            answer = await exchange(SaslAuthenticateRequest(auth_bytes=response or b""), version)
            if answer.error_code:
                raise error_for(answer.error_code, answer.error_message)
            response = None if mechanism.is_complete else self._respond(mechanism, bytes(answer.auth_bytes))
            if response is None:
                assert mechanism.is_complete, f"{mechanism.name} has nothing to say, and is not complete"
                return self._limit_ms(answer.session_lifetime_ms)

    async def _agree_on(self, name: str, exchange: Exchange, versions: ApiVersions) -> None:
        version = versions.newest(ApiKey.SASL_HANDSHAKE)
        if version == _RAW_TOKENS or not versions.serves(ApiKey.SASL_AUTHENTICATE):
            raise SaslAuthenticationFailed("The broker is older than Kafka 1.0, and its SASL is not spoken here")
        answer = await exchange(SaslHandshakeRequest(mechanism=name), version)
        if answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
            has = ", ".join(answer.mechanisms) or "none"
            raise UnsupportedSaslMechanism(f"The broker's listener does not have the mechanism {name}; it has {has}")
        if answer.error_code == ErrorCode.ILLEGAL_SASL_STATE:
            raise error_for(answer.error_code, "The broker's listener does not use SASL")
        if answer.error_code:
            raise error_for(answer.error_code)

    def _respond(self, mechanism: Mechanism, challenge: bytes | None) -> bytes | None:
        from ottla.security.sasl.mechanism import SaslError

        try:
            return mechanism.respond(challenge)
        except SaslError as problem:
            raise SaslAuthenticationFailed(f"The broker is not believed: {problem}") from problem

    def _limit_ms(self, session_lifetime_ms: int) -> float:
        if session_lifetime_ms <= 0:
            return NO_LIMIT
        share = _LEAST_SHARE + _RANDOM_SHARE * self._entropy.randrange(_STEPS) / _STEPS
        return session_lifetime_ms * share
