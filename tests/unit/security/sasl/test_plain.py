"""PLAIN: who gets in, and how the others are told (RFC 4616)."""

from hmac import compare_digest

import pytest

from ottla.security.sasl import plain
from ottla.security.sasl.mechanism import AuthenticationFailed, SaslError
from ottla.security.sasl.plain import Passwords, PlainClient, PlainServer

PASSWORDS = Passwords({"alice": "alice-secret", "bob": "geheim-€", "nobody": ""})


def evaluated(response: bytes) -> PlainServer:
    server = PlainServer(PASSWORDS)
    assert server.evaluate(response) == b""
    return server


@pytest.mark.parametrize(("user", "password"), [("alice", "alice-secret"), ("bob", "geheim-€")])
def test_a_client_gets_in_with_its_password(user: str, password: str) -> None:
    client = PlainClient(user, password)
    server = evaluated(client.respond(None) or b"")
    assert server.is_complete
    assert server.principal == f"User:{user}"
    assert client.respond(b"") is None
    assert client.is_complete


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        (b"\0alice\0wrong", "Authentication failed: Invalid username or password"),
        (b"\0carol\0alice-secret", "Authentication failed: Invalid username or password"),
        (b"bob\0alice\0alice-secret", "authorization id that is different from username"),
    ],
)
def test_a_client_that_is_refused_is_told_why(response: bytes, reason: str) -> None:
    with pytest.raises(AuthenticationFailed, match=reason):
        evaluated(response)


def test_a_user_that_there_is_not_costs_what_a_wrong_password_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted, since time is the machine's: each is compared once, in constant time, with something."""
    compared: list[int] = []

    def counted(one: bytes, other: bytes) -> bool:
        compared.append(len(other))
        return compare_digest(one, other)

    monkeypatch.setattr(plain, "compare_digest", counted)
    for user in ("alice", "carol"):
        with pytest.raises(AuthenticationFailed):
            evaluated(f"\0{user}\0a wrong one".encode())
    assert compared == [11, 11]


@pytest.mark.parametrize(
    "response",
    [
        b"",
        b"\0",
        b"\0\0",
        b"\0alice\0",
        b"\0\0alice-secret",
        b"\0nobody\0",
        b"alice",
        b"\0alice\0alice-secret\0",
        b"\0alice\0alice-\0secret",
        b"\0\xff\0secret",
        b"\0alice\0alice-secret" * 1000,
    ],
)
def test_what_is_no_message_of_plain_authenticates_nobody(response: bytes) -> None:
    server = PlainServer(PASSWORDS)
    with pytest.raises(SaslError):
        server.evaluate(response)
    assert not server.is_complete


def test_the_same_name_may_be_the_authorization_id() -> None:
    assert evaluated(b"alice\0alice\0alice-secret").principal == "User:alice"


def test_a_server_that_is_complete_takes_no_second_login() -> None:
    server = evaluated(b"\0alice\0alice-secret")
    with pytest.raises(SaslError):
        server.evaluate(b"\0bob\0geheim")
    assert server.principal == "User:alice"


def test_a_client_takes_no_challenge() -> None:
    client = PlainClient("alice", "alice-secret")
    client.respond(None)
    with pytest.raises(SaslError):
        client.respond(b"tell me more")
