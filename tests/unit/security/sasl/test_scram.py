"""SCRAM: RFC 5802's exchange with the example of RFC 7677, and messages that are wrong, missing or played again."""

from base64 import b64decode
from collections.abc import Callable
from hmac import compare_digest
from typing import Any

import pytest

from ottla.security.sasl import scram_server
from ottla.security.sasl.mechanism import AuthenticationFailed, SaslError
from ottla.security.sasl.scram_client import ScramClient
from ottla.security.sasl.scram_keys import SCRAM_HASHES, ScramCredential, ScramHash, salt_from
from ottla.security.sasl.scram_messages import escaped, parse_server_first, unescaped
from ottla.security.sasl.scram_server import FoundCredential, ScramServer

SHA_256, SHA_512 = "SCRAM-SHA-256", "SCRAM-SHA-512"
SALT = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
CLIENT_NONCE, SERVER_NONCE = "rOprNGfwEbeRWgbNEkqO", "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
SECRET = b"of this server"


class Users:
    """Users and delegation tokens, as a node's metadata has them."""

    def __init__(self, mechanism: str = SHA_256, iterations: int = 4096) -> None:
        self.credential = SCRAM_HASHES[mechanism].credential("pencil", SALT, iterations)
        self.asked: list[tuple[str, bool]] = []

    def __call__(self, name: str, is_token: bool) -> FoundCredential | None:
        self.asked.append((name, is_token))
        if is_token:
            return FoundCredential(self.credential, "alice", 5_000) if name == "token-1" else None
        return FoundCredential(self.credential, name) if name in ("user", "a=b,c") else None


def server_of(mechanism: str = SHA_256, users: Users | None = None, nonce: str = SERVER_NONCE) -> ScramServer:
    return ScramServer(mechanism, users or Users(mechanism), nonce, SECRET)


def exchange(client: ScramClient, server: ScramServer) -> None:
    message = client.respond(None)
    while message is not None:
        message = client.respond(server.evaluate(message))


def test_the_example_of_rfc_7677_comes_out_byte_for_byte() -> None:
    client, server = ScramClient(SHA_256, "user", "pencil", CLIENT_NONCE), server_of()
    first = client.respond(None)
    assert first == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    challenge = server.evaluate(first)
    nonce = f"{CLIENT_NONCE}{SERVER_NONCE}"
    assert challenge == f"r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode()
    final = client.respond(challenge)
    assert final == f"c=biws,r={nonce},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode()
    verifier = server.evaluate(final)
    assert verifier == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    assert client.respond(verifier) is None
    assert client.is_complete
    assert server.is_complete
    assert server.principal == "User:user"
    assert server.expires_ms is None


@pytest.mark.parametrize("mechanism", [SHA_256, SHA_512])
@pytest.mark.parametrize("name", ["user", "a=b,c"])
def test_both_sides_believe_each_other(mechanism: str, name: str) -> None:
    client, server = ScramClient(mechanism, name, "pencil", "n1"), server_of(mechanism)
    exchange(client, server)
    assert client.is_complete
    assert server.principal == f"User:{name}"
    assert not server.is_token_authenticated


def test_a_delegation_token_authenticates_its_owner() -> None:
    users = Users()
    server = server_of(users=users)
    exchange(ScramClient(SHA_256, "token-1", "pencil", "n1", is_token=True), server)
    assert users.asked == [("token-1", True)]
    assert (server.principal, server.is_token_authenticated, server.expires_ms) == ("User:alice", True, 5_000)


@pytest.mark.parametrize(
    ("name", "password", "is_token"),
    [("user", "pencils", False), ("other", "pencil", False), ("user", "pencil", True), ("token-1", "pencil", False)],
)
def test_a_wrong_name_and_a_wrong_password_are_refused_alike(name: str, password: str, is_token: bool) -> None:
    server = server_of()
    with pytest.raises(SaslError, match="Authentication failed: Invalid user credentials"):
        exchange(ScramClient(SHA_256, name, password, "n1", is_token=is_token), server)
    assert not server.is_complete


def test_a_user_that_there_is_not_costs_what_a_wrong_password_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted, since time is the machine's: what is hashed and compared by the server, for one and for the other."""
    done: list[str] = []

    def counted(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            done.append(name)
            return real(*given)

        return call

    monkeypatch.setattr(ScramHash, "signature", counted("signature", ScramHash.signature))
    monkeypatch.setattr(ScramHash, "stored_key", counted("stored_key", ScramHash.stored_key))
    monkeypatch.setattr(scram_server, "compare_digest", counted("compare", compare_digest))
    work = []
    for user in ("user", "other"):
        client, server = ScramClient(SHA_256, user, "pencils", "n1"), server_of()
        first = client.respond(None)
        done.clear()
        challenge = server.evaluate(first)
        at_first = tuple(done)
        final = client.respond(challenge)
        done.clear()
        with pytest.raises(SaslError):
            server.evaluate(final)
        work.append((at_first, tuple(done)))
    assert work[0] == work[1]
    assert work[0][1].count("compare") == 2, "the nonce and the key"


def test_a_user_that_there_is_not_is_given_the_same_salt_each_time() -> None:
    """Or asking twice would tell that it is not there."""
    challenges = {server_of().evaluate(b"n,,n=other,r=x") for _ in range(2)}
    assert len(challenges) == 1
    assert challenges != {server_of().evaluate(b"n,,n=another,r=x")}
    another_node = ScramServer(SHA_256, Users(), SERVER_NONCE, b"of another server")
    assert another_node.evaluate(b"n,,n=other,r=x") not in challenges


def test_a_salt_has_the_form_of_those_that_kafkas_tools_write() -> None:
    """As `1lv4pdnw4fwq7notcxm0yy1k7q`, which one of them wrote."""
    assert salt_from(bytes(17)) == b"0"
    assert salt_from(bytes(16) + b"\x23") == b"z"
    assert int(salt_from(b"\xff" * 17), 36) == (1 << 130) - 1
    lengths = {len(salt_from(bytes([first]) + b"\x80" * 16)) for first in range(4)}
    assert lengths == {25, 26}


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", [SHA_256, SHA_512])
def test_the_salt_of_a_user_that_there_is_not_looks_like_one_of_kafkas_tools(mechanism: str) -> None:
    for number in range(100):
        first = parse_server_first(server_of(mechanism).evaluate(f"n,,n=nobody-{number},r=x".encode()))
        assert first.iterations == 4096
        assert first.salt.isalnum()
        assert 24 <= len(first.salt) <= 26


def test_vulnerability_nobody_becomes_another_by_authzid() -> None:
    with pytest.raises(AuthenticationFailed, match="authorization id that is different from username"):
        server_of().evaluate(b"n,a=admin,n=user,r=x")
    assert server_of().evaluate(b"n,a=user,n=user,r=x").startswith(b"r=x")


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"n,,",
        b"y,,n=user,r=x",  # would have bound a channel, and thinks that we cannot
        b"p=tls-unique,,n=user,r=x",  # binds one
        b"n,,m=new,n=user,r=x",  # an extension that must be understood
        b"n,,n=user,r=x,m=new",
        b"n,,n=user",
        b"n,,r=x,n=user",
        b"n,,n=us=er,r=x",
        b"n,,n=user,r=",
        b"n,,n=user,r=a b",
        b"n,,n=us\0er,r=x",
        b"n,,n=\xff,r=x",
        b"n,,n=user,r=x,tokenauth",
    ],
)
def test_a_first_message_that_is_none_ends_the_exchange(first: bytes) -> None:
    server = server_of()
    with pytest.raises(SaslError):
        server.evaluate(first)
    with pytest.raises(SaslError):
        server.evaluate(b"n,,n=user,r=x")
    assert not server.is_complete


def final_message(server: ScramServer) -> bytes:
    client = ScramClient(SHA_256, "user", "pencil", CLIENT_NONCE)
    return client.respond(server.evaluate(client.respond(None) or b"")) or b""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"r=rOpr", b"r=aaaa"),  # another nonce
        (SERVER_NONCE.encode(), b""),  # only the client's part of it
        (b"c=biws", b"c=eSws"),  # the header of a client that would bind
        (b"c=biws", b"c="),
        (b"p=dHzb", b"p=AAAA"),
        (b"p=dHzbZapW", b"p="),  # a short proof
        (b",p=", b",q="),
        (b"c=biws,", b""),
    ],
)
def test_a_final_message_that_was_tampered_with_is_refused(old: bytes, new: bytes) -> None:
    server = server_of()
    right = final_message(server)
    wrong = right.replace(old, new)
    assert wrong != right
    with pytest.raises(SaslError):
        server.evaluate(wrong)
    with pytest.raises(SaslError):
        server.evaluate(right)  # there is no second try
    assert not server.is_complete


def test_messages_that_are_played_again_authenticate_nobody() -> None:
    overheard = final_message(server_of())
    server = server_of(nonce="of-another-exchange")
    server.evaluate(f"n,,n=user,r={CLIENT_NONCE}".encode())
    with pytest.raises(SaslError, match="Invalid client nonce"):
        server.evaluate(overheard)


def test_a_final_message_without_a_first_one_is_refused() -> None:
    with pytest.raises(SaslError):
        server_of().evaluate(final_message(server_of()))


def test_a_credential_of_few_iterations_is_not_used() -> None:
    with pytest.raises(SaslError, match="less than the minimum"):
        server_of(users=Users(iterations=100)).evaluate(b"n,,n=user,r=x")


@pytest.mark.parametrize(
    "challenge",
    [
        b"",
        b"r=another,s=W22ZaA==,i=4096",
        b"r=mine,s=W22ZaA==,i=4096",  # the server added nothing
        b"r=mine+,s=W22ZaA==,i=4095",
        b"r=mine+,s=W22ZaA==,i=16385",
        b"r=mine+,s=W22ZaA==,i=-1",
        b"r=mine+,s=W22,i=4096",
        b"r=mine+,i=4096",
    ],
)
def test_a_client_does_not_believe_such_a_server(challenge: bytes) -> None:
    client = ScramClient(SHA_256, "user", "pencil", "mine")
    client.respond(None)
    with pytest.raises(SaslError):
        client.respond(challenge)


@pytest.mark.parametrize("verifier", [b"v=AAAA", b"v=", b"e=invalid-proof", b"", b"v=6rriTRBi23WpRR/wtup+mMhUZUn/"])
def test_a_client_has_the_server_prove_itself(verifier: bytes) -> None:
    client = ScramClient(SHA_256, "user", "pencil", CLIENT_NONCE)
    client.respond(server_of().evaluate(client.respond(None) or b""))
    with pytest.raises(SaslError):
        client.respond(verifier)
    assert not client.is_complete


def test_names_are_escaped_and_come_back() -> None:
    for name in ("a=b", "a,b", "=2C", "=3D", "plain", "=,=,"):
        assert unescaped(escaped(name)) == name
        assert "," not in escaped(name)


def test_a_credential_does_not_show_itself() -> None:
    assert "stored" not in repr(ScramCredential(b"salt", b"stored", b"server", 4096))
