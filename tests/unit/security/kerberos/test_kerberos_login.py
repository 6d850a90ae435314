"""Logins by Kerberos: what the options of JAAS ask for, and what is said where the extra is not installed."""

import sys

import pytest

from ottla import Producer
from ottla.config.parse import ConfigError
from ottla.security.kerberos.kerberos_login import KerberosLogin, WrongLogin, kerberos_login
from ottla.security.sasl.jaas import parse_login

MODULE = "com.sun.security.auth.module.Krb5LoginModule required"
KEY_TABLE = 'useKeyTab=true storeKey=true keyTab="/k" principal="kafka/n@R"'


def login(options: str, service: str | None = None) -> KerberosLogin:
    return kerberos_login(parse_login(f"{MODULE} {options};"), service)


def test_a_key_table_counts_before_a_cache_of_tickets() -> None:
    assert login(KEY_TABLE, "kafka") == ("kafka", "kafka/n@R", "/k", None)
    assert login(f"{KEY_TABLE} useTicketCache=true", "kafka") == ("kafka", "kafka/n@R", "/k", None)


def test_tickets_that_are_there_are_the_systems_or_those_of_a_cache() -> None:
    assert login("useTicketCache=true", "kafka") == ("kafka", None, None, None)
    options = 'useTicketCache=true ticketCache="/tmp/c" principal="alice@R" serviceName="kafka"'
    assert login(options) == ("kafka", "alice@R", None, "/tmp/c")


@pytest.mark.parametrize(
    ("options", "service", "told"),
    [
        (KEY_TABLE, None, "sasl.kerberos.service.name"),
        (f'{KEY_TABLE} serviceName="other"', "kafka", "serviceName"),
        ("", "kafka", "useKeyTab=true"),
        ("useKeyTab=false useTicketCache=false", "kafka", "useKeyTab=true"),
        ("useKeyTab=true principal=a", "kafka", "keyTab and principal"),
        ('useKeyTab=true keyTab="/k"', "kafka", "keyTab and principal"),
        ("useTicketCache=true useFirstPass=true", "kafka", "useFirstPass"),
    ],
)
def test_a_login_that_cannot_work_is_refused_by_the_name_of_what_is_missing(
    options: str, service: str | None, told: str
) -> None:
    with pytest.raises(WrongLogin, match=told):
        login(options, service)


CLIENT = {
    "bootstrap.servers": "127.0.0.1:1",
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.jaas.config": f"{MODULE} {KEY_TABLE};",
    "sasl.kerberos.service.name": "kafka",
}


def test_a_client_without_the_extra_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    with pytest.raises(ConfigError, match=r"sasl\.mechanism=GSSAPI.*pip install '\S+\[gssapi\]'"):
        Producer(CLIENT)


def test_a_client_without_a_login_is_told_which_mechanism_it_is_taken_to_mean() -> None:
    with pytest.raises(ConfigError, match=r"sasl\.jaas\.config is missing.*unless GSSAPI is meant"):
        Producer({**CLIENT, "sasl.jaas.config": None})
