"""What can be done to requests: an error, a dropped connection, a delay, a time that the client is throttled for.

A fault has a number, says which requests it is about, and counts them. `act` is called in place of the node's handler,
and is given it. A fault that `ends` a request comes alone; others leave room for more.
"""

from typing import ClassVar, Final, Literal, NamedTuple, Protocol

from ottla.base.ports import Timers
from ottla.broker.broker import Broker
from ottla.node.faults.error_replies import FaultOnRequest, fail_after, fail_before
from ottla.node.faults.fetch_errors import fail_fetch, fetches
from ottla.node.faults.held_requests import HeldRequest
from ottla.node.faults.named_topics import names
from ottla.runtime.attribution import attributed
from ottla.runtime.request import Handler, RequestContext, Respond
from ottla.wire.apis import ApiKey, api
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message

Effect = Literal["before", "after"]
"""Whether a fault strikes before a request has had its effect, or afterwards."""

EVERY_API: Final = -1


class Victim(Protocol):
    """The node that requests are failed on, as far as faults need to know it."""

    @property
    def broker(self) -> Broker: ...
    @property
    def timers(self) -> Timers: ...
    def mute(self, connection_id: int, for_ms: int) -> None: ...


class WhichRequests(NamedTuple):
    """Of an API or of every one, that name a topic, of one client; the next so many of them, or (None) all."""

    api_key: int
    times: int | None = 1
    topic: str | None = None
    client_id: str | None = None


class RequestFault:
    """What happens to some requests."""

    name: ClassVar[str]
    ends: ClassVar[bool]

    def __init__(self, which: WhichRequests) -> None:
        self.number = 0
        self.left = which.times
        self.seen = 0
        self.topic = which.topic
        self._which = which

    def is_about(self, victim: Victim, context: RequestContext, message: Message) -> bool:
        api_key, _, topic, client_id = self._which
        if self.left == 0 or api_key not in (EVERY_API, context.api_key):
            return False
        if client_id is not None and client_id != context.client_id:
            return False
        if topic is None:
            return True
        name_of = victim.broker.metadata.topic_name
        if context.api_key == ApiKey.FETCH:
            return fetches(victim.broker.fetch_sessions, message, topic, name_of)
        return names(message, context.api_version, topic, name_of)

    def strike(self) -> None:
        """Counts one request."""
        self.seen += 1
        if self.left is not None:
            self.left -= 1

    def act(
        self, victim: Victim, handler: Handler, context: RequestContext, message: Message, respond: Respond
    ) -> None:
        raise NotImplementedError

    def described(self) -> dict[str, object]:
        return {
            "id": self.number,
            "fault": self.name,
            "api": "*" if self._which.api_key == EVERY_API else api(self._which.api_key).name,
            "topic": self.topic,
            "client_id": self._which.client_id,
            "left": self.left,
            "seen": self.seen,
        }


class FailedRequests(RequestFault):
    name = "fail_next"
    ends = True

    def __init__(self, which: WhichRequests, error: ErrorCode, effect: Effect) -> None:
        super().__init__(which)
        self._error = error
        self._effect = effect

    def act(
        self, victim: Victim, handler: Handler, context: RequestContext, message: Message, respond: Respond
    ) -> None:
        name_of = victim.broker.metadata.topic_name
        if context.api_key == ApiKey.FETCH:
            sessions = victim.broker.fetch_sessions
            fail_fetch(sessions, handler, context, message, respond, self._error, self.topic, name_of)
            return
        fail = fail_before if self._effect == "before" else fail_after
        fail(handler, context, message, respond, self._error, self.topic, name_of)

    def described(self) -> dict[str, object]:
        return {**super().described(), "error": self._error.name, "effect": self._effect}


class DroppedConnections(RequestFault):
    name = "drop_connection"
    ends = True

    def __init__(self, which: WhichRequests, effect: Effect) -> None:
        super().__init__(which)
        self._effect = effect

    def act(
        self, victim: Victim, handler: Handler, context: RequestContext, message: Message, respond: Respond
    ) -> None:
        def drop(_reply: Message | None = None) -> None:
            context.connection.hang_up(FaultOnRequest("a connection that was to be dropped"))
            respond(None)

        if self._effect == "before":
            drop()
        else:
            handler(context, message, drop)

    def described(self) -> dict[str, object]:
        return {**super().described(), "effect": self._effect}


class DelayedRequests(RequestFault):
    """Before the effect, the request waits; afterwards, its reply."""

    name = "delay"
    ends = False

    def __init__(self, which: WhichRequests, delay_ms: int, effect: Effect) -> None:
        super().__init__(which)
        self._delay_ms = delay_ms
        self._effect = effect

    def act(
        self, victim: Victim, handler: Handler, context: RequestContext, message: Message, respond: Respond
    ) -> None:
        delay_s = self._delay_ms / 1000
        if self._effect == "before":
            held = HeldRequest(context, message, lambda: handler(context, message, respond))
            victim.timers.after(delay_s, held.release)
        else:
            handler(context, message, lambda reply: _respond_after(victim.timers, delay_s, respond, reply))

    def described(self) -> dict[str, object]:
        return {**super().described(), "ms": self._delay_ms, "effect": self._effect}


def _respond_after(timers: Timers, delay_s: float, respond: Respond, reply: Message | None) -> None:
    timers.after(delay_s, attributed(lambda: respond(reply)))


class ThrottledRequests(RequestFault):
    """The reply leaves at once and says for how long; as long, the connection's next requests wait (KIP-219)."""

    name = "throttle"
    ends = False

    def __init__(self, which: WhichRequests, throttle_ms: int) -> None:
        super().__init__(which)
        self._throttle_ms = throttle_ms

    def act(
        self, victim: Victim, handler: Handler, context: RequestContext, message: Message, respond: Respond
    ) -> None:
        def on_reply(reply: Message | None) -> None:
            if reply is not None and hasattr(reply, "throttle_time_ms"):
                reply.throttle_time_ms = max(reply.throttle_time_ms, self._throttle_ms)
            victim.mute(context.connection.connection_id, self._throttle_ms)
            respond(reply)

        handler(context, message, on_reply)

    def described(self) -> dict[str, object]:
        return {**super().described(), "ms": self._throttle_ms}
