"""The messages of OAUTHBEARER (RFC 7628): what a client writes, and what a server reads."""

import pytest

from ottla.security.sasl.mechanism import SaslError
from ottla.security.sasl.oauthbearer_client import OAuthBearerClient
from ottla.security.sasl.oauthbearer_messages import parse_token_message, token_message


def test_a_token_is_sent_with_its_extensions() -> None:
    client = OAuthBearerClient("a.b.c", {"traceId": "12 3"})
    message = client.respond(None) or b""
    assert message == b"n,,\x01auth=Bearer a.b.c\x01traceId=12 3\x01\x01"
    assert parse_token_message(message) == ("a.b.c", "", {"traceId": "12 3"})
    assert client.respond(b"") is None
    assert client.is_complete


def test_a_client_that_is_refused_hears_why_and_gives_up() -> None:
    client = OAuthBearerClient("a.b.c")
    client.respond(None)
    assert client.respond(b'{"status":"invalid_token"}') == b"\x01"
    assert client.refusal == '{"status":"invalid_token"}'
    assert not client.is_complete
    with pytest.raises(SaslError, match="invalid_token"):
        client.respond(b"")


@pytest.mark.parametrize("extensions", [{"auth": "x"}, {"a1": "x"}, {"a": "x\x01"}, {"": "x"}, {"a": ""}])
def test_an_extension_that_would_say_something_else_is_not_sent(extensions: dict[str, str]) -> None:
    with pytest.raises(SaslError):
        token_message("a.b.c", extensions)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n,,",
        b"n,,\x01\x01",
        b"n,,\x01auth=Bearer \x01\x01",
        b"n,,\x01auth=Basic abc\x01\x01",
        b"n,,\x01auth=Bearer a.b.c\x01",
        b"n,,\x01auth=Bearer a.b.c\x01\x01more",
        b"y,,\x01auth=Bearer a.b.c\x01\x01",
        b"n,,\x01auth=Bearer a b\x01\x01",
        b"n,,\x01auth=Bearer a.b.c\x01auth\x01\x01",
        b"\xff,,\x01auth=Bearer a.b.c\x01\x01",
    ],
)
def test_what_is_no_token_message_is_refused(message: bytes) -> None:
    with pytest.raises(SaslError):
        parse_token_message(message)
