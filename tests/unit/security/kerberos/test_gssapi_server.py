"""A server's end of GSSAPI, with a context that follows a script."""

import pytest

from ottla.security.kerberos.gss_context import GssFailed
from ottla.security.kerberos.gssapi_server import GssapiServer
from ottla.security.kerberos.principals import NoShortName, ShortNames
from ottla.security.sasl.mechanism import SaslError
from tests.unit.security.kerberos.scripted_context import SIGNATURE, ScriptedContext

NO_LAYER = SIGNATURE + b"\x01\0\0\0"
NAMES = ShortNames(["DEFAULT"], "EAST")


def server(*steps: tuple[bytes | None, bytes | None], client: str = "alice@EAST") -> GssapiServer:
    return GssapiServer(ScriptedContext(steps or [(b"request", None)], client), NAMES)


def test_a_client_that_wants_no_proof_of_the_server_is_offered_layers_at_once() -> None:
    end = server((b"request", None))
    assert end.evaluate(b"request") == NO_LAYER
    assert not end.is_complete
    assert end.evaluate(NO_LAYER) == b""
    assert (end.is_complete, end.principal, end.expires_ms) == (True, "User:alice", None)


def test_a_client_that_wants_proof_gets_a_token_and_says_nothing_before_the_layers() -> None:
    end = server((b"request", b"proof"))
    assert end.evaluate(b"request") == b"proof"
    assert end.evaluate(b"") == NO_LAYER
    end.evaluate(NO_LAYER)
    assert end.is_complete


def test_a_context_may_take_more_tokens() -> None:
    end = server((b"1", b"2"), (b"3", None))
    assert end.evaluate(b"1") == b"2"
    assert end.evaluate(b"3") == NO_LAYER


def test_a_size_that_a_client_names_means_nothing() -> None:
    """Java's clients name 65536, where RFC 4752 wants 0."""
    end = server()
    end.evaluate(b"request")
    end.evaluate(SIGNATURE + b"\x01\x01\0\0")
    assert end.is_complete


@pytest.mark.parametrize("named", [b"alice@EAST", b"bob@EAST", b"admin", b"kafka@node1", b"\xff\xfe"])
def test_vulnerability_nobody_becomes_another_by_authzid(named: bytes) -> None:
    """As in Apache Kafka, the name has no effect: clients of some libraries send the service's there."""
    end = server()
    end.evaluate(b"request")
    end.evaluate(NO_LAYER + named)
    assert end.principal == "User:alice"


def refused(end: GssapiServer, response: bytes, problem: type[SaslError] = SaslError) -> None:
    with pytest.raises(problem):
        end.evaluate(response)
    assert not end.is_complete
    for again in (b"request", b"", NO_LAYER):
        with pytest.raises(SaslError, match="the exchange is over"):
            end.evaluate(again)
    assert not end.is_complete


def test_a_ticket_that_kerberos_does_not_accept_ends_the_exchange() -> None:
    refused(server(), b"forged", GssFailed)


def test_vulnerability_a_choice_that_nobody_has_signed_lets_nobody_in() -> None:
    end = server()
    end.evaluate(b"request")
    refused(end, b"\x01\0\0\0", GssFailed)


def test_vulnerability_a_choice_before_the_context_lets_nobody_in() -> None:
    refused(server(), NO_LAYER, GssFailed)


@pytest.mark.parametrize("layers", [b"\x00", b"\x02", b"\x03", b"\x04", b"\x05", b"\xff"])
def test_a_layer_that_was_not_offered_is_refused(layers: bytes) -> None:
    end = server()
    end.evaluate(b"request")
    refused(end, SIGNATURE + layers + b"\0\0\0")


@pytest.mark.parametrize("size", range(4))
def test_a_choice_that_is_too_short_is_refused(size: int) -> None:
    end = server()
    end.evaluate(b"request")
    refused(end, SIGNATURE + b"\x01\0\0\0"[:size])


def test_a_token_where_nothing_was_to_come_is_refused() -> None:
    end = server((b"request", b"proof"))
    end.evaluate(b"request")
    refused(end, b"more")


def test_a_client_whose_principal_has_no_short_name_is_refused() -> None:
    end = server(client="alice@WEST")
    end.evaluate(b"request")
    refused(end, NO_LAYER, NoShortName)


def test_who_is_in_has_nothing_more_to_say() -> None:
    end = server()
    end.evaluate(b"request")
    end.evaluate(NO_LAYER)
    with pytest.raises(SaslError, match="the exchange is over"):
        end.evaluate(NO_LAYER)
    assert end.principal == "User:alice"
