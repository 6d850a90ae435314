"""Work that continues whatever its callbacks raise: loops that ask again, and rows of callbacks that have nothing to do
with each other.

Theory of operation. An exception in work for a client's request is that request's (`attribution`). One in the node's
own work is nobody's: where it came out in the middle of a loop it would end the loop, and a follower would never fetch
again, or a controller fence nobody. So such callbacks are called `apart`: what one of them raises reaches the loop in a
turn of its own, where it is counted (`ottla_faults_total`) and logged (`fault_log`), and the caller continues. A
simulation ends there, as it does at any exception that nobody has expected.

A loop that asks another node, a controller or a machine asks `surely`: it hears one outcome of each question, so that
it can ask the next, whatever taking a reply does.
"""

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from ottla.base.ports import Timer, Timers
from ottla.runtime.attribution import WORK
from ottla.runtime.channels import THIS_NODE, ControllerChannel, Failed, Then, newest_version
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message

_log = logging.getLogger(__name__)

Ask = Callable[[Then, Failed], object]
"""Asks, and calls one of the two with the outcome, now or later."""


def apart(timers: Timers | None, callback: Callable[..., object], *arguments: Any) -> bool:
    """Calls back for no request; False if that raised. Without timers, where nothing is repeated, it raises here."""
    before, WORK.request = WORK.request, None
    try:
        callback(*arguments)
    except Exception as problem:
        if timers is None:
            raise
        say_what_about(problem)
        if timers.is_closed:
            _log.error("a fault while the node stops", exc_info=problem)  # No turn of its own will come.
        else:
            later(timers, 0, partial(_raise, problem))
        return False
    finally:
        WORK.request = before
    return True


def say_what_about(problem: Exception) -> None:
    """Adds to an exception what the node was applying, if that is known."""
    if WORK.about is not None:
        problem.add_note(f"while handling {WORK.about}")


def later(timers: Timers, delay_s: float, callback: Callable[[], None]) -> Timer:
    """A timer of the node's own, although it may be a client's request that is being worked for."""
    before, WORK.request = WORK.request, None
    try:
        return timers.after(delay_s, callback)
    finally:
        WORK.request = before


def ask_surely(timers: Timers, ask: Ask, then: Then, failed: Failed) -> None:
    """Asks on the node's own behalf. `then` hears the reply, or `failed` why there is none.

    A question that cannot be asked, and a reply that `then` raises over, are as none: `failed` hears
    UNKNOWN_SERVER_ERROR. So `failed` may come after a `then` that was broken off, and must not mind.
    """
    question = _Question(timers, then, failed)
    if not apart(timers, ask, question.on_reply, question.on_failed):
        question.on_failed(ErrorCode.UNKNOWN_SERVER_ERROR)


def ask_as_node(timers: Timers, channel: ControllerChannel, request: Message, then: Then, failed: Failed) -> None:
    """Asks the controller surely, on the node's own behalf, in the newest version that this node knows."""
    version = newest_version(request)
    ask_surely(timers, lambda *heard: channel.ask(request, version, THIS_NODE, *heard), then, failed)


class _Question:
    """Until its outcome. What comes after that is not heard."""

    __slots__ = ("_failed", "_is_over", "_then", "_timers")

    def __init__(self, timers: Timers, then: Then, failed: Failed) -> None:
        self._timers = timers
        self._then = then
        self._failed = failed
        self._is_over = False

    def on_reply(self, reply: Any) -> None:
        if not self._is_over:
            self._is_over = True
            if not apart(self._timers, self._then, reply):
                apart(self._timers, self._failed, ErrorCode.UNKNOWN_SERVER_ERROR)

    def on_failed(self, error: ErrorCode) -> None:
        if not self._is_over:
            self._is_over = True
            apart(self._timers, self._failed, error)


def _raise(problem: Exception) -> None:
    raise problem
