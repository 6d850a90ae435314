"""What the controller machine decides: the reply is given out when the decision is committed, or its time is up.

A request that times out may still be carried out: its client looks again before it asks again. One whose time is up
when it arrives is not even begun.
"""

from collections.abc import Callable
from typing import Any

from ottla.controller.controller_server import ControllerRequest, ControllerServer
from ottla.machines.decision import Decision
from ottla.machines.metadata.controller.controller import Controller
from ottla.machines.metadata.controller.controller_context import Admit, without_limit
from ottla.runtime.channels import Failed, Then
from ottla.wire.errors import ErrorCode


def decide(
    server: ControllerServer,
    asked: ControllerRequest,
    then: Then,
    failed: Failed,
    admit: Admit = without_limit,
    tell: Callable[[Controller], None] = lambda _controller: None,
) -> None:
    """Decides by the table of `Controller.decide`. The requests that say how long they wait have a `timeout_ms`.

    `tell` tells the controller beforehand what it cannot know.
    """
    request, version = asked.request, asked.version
    timeout_ms: int | None = getattr(request, "timeout_ms", None)
    if timeout_ms is not None and timeout_ms <= 0:
        failed(ErrorCode.REQUEST_TIMED_OUT)
        return
    if timeout_ms is not None:
        waiting = _FirstOutcome(then, failed)
        waiting.begin(server, timeout_ms)
        then, failed = waiting.then, waiting.failed

    def decision(controller: Controller, now_ms: int) -> Decision[Any]:
        tell(controller)
        return controller.decide(request, version, now_ms, admit)

    server.log.submit(decision, then, failed)


class _FirstOutcome:
    """The answer or the timeout, whichever comes first; the other is late and dropped."""

    __slots__ = ("_failed", "_is_over", "_then", "_timer")

    def __init__(self, then: Then, failed: Failed) -> None:
        self._then = then
        self._failed = failed
        self._is_over = False
        self._timer: Any = None

    def begin(self, server: ControllerServer, timeout_ms: int) -> None:
        self._timer = server.timers.after(timeout_ms / 1000, lambda: self.failed(ErrorCode.REQUEST_TIMED_OUT))

    def then(self, reply: Any) -> None:
        if self._end():
            self._then(reply)

    def failed(self, error: ErrorCode) -> None:
        if self._end():
            self._failed(error)

    def _end(self) -> bool:
        was_over, self._is_over = self._is_over, True
        self._timer.cancel()
        return not was_over
