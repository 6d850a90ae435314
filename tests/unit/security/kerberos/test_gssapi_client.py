"""A client's end of GSSAPI, with a context that follows a script; and both ends together."""

import pytest

from ottla.security.kerberos.gss_context import GssFailed
from ottla.security.kerberos.gssapi_client import GssapiClient
from ottla.security.kerberos.gssapi_server import GssapiServer
from ottla.security.kerberos.principals import ShortNames
from ottla.security.sasl.mechanism import SaslError
from tests.unit.security.kerberos.scripted_context import SIGNATURE, ScriptedContext

OFFER = SIGNATURE + b"\x01\0\0\0"


def client(*steps: tuple[bytes | None, bytes | None]) -> GssapiClient:
    return GssapiClient(ScriptedContext(steps or [(b"proof", None)]), b"request")


def test_a_client_checks_the_server_and_then_takes_no_layer() -> None:
    end = client((b"proof", None))
    assert end.respond(None) == b"request"
    assert end.respond(b"proof") == b""
    assert end.respond(OFFER) == OFFER
    assert not end.is_complete
    assert end.respond(b"") is None
    assert end.is_complete


def test_both_ends_understand_each_other() -> None:
    server = GssapiServer(ScriptedContext([(b"request", b"proof")]), ShortNames(["DEFAULT"], "EAST"))
    end = client()
    message = end.respond(None)
    while message is not None:
        message = end.respond(server.evaluate(message))
    assert end.is_complete
    assert server.principal == "User:alice"


@pytest.mark.parametrize("layers", [b"\x01", b"\x03", b"\x07"])
def test_no_layer_is_chosen_where_it_is_among_those_that_are_offered(layers: bytes) -> None:
    end = client()
    end.respond(b"proof")
    assert end.respond(SIGNATURE + layers + b"\x01\0\0") == OFFER


def test_a_server_that_wants_a_layer_is_told_from_one_that_does_not() -> None:
    end = client()
    end.respond(b"proof")
    with pytest.raises(SaslError, match="wants a security layer"):
        end.respond(SIGNATURE + b"\x06\0\0\0")


def test_vulnerability_a_server_that_cannot_prove_itself_is_not_believed() -> None:
    with pytest.raises(GssFailed):
        client().respond(b"not the proof")
    end = client()
    with pytest.raises(GssFailed):
        end.respond(OFFER)  # An offer in place of the proof.
    assert not end.is_complete


def test_vulnerability_an_offer_that_nobody_has_signed_is_not_believed() -> None:
    end = client()
    end.respond(b"proof")
    with pytest.raises(GssFailed):
        end.respond(b"\x01\0\0\0")


def test_a_server_that_goes_on_after_the_choice_is_not_believed() -> None:
    end = client()
    end.respond(b"proof")
    end.respond(OFFER)
    with pytest.raises(SaslError):
        end.respond(OFFER)
    assert not end.is_complete
