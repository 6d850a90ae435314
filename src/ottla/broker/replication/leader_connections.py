"""How a follower reaches leaders: each fetcher over a connection of its own, as its requests wait there for records.

Addresses are those that the metadata have for the listener that brokers talk to each other on.
"""

from typing import Protocol

from ottla.runtime.channels import Failed, Then
from ottla.runtime.peers.node_connections import ConnectionName, NodeConnections
from ottla.runtime.peers.remote_peers import FindBroker
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message


class LeaderConnections(Protocol):
    def ask(
        self, leader_id: int, fetcher: int, request: Message, version: int, then: Then, failed: Failed, timeout_ms: int
    ) -> None:
        """As `PeerChannel.ask`. What different fetchers ask does not wait for each other."""

    def drop(self, leader_id: int, fetcher: int) -> None:
        """The fetcher has nothing to ask any more."""


class RemoteLeaders:
    """`LeaderConnections` over a node's connections."""

    def __init__(self, connections: NodeConnections, find_broker: FindBroker) -> None:
        self._connections = connections
        self._find_broker = find_broker

    def ask(
        self, leader_id: int, fetcher: int, request: Message, version: int, then: Then, failed: Failed, timeout_ms: int
    ) -> None:
        address = self._find_broker(leader_id)
        if address is None:
            failed(ErrorCode.NETWORK_EXCEPTION)
            return
        self._connections.ask(
            _name(leader_id, fetcher), address, request, version, then=then, failed=failed, timeout_ms=timeout_ms
        )

    def drop(self, leader_id: int, fetcher: int) -> None:
        self._connections.drop(_name(leader_id, fetcher))


class NoLeaders:
    """Of a cluster whose only broker is this one."""

    def ask(
        self, leader_id: int, fetcher: int, request: Message, version: int, then: Then, failed: Failed, timeout_ms: int
    ) -> None:
        failed(ErrorCode.NETWORK_EXCEPTION)

    def drop(self, leader_id: int, fetcher: int) -> None:
        """There is nothing to drop."""


def _name(leader_id: int, fetcher: int) -> ConnectionName:
    return ConnectionName(leader_id, f"fetcher-{fetcher}")
