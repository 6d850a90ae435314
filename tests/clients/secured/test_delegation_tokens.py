"""Delegation tokens (KIP-48) over the wire: created, described, used through SCRAM, renewed and ended."""

from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import pytest

from ottla.security.sasl.scram_client import ScramClient
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import (
    CreateDelegationTokenRequest,
    DescribeDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    MetadataRequest,
    RenewDelegationTokenRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)
from tests.clients.eventually import eventually
from tests.interop.sasl_node import PLAIN_USERS, SaslNode, a_sasl_node
from tests.interop.wire_connection import WireConnection


@pytest.fixture(scope="module")
def node() -> Iterator[SaslNode]:
    with a_sasl_node({"delegation.token.secret.key": "of the cluster"}) as running:
        yield running


def logged_in(node: SaslNode, user: str) -> WireConnection:
    line = WireConnection(node.bootstrap)
    line.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    reply = line.ask(SaslAuthenticateRequest(auth_bytes=f"\0{user}\0{PLAIN_USERS[user]}".encode()), 2)
    assert reply.error_code == 0
    return line


def by_token(node: SaslNode, token: Any, hmac: bytes | None = None) -> tuple[WireConnection, Any]:
    """A connection that authenticates with a token, and how that ended."""
    line = WireConnection(node.bootstrap)
    password = b64encode(bytes(token.hmac) if hmac is None else hmac).decode()
    mechanism = ScramClient("SCRAM-SHA-256", token.token_id, password, "a-nonce", is_token=True)
    line.ask(SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 1)
    message, reply = mechanism.respond(None), None
    while message is not None:
        reply = line.ask(SaslAuthenticateRequest(auth_bytes=message), 2)
        if reply.error_code:
            break
        message = mechanism.respond(bytes(reply.auth_bytes))
    return line, reply


@pytest.fixture
def alice(node: SaslNode) -> Iterator[WireConnection]:
    with logged_in(node, "alice") as line:
        yield line


def created(line: WireConnection, **given: Any) -> Any:
    reply = line.ask(CreateDelegationTokenRequest(max_lifetime_ms=-1, **given), 3)
    assert reply.error_code == 0
    return reply


def described(line: WireConnection) -> set[str]:
    reply = line.ask(DescribeDelegationTokenRequest(owners=None), 3)
    assert reply.error_code == 0
    return {token.token_id for token in reply.tokens}


@pytest.mark.parametrize("version", [1, 2, 3])
def test_clients_of_any_age_make_and_see_tokens(version: int, alice: WireConnection) -> None:
    made = alice.ask(CreateDelegationTokenRequest(max_lifetime_ms=-1), version)
    assert (made.error_code, made.principal_name) == (0, "alice")
    assert made.token_requester_principal_name == ("alice" if version == 3 else "")

    def requesters() -> list[str]:
        tokens = alice.ask(DescribeDelegationTokenRequest(owners=None), version).tokens
        return [token.token_requester_principal_name for token in tokens if token.token_id == made.token_id]

    eventually(requesters, [made.token_requester_principal_name])


@pytest.mark.parametrize(
    "given",
    [
        {"owner_principal_type": "User", "owner_principal_name": "o" * 32_767},
        {
            "renewers": [
                CreateDelegationTokenRequest.CreatableRenewers(principal_type="User", principal_name="r" * 32_767)
            ]
        },
    ],
    ids=["owner", "renewer"],
)
def test_a_name_that_no_record_has_room_for_is_refused(given: dict[str, Any], alice: WireConnection) -> None:
    reply = alice.ask(CreateDelegationTokenRequest(max_lifetime_ms=-1, **given), 3)
    assert reply.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_token_lets_in_whoever_has_it_as_its_owner(node: SaslNode, alice: WireConnection) -> None:
    token = created(alice)
    assert token.principal_name == token.token_requester_principal_name == "alice"
    assert token.expiry_timestamp_ms - token.issue_timestamp_ms == 86_400_000
    assert token.max_timestamp_ms - token.issue_timestamp_ms == 604_800_000

    def error() -> int:
        line, reply = by_token(node, token)
        with line:
            return int(reply.error_code)

    eventually(error, ErrorCode.NONE)
    line, reply = by_token(node, token)
    with line:
        assert 0 < reply.session_lifetime_ms <= 86_400_000
        assert line.ask(MetadataRequest(topics=[]), 12).brokers
        # With a token no other can be had, nor anything else be done to tokens.
        refused = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        assert line.ask(CreateDelegationTokenRequest(), 3).error_code == refused
        assert line.ask(RenewDelegationTokenRequest(hmac=token.hmac), 2).error_code == refused
        assert line.ask(ExpireDelegationTokenRequest(hmac=token.hmac), 2).error_code == refused
        assert line.ask(DescribeDelegationTokenRequest(owners=None), 3).error_code == refused


def test_a_wrong_hmac_lets_nobody_in(node: SaslNode, alice: WireConnection) -> None:
    token = created(alice)
    eventually(lambda: token.token_id in described(alice), True)
    line, reply = by_token(node, token, hmac=b"guessed")
    with line:
        assert reply.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


def test_a_token_is_renewed_and_ended_by_its_own_people(node: SaslNode, alice: WireConnection) -> None:
    renewer = CreateDelegationTokenRequest.CreatableRenewers
    token = created(alice)
    with logged_in(node, "bob") as bob:
        mismatch = ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
        assert bob.ask(RenewDelegationTokenRequest(hmac=token.hmac, renew_period_ms=-1), 2).error_code == mismatch
        assert bob.ask(ExpireDelegationTokenRequest(hmac=token.hmac), 2).error_code == mismatch
        shared = created(alice, renewers=[renewer(principal_type="User", principal_name="bob")])
        assert bob.ask(RenewDelegationTokenRequest(hmac=shared.hmac, renew_period_ms=60_000), 2).error_code == 0
    ended = alice.ask(ExpireDelegationTokenRequest(hmac=token.hmac, expiry_time_period_ms=-1), 2)
    assert ended.error_code == 0
    again = alice.ask(ExpireDelegationTokenRequest(hmac=token.hmac, expiry_time_period_ms=-1), 2)
    assert again.error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND

    def error() -> int:
        line, reply = by_token(node, token)
        with line:
            return int(reply.error_code)

    eventually(error, ErrorCode.SASL_AUTHENTICATION_FAILED)


def test_renewers_are_users(alice: WireConnection) -> None:
    renewer = CreateDelegationTokenRequest.CreatableRenewers(principal_type="Group", principal_name="x")
    reply = alice.ask(CreateDelegationTokenRequest(renewers=[renewer]), 3)
    assert reply.error_code == ErrorCode.INVALID_PRINCIPAL_TYPE


def test_who_is_not_known_has_nothing_to_delegate(node: SaslNode) -> None:
    with WireConnection(node.node.bootstrap) as line:
        reply = line.ask(CreateDelegationTokenRequest(), 3)
        assert reply.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        assert reply.token_id == ""


def test_without_a_secret_there_are_no_tokens() -> None:
    with a_sasl_node() as node, logged_in(node, "alice") as alice:
        disabled = ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
        assert alice.ask(CreateDelegationTokenRequest(), 3).error_code == disabled
        assert alice.ask(DescribeDelegationTokenRequest(owners=None), 3).error_code == disabled
        assert alice.ask(RenewDelegationTokenRequest(hmac=b"x"), 2).error_code == disabled
