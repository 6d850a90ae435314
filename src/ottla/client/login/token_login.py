"""A login by tokens that expire (OAUTHBEARER): one token for all connections, renewed in time.

Theory of operation. The first connection has the token fetched; others wait for the same. Late in its life
(`sasl.login.refresh.*`) it is fetched anew in the background, while the old one is still shown. A provider that cannot
be reached is asked again with growing pauses, for `sasl.login.retry.backoff.max.ms` at a time. Connections that are
open are re-authenticated on their own (KIP-368), with the token there is then.
"""

from collections.abc import Mapping
from typing import Final, Protocol

from ottla.base.errors import OttlaError
from ottla.base.pacing import Backoff
from ottla.base.ports import Timer
from ottla.client.errors import ClientClosed, Disconnected, KafkaError, SaslAuthenticationFailed
from ottla.client.login.tokens import NoToken, Token, read_token
from ottla.client.promise import Promise, spawn
from ottla.client.world import ClientWorld
from ottla.config.parse import Values
from ottla.security.sasl.oauthbearer_client import OAuthBearerClient
from ottla.wire.exchange.login import ClientMechanism

_MS: Final = 1000
_STEPS: Final = 1000
_AFTER_FAILURE_S: Final = 10.0
"""As Kafka's clients pause when a renewal has failed for good."""


class Refused(OttlaError):
    """The provider will not give a token, however often it is asked."""


class TokenSource(Protocol):
    def fetch(self, now_ms: int) -> Promise[str]:
        """Rejected with `Refused`, or with an `OSError` if trying again may help."""
        ...


class TokenLogin:
    def __init__(
        self, world: ClientWorld, settings: Values, source: TokenSource, extensions: Mapping[str, str]
    ) -> None:
        self._world = world
        self._source = source
        self._extensions = extensions
        self._subject_claim = settings.text("sasl.oauthbearer.sub.claim.name")
        self._backoff = Backoff(
            settings.integer("sasl.login.retry.backoff.ms"), settings.integer("sasl.login.retry.backoff.max.ms")
        )
        self._window = settings.number("sasl.login.refresh.window.factor")
        self._jitter = settings.number("sasl.login.refresh.window.jitter")
        self._least_period_s = settings.integer("sasl.login.refresh.min.period.seconds")
        self._buffer_s = settings.integer("sasl.login.refresh.buffer.seconds")
        self._token: Token | None = None
        self._renewal_ms = 0.0
        self._fetching: Promise[Token] | None = None
        self._timer: Timer | None = None
        self._is_closed = False

    def mechanism(self, host: str) -> Promise[ClientMechanism]:
        return spawn(self._mechanism())

    async def _mechanism(self) -> ClientMechanism:
        return OAuthBearerClient((await self._fresh_token()).text, self._extensions)

    async def _fresh_token(self) -> Token:
        """Not one that is due to be renewed, if there is another: it might end on its way to the broker."""
        token, now_ms = self._token, self._world.clock.now_ms()
        if token is not None and now_ms < self._renewal_ms:
            return token
        try:
            return await self._fetch()
        except KafkaError:
            if token is None or token.expires_ms <= self._world.clock.now_ms():
                raise
            return token

    def close(self) -> None:
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()

    def _fetch(self) -> Promise[Token]:
        """One at a time."""
        if self._fetching is None or self._fetching.is_done:
            self._fetching = spawn(self._fetch_with_retries())
        return self._fetching

    async def _fetch_with_retries(self) -> Token:
        failures = 0
        deadline_s = self._world.now_s() + self._backoff.most_ms / _MS
        while not self._is_closed:
            try:
                now_ms = self._world.clock.now_ms()
                token = read_token(await self._source.fetch(now_ms), now_ms, self._subject_claim)
            except (Refused, NoToken) as problem:
                raise SaslAuthenticationFailed(f"There is no token to show: {problem}") from problem
            except OSError as problem:
                pause_ms = self._backoff.after(failures, self._world.entropy)
                failures += 1
                if self._world.now_s() + pause_ms / _MS > deadline_s:
                    raise Disconnected(f"the token provider cannot be asked: {problem}") from problem
                await self._world.sleep(pause_ms)
                continue
            if token.expires_ms <= now_ms:
                raise SaslAuthenticationFailed("There is no token to show: the one that came has expired")
            delay_s = self._time_to_renewal_s(token, now_ms)
            self._token, self._renewal_ms = token, now_ms + delay_s * _MS
            self._renew_in(delay_s)
            return token
        raise ClientClosed("the client was closed")

    def _time_to_renewal_s(self, token: Token, now_ms: int) -> float:
        """At the window's share of the token's life, but not too soon, and not so late that it may end meanwhile."""
        share = self._window + self._jitter * self._world.entropy.randrange(_STEPS) / _STEPS
        at_ms = token.begins_ms + (token.expires_ms - token.begins_ms) * share
        latest_ms = token.expires_ms - self._buffer_s * _MS
        earliest_ms = now_ms + self._least_period_s * _MS
        if earliest_ms > latest_ms:
            # A short life has room for neither: Kafka's clients then go by the window alone, and so do these.
            return max(at_ms - now_ms, 0.0) / _MS
        return (max(min(at_ms, latest_ms), earliest_ms) - now_ms) / _MS

    def _renew_in(self, delay_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if not self._is_closed:
            self._timer = self._world.timers.after(delay_s, self._renew)

    def _renew(self) -> None:
        self._world.start(self._try_to_renew())

    async def _try_to_renew(self) -> None:
        try:
            await self._fetch()
        except KafkaError:
            # The old token is shown for as long as it lasts; a connection that comes later gets the reason.
            self._renew_in(_AFTER_FAILURE_S)
