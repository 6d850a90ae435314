"""Sessions that end, and clients that authenticate again (KIP-368)."""

import pytest

from ottla.wire.errors import ErrorCode
from ottla.wire.messages import MetadataRequest, SaslAuthenticateRequest
from tests.unit.runtime.authentication.gate_scene import DELAY_MS, EXPIRES_IN_MS, SHA_256, Client, Scene

LIFETIME_MS = 10_000
METADATA = MetadataRequest(topics=None)


@pytest.fixture
def scene() -> Scene:
    return Scene(max_reauth_ms=LIFETIME_MS)


@pytest.fixture
def client(scene: Scene) -> Client:
    client = scene.connect()
    assert client.log_in().session_lifetime_ms == LIFETIME_MS
    return client


def who(client: Client) -> str | None:
    reply = client.ask(METADATA, 12)
    return None if reply is None else reply.cluster_id


def test_a_request_after_the_end_of_the_session_closes_the_connection(scene: Scene, client: Client) -> None:
    scene.advance(LIFETIME_MS)
    assert who(client) == "User:alice"
    scene.advance(1)
    assert who(client) is None
    assert client.is_closed
    assert scene.count("expired_connections_killed") == 1


def test_a_client_that_authenticates_again_goes_on(scene: Scene, client: Client) -> None:
    for _ in range(3):
        scene.advance(LIFETIME_MS - 1)
        assert client.log_in().session_lifetime_ms == LIFETIME_MS
        assert who(client) == "User:alice"
    assert scene.count("successful_reauthentication") == 3
    assert scene.count("successful_authentication") == 1


def test_it_may_do_so_after_the_end_if_it_asks_for_nothing_else(scene: Scene, client: Client) -> None:
    scene.advance(LIFETIME_MS * 2)
    assert client.log_in().error_code == 0
    assert who(client) == "User:alice"


def test_a_client_stays_who_it_was(scene: Scene, client: Client) -> None:
    scene.advance(5000)
    client.log_in("bob")
    scene.advance(DELAY_MS)
    reply = client.receive(SaslAuthenticateRequest(), 2)
    assert reply.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert reply.error_message == "Cannot change principals during re-authentication from User.alice: User.bob"
    assert client.is_closed
    assert scene.count("failed_reauthentication") == 1
    assert scene.count("failed_authentication") == 0


def test_a_client_stays_with_its_mechanism(scene: Scene, client: Client) -> None:
    scene.advance(5000)
    assert client.handshake(SHA_256).error_code == 0
    assert client.authenticate(b"n,,n=carol,r=x") is None
    scene.advance(DELAY_MS)
    assert client.is_closed


def test_a_wrong_password_the_second_time_ends_the_connection(scene: Scene, client: Client) -> None:
    scene.advance(5000)
    client.log_in("alice", "changed meanwhile")
    scene.advance(DELAY_MS)
    assert client.receive(SaslAuthenticateRequest(), 2).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert client.is_closed


def test_nothing_else_is_heard_between_the_second_handshake_and_its_end(scene: Scene, client: Client) -> None:
    scene.advance(5000)
    client.handshake("PLAIN")
    assert who(client) is None
    scene.advance(DELAY_MS)
    assert client.is_closed


def test_a_client_does_so_once_a_second(scene: Scene, client: Client) -> None:
    assert client.log_in().error_code == 0
    scene.advance(999)
    assert client.handshake("PLAIN").error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert who(client) == "User:alice"


def test_without_an_end_a_handshake_is_a_request_like_any_other() -> None:
    scene = Scene()
    client = scene.connect()
    client.log_in()
    assert client.handshake("PLAIN").error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert who(client) == "User:alice"


def test_a_session_ends_with_its_token_at_the_latest() -> None:
    scene = Scene()
    assert scene.connect().log_in_by_scram("t1", is_token=True).session_lifetime_ms == EXPIRES_IN_MS
    scene = Scene(max_reauth_ms=LIFETIME_MS)
    assert scene.connect().log_in_by_scram("t1", is_token=True).session_lifetime_ms == LIFETIME_MS
    scene = Scene(max_reauth_ms=EXPIRES_IN_MS * 2)
    client = scene.connect()
    assert client.log_in_by_scram("t1", is_token=True).session_lifetime_ms == EXPIRES_IN_MS
    assert who(client) == "User:carol"
    assert scene.asked[0][0].connection.is_token_authenticated
