"""The function around a node's own that handles requests: it lets most of them through.

A request meets the faults that are about it in the order in which they were asked for, up to the first that ends it.
A fault that has struck as often as it was to is kept for its count alone.

While the node is paused it takes no request up, and says nothing, as a process that the system has stopped; what waits
continues, in order, when it is resumed.
"""

from collections.abc import Callable
from functools import partial

from ottla.base.ports import Timers
from ottla.broker.broker import Broker
from ottla.node.faults.fault_kinds import RequestFault
from ottla.node.faults.held_requests import HeldRequest
from ottla.node.faults.parameters import WrongCommand
from ottla.runtime.request import Handler, RequestContext, Respond
from ottla.wire.message import Message

_MOST_FAULTS = 1000


class RequestFaults:
    """`handle` is what the server calls. `faults` are those that were asked for, by number."""

    def __init__(self, inner: Handler, broker: Broker, timers: Timers) -> None:
        self.broker = broker
        self.timers = timers
        self.faults: dict[int, RequestFault] = {}
        self.is_paused = False
        self._inner = inner
        self._count = 0
        self._muted_until_s: dict[int, float] = {}
        self._held: list[HeldRequest] = []
        self._unsaid: list[Callable[[], None]] = []

    def add(self, fault: RequestFault) -> None:
        if len(self.faults) >= _MOST_FAULTS:
            raise WrongCommand(f"{_MOST_FAULTS} faults have been asked for; clear_faults makes room")
        self._count += 1
        fault.number = self._count
        self.faults[fault.number] = fault

    def clear(self) -> None:
        """Forgets all faults. Requests that wait already still wait their time."""
        self.faults.clear()
        self._muted_until_s.clear()
        self.resume()

    def handle(self, context: RequestContext, message: Message, respond: Respond) -> None:
        proceed = partial(self.handle, context, message, respond)
        if self.is_paused:
            self._held.append(HeldRequest(context, message, proceed))
        elif (muted_s := self._muted_s(context.connection.connection_id)) > 0:
            self.timers.after(muted_s, HeldRequest(context, message, proceed).release)
        else:
            handler = self._inner
            for fault in reversed(self._strike(context, message)):
                handler = partial(fault.act, self, handler)
            handler(context, message, partial(self._say, respond))

    def _strike(self, context: RequestContext, message: Message) -> list[RequestFault]:
        """The faults that the request meets, each counted."""
        met = []
        for fault in self.faults.values():
            if fault.is_about(self, context, message):
                fault.strike()
                met.append(fault)
                if fault.ends:
                    break
        return met

    # Throttling

    def mute(self, connection_id: int, for_ms: int) -> None:
        self._muted_until_s[connection_id] = self.timers.now_s() + for_ms / 1000

    def _muted_s(self, connection_id: int) -> float:
        until_s = self._muted_until_s.get(connection_id)
        if until_s is None:
            return 0
        left_s = until_s - self.timers.now_s()
        if left_s <= 0:
            del self._muted_until_s[connection_id]
        return left_s

    # Pausing

    def _say(self, respond: Respond, reply: Message | None) -> None:
        if self.is_paused:
            self._unsaid.append(partial(respond, reply))
        else:
            respond(reply)

    def pause(self) -> None:
        self.is_paused = True

    def resume(self) -> None:
        self.is_paused = False
        unsaid, self._unsaid = self._unsaid, []
        for say in unsaid:
            say()
        held, self._held = self._held, []
        for request in held:
            request.release()
