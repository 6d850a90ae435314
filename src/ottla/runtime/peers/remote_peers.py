"""The way to the brokers of the cluster: this one answers in its process, the others over a connection each."""

from collections.abc import Callable
from typing import Final

from ottla.runtime.channels import Failed, PeerChannel, Then
from ottla.runtime.peers.node_connection import NodeAddress
from ottla.runtime.peers.node_connections import Line, NodeConnections
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message

PEER: Final = "peer"

FindBroker = Callable[[int], NodeAddress | None]
"""Where the metadata says that a broker listens for others; None for one that it does not know."""


class RemotePeers:
    """A `PeerChannel`. `own` answers what this node asks of itself.

    A request's own `timeout_ms` counts, where it has one.
    """

    def __init__(self, node_id: int, own: PeerChannel, connections: NodeConnections, find_broker: FindBroker) -> None:
        self._node_id = node_id
        self._own = own
        self._connections = connections
        self._find_broker = find_broker

    def ask(self, node_id: int, request: Message, version: int, then: Then, failed: Failed) -> None:
        if node_id == self._node_id:
            self._own.ask(node_id, request, version, then, failed)
            return
        address = self._find_broker(node_id)
        if address is None:
            failed(ErrorCode.NETWORK_EXCEPTION)
            return
        self._connections.ask(
            Line(node_id, PEER),
            address,
            request,
            version,
            then=then,
            failed=failed,
            timeout_ms=getattr(request, "timeout_ms", None),
        )
