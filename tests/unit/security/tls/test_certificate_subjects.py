"""Who a certificate names, and which principal that is; tests/interop/security/test_certificate_names.py asks Java."""

import ssl

import pytest
from cryptography.x509 import Name, NameAttribute
from cryptography.x509.oid import NameOID

from ottla.config.parse import ConfigError
from ottla.security.tls.distinguished_names import alternative_names_of, subject_of
from ottla.security.tls.principal_mapping import NoRuleMatches, PrincipalMapping
from tests.unit.security.tls import trial_certificates as trial


def der(issued: trial.Issued) -> bytes:
    return ssl.PEM_cert_to_DER_cert(issued.certificate.decode())


def test_the_last_part_of_a_name_comes_first() -> None:
    name = Name(
        [
            NameAttribute(NameOID.COUNTRY_NAME, "NL"),
            NameAttribute(NameOID.ORGANIZATION_NAME, "Acme, Inc."),
            NameAttribute(NameOID.COMMON_NAME, "alice"),
        ]
    )
    assert subject_of(der(trial.authority().issue(name))) == "CN=alice,O=Acme\\, Inc.,C=NL"


def test_attributes_without_a_short_name_are_in_hexadecimal() -> None:
    name = Name([NameAttribute(NameOID.EMAIL_ADDRESS, "a@b.c"), NameAttribute(NameOID.COMMON_NAME, "mail")])
    assert subject_of(der(trial.authority().issue(name))) == "CN=mail,1.2.840.113549.1.9.1=#16056140622e63"


def test_alternative_names_are_compared_as_they_are_encoded() -> None:
    assert alternative_names_of(der(trial.node())) == alternative_names_of(der(trial.expired()))
    assert len(alternative_names_of(der(trial.node()))) == len(trial.HERE)
    assert alternative_names_of(der(trial.client())) == frozenset()


@pytest.mark.parametrize("data", [b"", b"\x30", b"\x30\x05abc", b"\x30\x80", b"\x30\x02\x05\x00", bytes(40)])
def test_what_is_no_certificate_has_no_subject(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"element|length|certificate"):
        subject_of(data)


def test_the_first_rule_that_matches_counts() -> None:
    mapping = PrincipalMapping("RULE:^CN=(.*?),OU=Nodes.*$/$1/U, RULE:^CN=(.*?),.*$/$1@acme/L, DEFAULT")
    assert mapping.name_of("CN=n1,OU=Nodes,C=NL") == "N1"
    assert mapping.name_of("CN=Alice,OU=People") == "alice@acme"
    assert mapping.name_of("O=Acme") == "O=Acme"


def test_without_a_rule_that_matches_there_is_no_principal() -> None:
    with pytest.raises(NoRuleMatches, match="O=Acme"):
        PrincipalMapping("RULE:^CN=(.*)$/$1/").name_of("O=Acme")


@pytest.mark.parametrize("text", ["RULE:^CN=(.*)$/$1", "RULE:^CN=(/$1/", "RULE:a/$1/", "ANYTHING", "RULE:a/b/X"])
def test_rules_that_cannot_be_read_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"ssl\.principal\.mapping\.rules="):
        PrincipalMapping(text)
