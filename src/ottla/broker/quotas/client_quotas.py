"""The limits of clients on this node: produced bytes, fetched bytes, and the time of its thread (KIP-13, KIP-124).

Each node counts by itself, as in Apache Kafka: a limit is one for each broker. It is a server's `Metering` while the
metadata has any limit for users or client ids; without one, nothing is counted.

- A produce request counts with all its bytes when it is answered.
- A fetch counts with the bytes of its reply. If its client is above the limit then, the records are not sent and not
  counted: the reply is empty, and says how long to wait. A consumer has fetched too early, and asks again.
- Every request counts with the time that the node's thread worked on it before it was answered or had to wait, as a
  percentage of one thread, and with the time of sending its reply. Requests of nodes to each other are exempt: their
  time is only reported. No single wait is longer than one window.
- What the controller counted (KIP-599) is in its reply, and the client is muted for it here.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from ottla.apis.table import APIS
from ottla.base.ports import Timer, Timers
from ottla.config.parse import Values
from ottla.machines.metadata.image.quotas_image import QuotasImage
from ottla.machines.quota.limits import FETCH, MUTATION, PRODUCE, REQUEST, Accounts, Limit, Quotas, find_limit
from ottla.machines.quota.rates import SampledRate, Windows
from ottla.runtime.request import ClientConnection, RequestContext
from ottla.runtime.session import Metering
from ottla.security.api_access import Quota
from ottla.wire.message import Message

_OF_CLIENTS: Final = (PRODUCE, FETCH, REQUEST, MUTATION)
_SWEEP_S: Final = 60.0
_MOST_REMEMBERED: Final = 10_000


class ClientLimits(NamedTuple):
    """What applies to one user and client id."""

    produce: Limit | None
    fetch: Limit | None
    request: Limit | None


class FetchCharge(NamedTuple):
    """How long a consumer has to wait, and whether its reply has to be empty."""

    throttle_ms: int
    is_refused: bool


FREE: Final = FetchCharge(0, False)


def windows_of(values: Values) -> Windows:
    return Windows(values.integer("quota.window.num"), values.integer("quota.window.size.seconds") * 1000)


class ClientQuotas:
    """See the module. `on_metering` is called with the metering whenever limits come or go: itself, or None without
    limits."""

    def __init__(self, timers: Timers, values: Values) -> None:
        windows = windows_of(values)
        self.produce = Accounts(windows)
        self.fetch = Accounts(windows)
        self.request = Accounts(windows, longest_throttle_ms=windows.size_ms)
        self.exempt = SampledRate(windows)
        self.on_metering: Callable[[Metering | None], None] = _nobody
        self._timers = timers
        self._quotas: Quotas = {}
        self._has_limits = False
        self._limits: dict[tuple[str, str], ClientLimits] = {}
        self._sweep: Timer | None = None

    # What the metadata says

    def apply(self, quotas: QuotasImage) -> None:
        """These are the limits from now on. What clients have used so far still counts."""
        self._quotas = quotas.by_entity
        self._limits.clear()
        self._has_limits = any(key in values for values in self._quotas.values() for key in _OF_CLIENTS)
        if self._has_limits and self._sweep is None:
            self._sweep = self._timers.every(_SWEEP_S, self._expire)
        elif not self._has_limits and self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        self.on_metering(self.metering)

    @property
    def metering(self) -> Metering | None:
        return self if self._has_limits else None

    def _expire(self) -> None:
        now_ms = self.now_ms()
        for accounts in (self.produce, self.fetch, self.request):
            accounts.expire(now_ms)

    def now_ms(self) -> int:
        return int(self._timers.now_s() * 1000)

    # What clients use

    def limits_of(self, context: RequestContext) -> ClientLimits | None:
        """None where there are no limits at all."""
        if not self._has_limits:
            return None
        return self._limits_of((context.connection.principal, context.client_id or ""))

    def _limits_of(self, client: tuple[str, str]) -> ClientLimits:
        """Of a principal with a client id."""
        limits = self._limits.get(client)
        if limits is None:
            if len(self._limits) >= _MOST_REMEMBERED:
                self._limits.clear()
            user = client[0].partition(":")[2]
            limits = self._limits[client] = ClientLimits(
                *(find_limit(self._quotas, key, user, client[1]) for key in (PRODUCE, FETCH, REQUEST))
            )
        return limits

    def charge(self, context: RequestContext, reply: Message | None) -> int:
        """See `Metering`."""
        replied_ms: int = getattr(reply, "throttle_time_ms", 0)
        limits = self.limits_of(context)
        if limits is None:
            return replied_ms
        now_ms = self.now_ms()
        row = APIS.get(context.api_key)
        quota = row.access.quota if row is not None else Quota.REQUEST
        if quota is Quota.EXEMPT:
            context.connection.charged_to = None
            self.exempt.record(_percentage(context.worked_s), now_ms)
            return replied_ms
        context.connection.charged_to = context.connection.principal, context.client_id or ""
        if quota is Quota.FETCH:
            return replied_ms
        bytes_ms = request_ms = 0
        if limits.produce is not None and quota is Quota.PRODUCE:
            bytes_ms = self.produce.charge(limits.produce, context.size, now_ms)
        if limits.request is not None and reply is not None:
            request_ms = self.request.charge(limits.request, _percentage(context.worked_s), now_ms)
        if bytes_ms > request_ms and limits.produce is not None:
            self.produce.note_throttle(limits.produce, bytes_ms, now_ms)
        elif request_ms and limits.request is not None:
            self.request.note_throttle(limits.request, request_ms, now_ms)
        elif replied_ms:
            self.request.waiting.add(replied_ms, now_ms)
        return max(bytes_ms, request_ms, replied_ms)

    def on_sent(self, client: ClientConnection, took_s: float) -> None:
        """See `Metering`. What replies of several requests took together counts for the last of them."""
        if client.charged_to is None:
            self.exempt.record(_percentage(took_s), self.now_ms())
        elif (limit := self._limits_of(client.charged_to).request) is not None:
            self.request.note(limit, _percentage(took_s), self.now_ms())

    # Fetches

    def counts_fetch(self, context: RequestContext) -> bool:
        """Whether the fetches of this client have to be counted."""
        limits = self.limits_of(context)
        return limits is not None and (limits.fetch is not None or limits.request is not None)

    def most_to_fetch(self, context: RequestContext, max_bytes: int) -> int:
        """How much of `max_bytes` a fetch may bring: a larger reply would never be within the limit."""
        limits = self.limits_of(context)
        if limits is None or limits.fetch is None:
            return max_bytes
        return min(max_bytes, int(self.fetch.most_at_once(limits.fetch)))

    def charge_fetch(self, context: RequestContext, size: int) -> FetchCharge:
        """A consumer's fetch is to be answered with so many bytes.

        A batch may be larger than what the limit allows in all windows. Apache Kafka never sends it; here it is sent to
        a client that has not fetched anything within the windows, which waits the longer afterwards.
        """
        limits = self.limits_of(context)
        if limits is None:
            return FREE
        bytes_ms = request_ms = 0
        now_ms = self.now_ms()
        is_rested = limits.fetch is not None and self.fetch.is_unused(limits.fetch, now_ms)
        if limits.request is not None:
            request_ms = self.request.charge(limits.request, _percentage(context.worked_s), now_ms)
        if limits.fetch is not None:
            bytes_ms = self.fetch.charge(limits.fetch, size, now_ms)
            if (bytes_ms and not is_rested) or request_ms:
                self.fetch.note(limits.fetch, -size, now_ms)
        if bytes_ms > request_ms and limits.fetch is not None:
            self.fetch.note_throttle(limits.fetch, bytes_ms, now_ms)
        elif request_ms and limits.request is not None:
            self.request.note_throttle(limits.request, request_ms, now_ms)
        return FetchCharge(max(bytes_ms, request_ms), bool(request_ms or (bytes_ms and not is_rested)))


def _percentage(worked_s: float) -> float:
    """Of one thread for a second."""
    return worked_s * 100


def _nobody(_metering: Metering | None) -> None:
    """There is no server yet."""
