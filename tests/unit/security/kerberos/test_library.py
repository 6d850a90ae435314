"""What is asked of the system's Kerberos, and how its failures are told."""

import sys

import pytest

from ottla.security.kerberos.gss_context import GssFailed
from ottla.security.kerberos.kerberos_login import KerberosLogin
from ottla.security.kerberos.library import Acceptor, NoKerberos, default_realm, initiate
from tests.unit.security.kerberos.scripted_gssapi import GSSError, NameType, RequirementFlag, ScriptedGssapi

KDC_UNREACHABLE = 2529639068  # KRB5_KDC_UNREACH, as an unsigned number
BY_KEY = KerberosLogin("kafka", "alice@EAST", "/keys", None)


@pytest.fixture
def gssapi(monkeypatch: pytest.MonkeyPatch) -> ScriptedGssapi:
    library = ScriptedGssapi()
    monkeypatch.setitem(sys.modules, "gssapi", library)  # type: ignore[arg-type]
    return library


def test_a_client_asks_for_a_ticket_that_proves_the_broker_too(gssapi: ScriptedGssapi) -> None:
    end = initiate(BY_KEY, "node1.example.com")
    (context,) = gssapi.contexts
    assert (context.given["name"].text, context.given["name"].kind) == (
        "kafka@node1.example.com",
        NameType.hostbased_service,
    )
    assert context.given["flags"] == RequirementFlag.mutual_authentication | RequirementFlag.integrity
    assert end.respond(None) == b"token"


def test_tickets_of_a_key_table_stay_in_memory_and_are_its_own(gssapi: ScriptedGssapi) -> None:
    for login in (BY_KEY, BY_KEY, BY_KEY._replace(principal="bob@EAST"), BY_KEY._replace(key_table="/other")):
        initiate(login, "node1")
    caches = [given["store"]["ccache"] for given in gssapi.credentials]
    assert all(cache.startswith("MEMORY:") for cache in caches)
    assert caches[0] == caches[1]
    assert len(set(caches)) == 3
    assert gssapi.credentials[0]["store"]["client_keytab"] == "/keys"


def test_tickets_that_are_there_are_taken_from_their_cache(gssapi: ScriptedGssapi) -> None:
    initiate(KerberosLogin("kafka", None, None, "/tmp/tickets"), "node1")
    initiate(KerberosLogin("kafka", None, None, None), "node1")
    assert [given["store"] for given in gssapi.credentials] == [{"ccache": "/tmp/tickets"}, None]
    assert [given["name"] for given in gssapi.credentials] == [None, None]


def test_a_listener_takes_tickets_of_kerberos_for_its_principal_alone(gssapi: ScriptedGssapi) -> None:
    """Not those of other mechanisms that the system may have."""
    acceptor = Acceptor("kafka/node1@EAST", "/keys")
    (given,) = gssapi.credentials
    assert (given["name"].text, given["usage"], given["mechs"]) == ("kafka/node1@EAST", "accept", ["krb5"])
    context = acceptor.new_context()
    assert (context.client, context.unwrap(context.wrap(b"x"))) == ("alice@EAST", b"x")
    with pytest.raises(GssFailed, match=r"^Token header is malformed or corrupt$"):
        context.unwrap(b"x")


@pytest.mark.parametrize(("code", "may_pass"), [(1, False), (KDC_UNREACHABLE, True), (KDC_UNREACHABLE - 2**32, True)])
def test_a_kdc_that_is_away_may_come_back_and_other_failures_stay(
    gssapi: ScriptedGssapi, code: int, may_pass: bool
) -> None:
    gssapi.fails = GSSError("Cannot contact any KDC for realm 'EAST'", code)
    with pytest.raises(GssFailed) as raised:
        initiate(BY_KEY, "node1")
    assert str(raised.value) == "Cannot contact any KDC for realm 'EAST'"
    assert raised.value.may_pass is may_pass


def test_vulnerability_a_step_that_fails_is_not_taken_for_one_that_has_a_token(gssapi: ScriptedGssapi) -> None:
    """The library would return a token that tells the other side of the failure, and raise it a step later."""
    context = Acceptor("kafka/node1@EAST", "/keys").new_context()
    gssapi.fails = GSSError("Ticket expired")
    with pytest.raises(GssFailed, match="Ticket expired"):
        context.step(b"request")


def test_the_default_realm_is_that_of_a_name_without_one(gssapi: ScriptedGssapi) -> None:
    assert default_realm() == "EAST"
    gssapi.default_realm = None
    assert default_realm() == ""


def test_without_the_library_nothing_can_be_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    with pytest.raises(NoKerberos, match=r"pip install '\S+\[gssapi\]'"):
        Acceptor("kafka/node1@EAST", "/keys")
