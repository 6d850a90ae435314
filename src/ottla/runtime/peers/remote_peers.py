"""The way to the brokers of the cluster: this one answers in its process, the others over a connection each."""

from __future__ import annotations  # messages are made when they are first named

from collections.abc import Callable
from struct import Struct
from typing import Any, Final

from ottla.base.addresses import to_bytes
from ottla.runtime.channels import Caller, Failed, PeerChannel, Then
from ottla.runtime.peers.node_connections import ConnectionName, NodeAddress, NodeConnections
from ottla.wire import messages
from ottla.wire.codec import encode
from ottla.wire.errors import ErrorCode
from ottla.wire.frame import decode_response, encode_request, response_type
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
            ConnectionName(node_id, PEER),
            address,
            request,
            version,
            then=then,
            failed=failed,
            timeout_ms=getattr(request, "timeout_ms", None),
        )


# A client's request inside an Envelope, as a broker passes it on to the active controller (KIP-590).
#
# The controller answers for the client: it gets the client's principal, address and client id, and the request is in
# the client's version. What it answers is inside the envelope's response.

_PRINCIPAL_VERSION: Final = 0
_VERSION = Struct(">h")
_SIZE_BYTES: Final = 4
_NO_ADDRESS: Final = "0.0.0.0"


def enveloped(request: Message, version: int, caller: Caller) -> messages.EnvelopeRequest:
    return messages.EnvelopeRequest(
        request_data=encode_request(request, version, 0, caller.client_id)[_SIZE_BYTES:],
        request_principal=_principal(caller),
        client_host_address=to_bytes(caller.host or _NO_ADDRESS),
    )


def opened(request: Message, version: int, response: messages.EnvelopeResponse) -> Any:
    """The reply to the request that was inside. Raises `ProtocolError` for what is none."""
    _, reply = decode_response(response_type(request._schema.api_key), response.response_data or b"", version)
    return reply


def _principal(caller: Caller) -> bytes:
    type_, _, name = caller.principal.partition(":")
    data = messages.DefaultPrincipalData(type=type_, name=name, token_authenticated=caller.is_token_authenticated)
    return _VERSION.pack(_PRINCIPAL_VERSION) + encode(data, _PRINCIPAL_VERSION)
