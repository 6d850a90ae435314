"""The way to the active controller: in this process if this node leads the metadata quorum, else over a connection.

Theory of operation. Who leads is what this node's replica of the metadata log knows at that moment (`find`). A request
for which nobody leads waits, and is tried again every `retry_ms`; so is one that came to a controller which leads no
more, and one whose connection broke: it may have been carried out, which the requests of nodes allow for. Its time ends
it: `failed` hears REQUEST_TIMED_OUT. Requests that wait are tried in the order in which they were asked.

A controller whose machine is gone answers nothing, and nobody says so. So a node's own requests that are under way are
asked anew, of the next controller, as soon as it is known: a broker whose heartbeats waited for the last one would be
fenced meanwhile.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple

from ottla.base.errors import ProtocolError
from ottla.base.ports import Timer
from ottla.runtime.apart import apart, later
from ottla.runtime.attribution import Attributed, current, work_for
from ottla.runtime.channels import THIS_NODE, Caller, ControllerChannel, Failed, Then
from ottla.runtime.peers.node_connections import ConnectionName, NodeAddress, NodeConnections
from ottla.runtime.peers.remote_peers import enveloped, opened
from ottla.runtime.world import World
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message

CONTROLLER: Final = "to-controller"
_ENVELOPE_VERSION: Final = 0
_LOOK_S: Final = 0.5
_TRY_AGAIN: Final = (ErrorCode.NOT_CONTROLLER, ErrorCode.NETWORK_EXCEPTION)


class ActiveController(NamedTuple):
    node_id: int
    address: NodeAddress


class _Question:
    __slots__ = ("attempt", "caller", "due_s", "failed", "is_over", "request", "then", "version", "work")

    def __init__(
        self, request: Message, version: int, caller: Caller, due_s: float, then: Then, failed: Failed
    ) -> None:
        self.request = request
        self.version = version
        self.caller = caller
        self.due_s = due_s
        self.then = then
        self.failed = failed
        self.attempt = 0
        self.is_over = False
        self.work: Attributed | None = None


class RemoteController:
    """A `ControllerChannel`. `own` is the controller in this process, if there is one, active or not."""

    def __init__(
        self,
        world: World,
        connections: NodeConnections,
        *,
        node_id: int,
        own: ControllerChannel | None,
        find: Callable[[], ActiveController | None],
        retry_ms: int = 50,
    ) -> None:
        self._timers = world.timers
        self._connections = connections
        self._node_id = node_id
        self._own = own
        self._find = find
        self._retry_s = retry_ms / 1000
        self._waiting: dict[_Question, None] = {}
        self._timer: Timer | None = None
        self._under_way: dict[_Question, int] = {}
        """A node's own requests that another node was asked, and which."""
        self._looks = False

    def ask(self, request: Message, version: int, caller: Caller, then: Then, failed: Failed) -> None:
        timeout_ms = getattr(request, "timeout_ms", None)
        if timeout_ms is None:
            timeout_ms = self._connections.settings.request_timeout_ms
        due_s = self._timers.now_s() + max(timeout_ms, 0) / 1000
        question = _Question(request, version, caller, due_s, then, failed)
        question.work = current()
        if self._waiting:
            self._wait(question)
        else:
            work_for(None, self._try, question)

    def _try(self, question: _Question) -> None:
        question.attempt += 1
        attempt = question.attempt
        active = self._find()
        if active is None:
            self._wait(question)
            return

        def then(reply: Any) -> None:
            if attempt == question.attempt:
                self._on_reply(question, reply)

        def failed(error: ErrorCode) -> None:
            if attempt == question.attempt:
                self._on_failed(question, error)

        # Without a controller in this process it is another node, with the same id: it will say so.
        if active.node_id == self._node_id and self._own is not None:
            ask = partial(self._own.ask, question.request, question.version, question.caller, then, failed)
            if not apart(self._timers, work_for, question.work, ask):
                failed(ErrorCode.UNKNOWN_SERVER_ERROR)
            return
        is_own = question.caller == THIS_NODE
        if is_own:
            self._note(question, active.node_id)
        self._connections.ask(
            ConnectionName(active.node_id, CONTROLLER),
            active.address,
            question.request if is_own else enveloped(question.request, question.version, question.caller),
            question.version if is_own else _ENVELOPE_VERSION,
            then=then if is_own else lambda reply: self._on_envelope(question, reply, then, failed),
            failed=failed,
            timeout_ms=max((question.due_s - self._timers.now_s()) * 1000, 1),
        )

    def _on_envelope(self, question: _Question, response: Any, then: Then, failed: Failed) -> None:
        if response.error_code:
            failed(ErrorCode(response.error_code))
            return
        try:
            reply = opened(question.request, question.version, response)
        except ProtocolError:
            failed(ErrorCode.UNKNOWN_SERVER_ERROR)
            return
        then(reply)

    def _on_reply(self, question: _Question, reply: Any) -> None:
        self._under_way.pop(question, None)
        if getattr(reply, "error_code", 0) == ErrorCode.NOT_CONTROLLER:
            self._on_failed(question, ErrorCode.NOT_CONTROLLER)
        elif not question.is_over:
            question.is_over = True
            apart(self._timers, work_for, question.work, question.then, reply)

    def _on_failed(self, question: _Question, error: ErrorCode) -> None:
        self._under_way.pop(question, None)
        if error in _TRY_AGAIN and self._timers.now_s() < question.due_s:
            self._wait(question)
        elif not question.is_over:
            question.is_over = True
            apart(self._timers, work_for, question.work, question.failed, _reason(error))

    # Controllers that are gone

    def _note(self, question: _Question, node_id: int) -> None:
        self._under_way[question] = node_id
        if not self._looks:
            self._looks = True
            later(self._timers, _LOOK_S, self._look)

    def _look(self) -> None:
        """Whether those that were asked still lead, as far as this node knows."""
        apart(self._timers, self._ask_anew)
        self._looks = bool(self._under_way)
        if self._looks:
            later(self._timers, _LOOK_S, self._look)

    def _ask_anew(self) -> None:
        active = self._find()
        moved = [one for one, node_id in self._under_way.items() if active is not None and node_id != active.node_id]
        for question in moved:
            del self._under_way[question]
            self._try_or_wait(question)

    # Waiting for a controller

    def _wait(self, question: _Question) -> None:
        self._waiting[question] = None
        if self._timer is None:
            first_s = min(question.due_s for question in self._waiting) - self._timers.now_s()
            self._timer = later(self._timers, max(min(first_s, self._retry_s), 0.001), self._try_again)

    def _try_again(self) -> None:
        self._timer = None
        now_s = self._timers.now_s()
        waiting, self._waiting = self._waiting, {}
        for question in waiting:
            if question.due_s <= now_s:
                question.is_over = True
                apart(self._timers, work_for, question.work, question.failed, ErrorCode.REQUEST_TIMED_OUT)
            else:
                self._try_or_wait(question)

    def _try_or_wait(self, question: _Question) -> None:
        """One that cannot be asked keeps no other from it."""
        if not apart(self._timers, self._try, question):
            self._wait(question)


def _reason(error: ErrorCode) -> ErrorCode:
    """What is still looking for its controller when its time is over has timed out."""
    return ErrorCode.REQUEST_TIMED_OUT if error in _TRY_AGAIN else error
