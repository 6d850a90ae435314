"""A request that waits before it is handled, and the requests of its connection behind it: they must not overtake."""

from collections.abc import Callable

from ottla.broker.data.batch_checks import keep_records
from ottla.runtime.attribution import attributed
from ottla.runtime.request import RequestContext
from ottla.wire.message import Message
from ottla.wire.messages import ProduceRequest


class HeldRequest:
    """Its connection is paused until `release`, which calls `proceed`, also if the client has gone meanwhile."""

    def __init__(self, context: RequestContext, message: Message, proceed: Callable[[], None]) -> None:
        if isinstance(message, ProduceRequest):
            keep_records(message)
        self._client = context.connection
        self._proceed = attributed(proceed)
        self._client.pause()

    def release(self) -> None:
        self._client.resume_with(self._proceed)
