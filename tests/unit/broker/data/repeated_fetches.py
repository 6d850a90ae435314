"""Fetches as a connection offers them that has seen the like before."""

from functools import partial

from brokers import Reply, TestNode

from ottla.broker.data.fetch import handle_fetch
from ottla.broker.data.ordinary_fetch import find_ordinary, most_bytes
from ottla.broker.data.repeated_fetch import learn
from ottla.runtime.request import RequestContext
from ottla.wire.codec import decode, encode
from ottla.wire.message import Message
from ottla.wire.messages import FetchRequest

FETCH = 1
ASK = TestNode.ask


def again(node: TestNode, request: FetchRequest, version: int = 11, client_id: str | None = None) -> Reply | None:
    """The reply to a fetch that is not decoded; None if it is not known."""
    return node.ask_again(request, version, client_id)


def ask_undecoded(node: TestNode, request: Message, version: int, client_id: str | None = None) -> Reply:
    """As `TestNode.ask`, of a client that has sent the like before, if there could be the like of it."""
    if isinstance(request, FetchRequest):
        reply = again(node, request, version, client_id)
        if reply is None and teach(node, request, version, client_id):
            reply = again(node, request, version, client_id)
        if reply is not None:
            return reply
    return ASK(node, request, version, client_id)


def teach(node: TestNode, request: FetchRequest, version: int, client_id: str | None) -> bool:
    """As if such a fetch had been answered; False if it is none that could be known."""
    broker, asked = node.broker, decode(FetchRequest, encode(request, version), version)
    partition = find_ordinary(broker.partitions, version, asked)
    if partition is None:
        return False
    context = RequestContext(FETCH, version, 7, client_id, node.client, 0.0)
    go_on = partial(handle_fetch, broker.partitions, broker.fetch_sessions, broker.node_settings, broker.client_quotas)
    learn(broker.partitions, context, asked, partition, most_bytes(asked, broker.node_settings), go_on)
    return True
