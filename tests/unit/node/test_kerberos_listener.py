"""A listener with Kerberos: what is wrong with its settings is told by name when the node starts."""

import sys
from types import SimpleNamespace

import pytest

from ottla.config.parse import ConfigError, Values
from ottla.config.scopes import Scope, settings
from ottla.node.security.kerberos_acceptors import kerberos_mechanism
from ottla.node.security.node_tickets import ticket_login
from ottla.security.kerberos.gss_context import GssFailed
from ottla.security.kerberos.kerberos_login import KerberosLogin
from ottla.security.sasl.jaas import parse_login
from ottla.testing.step_workers import StepWorkers
from tests.unit.security.kerberos.scripted_gssapi import GSSError, ScriptedGssapi

MODULE = "com.sun.security.auth.module.Krb5LoginModule required"
INTER_BROKER = "sasl.mechanism.inter.broker.protocol"
KEY_TABLE = 'useKeyTab=true keyTab="/there/is/none" principal="kafka/node@REALM"'


def problem_of(login: str | None, **given: str | None) -> str:
    named = {"sasl.kerberos.service.name": "kafka"} | {key.replace("_", "."): value for key, value in given.items()}
    values = Values(named, settings(Scope.BROKER))
    with pytest.raises(ConfigError) as raised:
        kerberos_mechanism(values, "INTERNAL", None if login is None else parse_login(f"{MODULE} {login};"))
    return str(raised.value)


def test_without_the_extra_a_node_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    problem = problem_of(KEY_TABLE)
    assert problem.startswith(
        "sasl.enabled.mechanisms=GSSAPI: it must be another mechanism, or installed: pip install "
    )
    assert "[gssapi]'" in problem
    assert "libkrb5" in problem


@pytest.mark.parametrize(
    ("login", "told"),
    [(None, "a login of com.sun.security"), ("", "useKeyTab=true"), ("useTicketCache=true", "useKeyTab=true")],
)
def test_a_login_that_no_client_can_be_checked_with_is_refused(login: str | None, told: str) -> None:
    problem = problem_of(login)
    assert problem.startswith("listener.name.internal.gssapi.sasl.jaas.config=[hidden]: ")
    assert told in problem


def test_a_node_has_to_know_what_its_service_is_called() -> None:
    assert "sasl.kerberos.service.name" in problem_of(KEY_TABLE, sasl_kerberos_service_name=None)


def test_a_key_table_that_is_not_there_is_told_of_at_start(monkeypatch: pytest.MonkeyPatch) -> None:
    library = ScriptedGssapi(fails=GSSError("No key table entry found for kafka/node@REALM"))
    monkeypatch.setitem(sys.modules, "gssapi", library)  # type: ignore[arg-type]
    problem = problem_of(KEY_TABLE)
    assert "a login whose key table has the key of its principal (No key table entry found" in problem


def test_a_node_that_only_connects_to_others_says_how_to_install_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    values = Values({"sasl.kerberos.service.name": "kafka"}, settings(Scope.BROKER))
    with pytest.raises(ConfigError, match=r"pip install '\S+\[gssapi\]'"):
        ticket_login(SimpleNamespace(), values, "INTERNAL", INTER_BROKER, parse_login(f"{MODULE} {KEY_TABLE};"))  # type: ignore[arg-type]


def test_a_node_has_a_ticket_for_each_host_made_by_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """The KDC may take a while, and the node's loop does not wait for it."""
    told: list[object] = []

    def initiate(login: KerberosLogin, host: str) -> str:
        if host == "unknown":
            raise GssFailed("Server not found in Kerberos database")
        return f"{login.principal} at {login.service}@{host}"

    monkeypatch.setitem(sys.modules, "gssapi", ScriptedGssapi())  # type: ignore[arg-type]
    monkeypatch.setattr("ottla.node.security.node_tickets.initiate", initiate)
    workers = StepWorkers()
    workers.hold()
    world = SimpleNamespace(workers=workers)
    values = Values({"sasl.kerberos.service.name": "kafka"}, settings(Scope.BROKER))
    login = ticket_login(world, values, "INTERNAL", INTER_BROKER, parse_login(f"{MODULE} {KEY_TABLE};"))  # type: ignore[arg-type]
    login("node2", told.append, told.append)
    assert told == []
    login("unknown", told.append, told.append)
    workers.let_go()
    assert [str(one) for one in told] == [
        "kafka/node@REALM at kafka@node2",
        "Kerberos gives no ticket for unknown: Server not found in Kerberos database",
    ]
