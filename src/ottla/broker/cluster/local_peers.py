"""The way to the brokers of a cluster whose only broker is this one: what it asks is answered here."""

from typing import TYPE_CHECKING, Final

from ottla.broker.services import bind
from ottla.runtime.channels import THIS_NODE, Failed, Then
from ottla.runtime.request import ClientConnection, Handler, RequestContext
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

_ITSELF: Final = ClientConnection(-1, "", THIS_NODE.host, THIS_NODE.principal)


class LocalPeers:
    """A `PeerChannel`. Requests are answered by the handlers that answer them over a connection."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._handlers: dict[tuple[int, int], Handler] = {}

    def ask(self, node_id: int, request: Message, version: int, then: Then, failed: Failed) -> None:
        if node_id != self._broker.identity.node_id:
            failed(ErrorCode.NETWORK_EXCEPTION)
            return
        key = request._schema.api_key, version
        handler = self._handlers.get(key)
        if handler is None:
            from ottla.broker.dispatch import find_handler  # which imports `Broker`

            handler = self._handlers[key] = bind(find_handler(*key), self._broker)
        handler(RequestContext(*key, 0, None, _ITSELF, 0.0), request, then)
