"""A client that authenticated with a delegation token gets no other, by whatever way it comes (KIP-48)."""

from typing import Any

import pytest

from ottla.runtime.channels import Caller
from ottla.runtime.peers.remote_peers import enveloped
from ottla.runtime.request import ClientConnection
from ottla.wire import messages as m
from ottla.wire.errors import ErrorCode
from ottla.wire.frame import decode_response
from tests.golden.access.guarded_nodes import GuardedNode

BOB = "User:bob"
CREATE = m.CreateDelegationTokenRequest(max_lifetime_ms=-1)
WAYS = ("through a broker", "to the controller", "in an envelope")


@pytest.fixture
def node() -> GuardedNode:
    return GuardedNode(delegation_token_secret_key="of the cluster")


def error_for(node: GuardedNode, request: Any, version: int, way: str, *, has_token: bool) -> int:
    client = ClientConnection(1, "PLAINTEXT" if way == WAYS[0] else "CONTROLLER", "127.0.0.1", BOB)
    client.is_token_authenticated = has_token
    if way != WAYS[2]:
        return int(node.ask(request, version, to_controller=way == WAYS[1], client=client).error_code)
    reply = node.ask(enveloped(request, version, Caller.of(client)), 0, to_controller=True)
    response = {m.CreateDelegationTokenRequest: m.CreateDelegationTokenResponse}.get(
        type(request), m.RenewDelegationTokenResponse
    )
    return int(decode_response(response, reply.response_data, version)[1].error_code)


@pytest.mark.parametrize("way", WAYS)
def test_vulnerability_a_token_cannot_be_turned_into_another(node: GuardedNode, way: str) -> None:
    assert error_for(node, CREATE, 3, way, has_token=False) == ErrorCode.NONE
    refused = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert error_for(node, CREATE, 3, way, has_token=True) == refused
    token = node.ask(CREATE, 3, principal=BOB)
    renew = m.RenewDelegationTokenRequest(hmac=token.hmac, renew_period_ms=-1)
    assert error_for(node, renew, 2, way, has_token=True) == refused
    assert error_for(node, renew, 2, way, has_token=False) == ErrorCode.NONE
