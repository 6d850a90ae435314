"""Passes what changes the cluster on to the active controller, and waits no longer than the client does.

A request that times out may still be carried out: the client looks again before it asks again. One whose time is up
when it arrives is not even begun.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from ottla.broker.context import Broker
from ottla.machines.decision import Decision
from ottla.runtime.request import Respond
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message

if TYPE_CHECKING:
    from ottla.machines.metadata.controller.controller import Controller

ReplyT = TypeVar("ReplyT", bound=Message)


def forward(
    broker: Broker,
    decide: "Callable[[Controller, int], Decision[ReplyT]]",
    respond: Respond,
    refused: Callable[[ErrorCode], Message],
    *,
    timeout_ms: int | None = None,
) -> None:
    """Responds with what the controller decided, or with what `refused` makes of the reason why it did not."""
    if timeout_ms is None:
        broker.controller.submit(decide, respond, lambda error: respond(refused(error)))
        return
    if timeout_ms <= 0:
        respond(refused(ErrorCode.REQUEST_TIMED_OUT))
        return
    once = _Once(respond)
    timer = broker.timers.after(timeout_ms / 1000, lambda: once(refused(ErrorCode.REQUEST_TIMED_OUT)))

    def decided(reply: ReplyT) -> None:
        timer.cancel()
        once(reply)

    def failed(error: ErrorCode) -> None:
        timer.cancel()
        once(refused(error))

    broker.controller.submit(decide, decided, failed)


class _Once:
    """Whatever comes first is the reply; the other is late."""

    __slots__ = ("_respond",)

    def __init__(self, respond: Respond) -> None:
        self._respond: Respond | None = respond

    def __call__(self, reply: Message) -> None:
        respond, self._respond = self._respond, None
        if respond is not None:
            respond(reply)
