"""A listener with Kerberos: what is wrong with its settings is told by name when the node starts."""

import sys

import pytest

from ottla.config.parse import ConfigError, Values
from ottla.config.scopes import Scope, settings
from ottla.node.security.kerberos_acceptors import kerberos_mechanism
from ottla.security.sasl.jaas import parse_login

MODULE = "com.sun.security.auth.module.Krb5LoginModule required"
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
        "sasl.enabled.mechanisms=GSSAPI: it must be a list without it, or pip install 'ottla[gssapi]'"
    )
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


def test_a_key_table_that_is_not_there_is_told_of_at_start() -> None:
    pytest.importorskip("gssapi", reason="the extra gssapi is not installed")
    assert "a login whose key table has the key of its principal" in problem_of(KEY_TABLE)
