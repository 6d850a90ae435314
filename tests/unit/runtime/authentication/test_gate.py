"""Who gets through the gate of a listener with SASL, and what the others hear."""

import logging
import struct
import tracemalloc

import pytest

from ottla.security.sasl.plain import PlainServer
from ottla.wire.errors import ErrorCode
from ottla.wire.frame import encode_request
from ottla.wire.messages import (
    ApiVersionsRequest,
    CreateTopicsRequest,
    FetchRequest,
    MetadataRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)
from tests.unit.runtime.authentication.gate_scene import DELAY_MS, SHA_256, Client, Scene
from tests.unit.runtime.hostile_frames import FRAMES

METADATA = MetadataRequest(topics=None)


@pytest.fixture
def scene() -> Scene:
    return Scene()


@pytest.fixture
def client(scene: Scene) -> Client:
    return scene.connect()


def who(client: Client) -> str | None:
    """Who the node takes the client for."""
    reply = client.ask(METADATA, 12)
    return None if reply is None else reply.cluster_id


@pytest.mark.parametrize("user", ["alice", "bob"])
def test_a_client_that_has_proved_its_name_is_heard(scene: Scene, client: Client, user: str) -> None:
    reply = client.log_in(user)
    assert (reply.error_code, reply.auth_bytes, reply.session_lifetime_ms) == (0, b"", 0)
    assert who(client) == f"User:{user}"
    assert scene.count("successful_authentication") == 1


def test_scram_takes_two_steps(scene: Scene, client: Client) -> None:
    assert client.log_in_by_scram("carol").error_code == 0
    assert who(client) == "User:carol"


def test_versions_may_be_asked_first(client: Client) -> None:
    assert client.ask(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3) is not None
    client.log_in()
    assert who(client) == "User:alice"


def test_versions_are_asked_once_again_in_a_form_that_the_node_knows(client: Client) -> None:
    client.send(struct.pack(">ihhih", 10, 18, 99, 1, -1))
    assert client.receive_frame() is not None
    assert client.ask(ApiVersionsRequest(), 0) is not None
    assert client.ask(ApiVersionsRequest(), 0) is None, "versions were told twice"


def test_a_handshake_of_version_0_is_followed_by_bare_tokens(client: Client) -> None:
    assert client.handshake("PLAIN", version=0).error_code == 0
    token = b"\0alice\0alice-secret"
    client.send(struct.pack(">i", len(token)) + token)
    assert client.receive_frame() == b""
    assert who(client) == "User:alice"


def test_a_wrong_bare_token_has_no_answer(scene: Scene, client: Client) -> None:
    client.handshake("PLAIN", version=0)
    client.send(struct.pack(">i", 8) + b"\0alice\0x")
    scene.advance(DELAY_MS)
    assert client.receive_frame() is None
    assert client.is_closed


def test_a_mechanism_that_is_not_enabled_is_refused_by_name(scene: Scene, client: Client) -> None:
    assert client.handshake("GSSAPI") is None
    scene.advance(DELAY_MS)
    reply = client.receive(SaslHandshakeRequest(), 1)
    assert reply.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert list(reply.mechanisms) == ["PLAIN", SHA_256]
    assert client.is_closed


@pytest.mark.parametrize("user", ["alice", "nobody"])
def test_a_wrong_password_is_answered_late_and_then_no_more(scene: Scene, client: Client, user: str) -> None:
    assert client.log_in(user, "wrong") is None
    scene.advance(DELAY_MS - 1)
    assert client.receive_frame() is None
    client.send(encode_request(METADATA, 12, 1, None))
    scene.advance(1)
    reply = client.receive(SaslAuthenticateRequest(), 2)
    assert reply.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert reply.error_message == "Authentication failed: Invalid username or password"
    assert client.receive_frame() is None
    assert client.is_closed
    assert scene.asked == []
    assert scene.count("failed_authentication") == 1


@pytest.mark.parametrize("user", ["carol", "nobody"])
def test_scram_tells_nobody_whether_a_user_exists(scene: Scene, client: Client, user: str) -> None:
    assert client.log_in_by_scram(user, "wrong") is None
    scene.advance(DELAY_MS)
    reply = client.receive(SaslAuthenticateRequest(), 2)
    assert reply.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert reply.error_message == (
        "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256"
    )


@pytest.mark.parametrize(
    ("request_", "version"),
    [
        (METADATA, 12),
        (FetchRequest(), 4),
        (CreateTopicsRequest(), 5),
        (SaslAuthenticateRequest(auth_bytes=b"\0alice\0alice-secret"), 2),
    ],
    ids=["Metadata", "Fetch", "CreateTopics", "SaslAuthenticate before the handshake"],
)
def test_nothing_else_is_heard_before(scene: Scene, client: Client, request_: MetadataRequest, version: int) -> None:
    assert client.ask(request_, version) is None
    scene.advance(DELAY_MS)
    assert client.receive_frame() is None
    assert client.is_closed
    assert scene.asked == []
    assert scene.count("failed_authentication") == 1


def test_a_request_between_handshake_and_token_is_not_heard(scene: Scene, client: Client) -> None:
    client.handshake("PLAIN")
    assert client.ask(METADATA, 12) is None
    scene.advance(DELAY_MS)
    assert client.is_closed
    assert scene.asked == []


def test_a_second_handshake_is_told_that_it_is_out_of_turn(scene: Scene, client: Client) -> None:
    client.handshake("PLAIN")
    client.handshake("PLAIN")
    scene.advance(DELAY_MS)
    assert client.receive(SaslHandshakeRequest(), 1).error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert client.is_closed


def test_requests_sent_ahead_of_the_token_are_answered_after_it(client: Client) -> None:
    client.send(
        encode_request(SaslHandshakeRequest(mechanism="PLAIN"), 1, 1, None)
        + encode_request(SaslAuthenticateRequest(auth_bytes=b"\0alice\0alice-secret"), 2, 2, None)
        + encode_request(METADATA, 12, 3, None)
    )
    assert client.receive(SaslHandshakeRequest(), 1).error_code == 0
    assert client.receive(SaslAuthenticateRequest(), 2).error_code == 0
    assert client.receive(METADATA, 12).cluster_id == "User:alice"


def test_requests_sent_ahead_of_a_wrong_token_are_not_heard(scene: Scene, client: Client) -> None:
    client.send(
        encode_request(SaslHandshakeRequest(mechanism="PLAIN"), 1, 1, None)
        + encode_request(SaslAuthenticateRequest(auth_bytes=b"\0alice\0wrong"), 2, 2, None)
        + encode_request(METADATA, 12, 3, None)
    )
    scene.advance(DELAY_MS)
    assert scene.asked == []
    assert client.is_closed


# What brokers of this kind have been attacked with


def test_vulnerability_a_frame_is_bounded_before_authentication(scene: Scene, client: Client) -> None:
    client.send(struct.pack(">i", 1001))
    assert client.is_closed
    assert scene.count("failed_authentication") == 1


def test_vulnerability_frames_may_be_larger_only_behind_the_gate(client: Client) -> None:
    client.log_in()
    named = [MetadataRequest.MetadataRequestTopic(name="t" * 200) for _ in range(20)]
    assert client.ask(MetadataRequest(topics=named), 12).cluster_id == "User:alice"


def test_vulnerability_a_large_frame_in_one_packet_with_the_token_counts_as_behind_the_gate(client: Client) -> None:
    named = [MetadataRequest.MetadataRequestTopic(name="t" * 200) for _ in range(20)]
    client.handshake("PLAIN")
    client.send(
        encode_request(SaslAuthenticateRequest(auth_bytes=b"\0alice\0alice-secret"), 2, 2, None)
        + encode_request(MetadataRequest(topics=named), 12, 3, None)
    )
    assert client.receive(SaslAuthenticateRequest(), 2).error_code == 0
    assert client.receive(METADATA, 12).cluster_id == "User:alice"


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("has_shaken_hands", [False, True])
def test_vulnerability_counts_do_not_allocate_before_authentication(
    scene: Scene, client: Client, frame: bytes, has_shaken_hands: bool
) -> None:
    client.log_in_by_scram("carol")  # whatever is made on first use is there
    client = scene.connect()
    if has_shaken_hands:
        client.handshake("PLAIN")
    tracemalloc.start()
    try:
        client.send(struct.pack(">i", len(frame)) + frame)
        scene.advance(DELAY_MS)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert client.is_closed
    assert peak < 2_000_000
    assert scene.asked == []


def test_vulnerability_an_authenticator_that_breaks_lets_nobody_in() -> None:
    def check(user: str, password: str) -> bool:
        raise RuntimeError("the directory does not answer")

    scene = Scene(mechanisms={"PLAIN": lambda: PlainServer(check)})
    client = scene.connect()
    assert client.log_in() is None
    client.send(encode_request(METADATA, 12, 1, None))
    scene.advance(DELAY_MS)
    assert client.is_closed
    assert scene.asked == []
    assert scene.count("failed_authentication") == 1
    assert scene.metrics.faults["SaslAuthenticate"] == 1


def test_vulnerability_a_listener_without_its_authenticator_lets_nobody_in(scene: Scene) -> None:
    address = scene.server.listen("node", 9093, "LATER", is_gated=True)
    scene.server.start_accepting({"LATER"})
    line = scene.network.connect(*address)
    line.send(encode_request(METADATA, 12, 1, None))
    scene.network.run()
    assert line.is_closed
    assert scene.asked == []


@pytest.mark.parametrize("token", [b"", b"\0", b"\0\0", b"\0alice\0", b"\0\0alice-secret", b"\0alice\0alice-secret\0"])
def test_vulnerability_empty_credentials_and_null_bytes_let_nobody_in(
    scene: Scene, client: Client, token: bytes
) -> None:
    client.handshake("PLAIN")
    client.authenticate(token)
    scene.advance(DELAY_MS)
    assert client.receive(SaslAuthenticateRequest(), 2).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert client.is_closed


def test_vulnerability_nobody_becomes_another_by_authzid(scene: Scene, client: Client) -> None:
    client.handshake("PLAIN")
    client.authenticate(b"bob\0alice\0alice-secret")
    scene.advance(DELAY_MS)
    reply = client.receive(SaslAuthenticateRequest(), 2)
    assert reply.error_message == (
        "Authentication failed: Client requested an authorization id that is different from username"
    )
    assert client.is_closed


def test_an_operator_sees_who_fails_whatever_the_level_of_the_log(
    scene: Scene, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        client.log_in("alice", "wrong")
    [record] = caplog.records
    assert record.getMessage().startswith("Failed authentication with 127.0.0.1 (listener SASL_PLAINTEXT): PLAIN: ")


def test_vulnerability_trying_out_passwords_does_not_fill_the_log(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        for _ in range(50):
            scene.connect().log_in("alice", "wrong")
        assert len(caplog.records) == 10
        scene.advance(10_000)
        scene.connect().log_in("alice", "wrong")
    assert caplog.records[10].getMessage() == "suppressed 40 more lines like these"


def test_vulnerability_names_do_not_write_lines_of_their_own(
    scene: Scene, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        client.handshake("X\n2026-01-01 INFO alice logged in")
        other = scene.connect()
        other.log_in("mallory\n2026-01-01 INFO alice logged in", "x")
        scene.advance(DELAY_MS)
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 2
    assert not any("\n" in line for line in lines)


def test_no_secret_is_logged(scene: Scene, client: Client, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        client.log_in("alice", "a-secret-that-is-wrong")
        scene.advance(DELAY_MS)
    assert "secret" not in caplog.text
