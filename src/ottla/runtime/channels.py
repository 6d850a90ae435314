"""Asking another part of the cluster: what is asked is a protocol message with a version, on somebody's behalf.

Theory of operation. A broker asks the active controller to change the cluster, the coordinator of a transaction whether
a write belongs to it, and the leader of a partition to write a marker. Each of them may be in this process or on
another node; the asking code does not know. It hands a request to a channel, and hears the reply (`then`), or why there
is none (`failed`): exactly one of the two, once, on the loop's thread, maybe before `ask` returns. A request may have
been carried out although `failed` was called: the connection may have broken after it.

A channel inside a process passes the message itself on. A channel over a connection sends its bytes; it must

- find the node: the leader of the metadata quorum for the controller, the address of the inter-broker listener that the
  metadata has for a peer. What is asked meanwhile waits;
- send a request of the node's own as it is, in the highest version that the other node serves, `version` at most; and
  to a controller a client's request inside an Envelope (KIP-590), in the client's version, with its principal and
  address, which the controller authorizes. `failed` hears UNSUPPORTED_VERSION if the other node serves no such version;
- take NOT_CONTROLLER, in a reply or on its envelope, and a lost connection for a controller that has moved: find it and
  send again. A peer is asked once, as it may not be the right one any more: a lost connection is `failed` with
  NETWORK_EXCEPTION, and the asking code looks into the metadata again;
- give up when the request's own `timeout_ms` has passed, or `request.timeout.ms` where a request has none, and call
  `failed` with REQUEST_TIMED_OUT. A reply that comes after that is dropped;
- send one node's requests in the order in which they were asked, and forget them all when the node stops.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from ottla.runtime.request import ClientConnection
from ottla.security.api_access import ANONYMOUS
from ottla.wire.apis import api
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message

Then: TypeAlias = Callable[[Any], None]
"""Hears the reply, of the type that belongs to the request."""

Failed: TypeAlias = Callable[[ErrorCode], None]
"""Hears why there is no reply."""


class Caller(NamedTuple):
    """On whose behalf something is asked: a client's, or the asking node's own."""

    principal: str
    host: str
    client_id: str = ""
    is_token_authenticated: bool = False
    """By a delegation token (KIP-48), with which no other can be had."""

    @classmethod
    def of(cls, client: ClientConnection, client_id: str | None = None) -> "Caller":
        return cls(client.principal, client.client_host, client_id or "", client.is_token_authenticated)


THIS_NODE: Final = Caller(ANONYMOUS, "")
"""A node on its own behalf. Over a connection the principal is the one that the connection was authenticated for."""


class ControllerChannel(Protocol):
    """The way to the active controller, wherever it is."""

    def ask(self, request: Message, version: int, caller: Caller, then: Then, failed: Failed) -> None:
        """See the module. `failed` hears NOT_CONTROLLER where no controller can be asked at this moment."""


class PeerChannel(Protocol):
    """The way to the brokers of the cluster, this one among them. Nodes ask each other on their own behalf."""

    def ask(self, node_id: int, request: Message, version: int, then: Then, failed: Failed) -> None:
        """See the module."""


def newest_version(request: Message) -> int:
    """The newest version of a request's API that this node knows."""
    return api(request._schema.api_key).stable_versions[-1]
