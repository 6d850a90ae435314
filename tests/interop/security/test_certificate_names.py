"""Names of certificates and the rules that map them, beside Java's and Apache Kafka's own."""

from pathlib import Path

import pytest
from cryptography.x509 import Name, NameAttribute, ObjectIdentifier, RelativeDistinguishedName
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import NameOID

from ottla.config.parse import ConfigError
from ottla.security.tls.der import first_element
from ottla.security.tls.distinguished_names import name_text
from ottla.security.tls.principal_mapping import NoRuleMatches, PrincipalMapping
from tests.interop.apache_kafka import java

pytestmark = pytest.mark.interop

PROGRAM = Path(__file__).with_name("NamesOfCertificates.java")
CN, ORGANIZATION = NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME

NAMES = [
    Name([NameAttribute(CN, "alice")]),
    Name(
        [
            NameAttribute(NameOID.COUNTRY_NAME, "NL"),
            NameAttribute(ORGANIZATION, "Acme, Inc."),
            NameAttribute(CN, "alice"),
        ]
    ),
    Name([NameAttribute(CN, 'a=b+c"\\<>;#d')]),
    Name([NameAttribute(CN, "  lead and trail ")]),
    Name([NameAttribute(CN, "  ")]),
    Name([NameAttribute(CN, "#x")]),
    Name([NameAttribute(CN, "Łukasz Müller \U0001f600")]),
    Name([NameAttribute(CN, "zero\0inside")]),
    Name([NameAttribute(CN, "line\nbreak\tand tab")]),
    Name(
        [
            NameAttribute(CN, "wide", _ASN1Type.BMPString),
            NameAttribute(ORGANIZATION, "wider", _ASN1Type.UniversalString),
        ]
    ),
    Name([NameAttribute(NameOID.EMAIL_ADDRESS, "a@b.c"), NameAttribute(CN, "mail")]),
    Name([NameAttribute(NameOID.SERIAL_NUMBER, "77"), NameAttribute(NameOID.TITLE, "Dr"), NameAttribute(CN, "x")]),
    Name([NameAttribute(NameOID.STREET_ADDRESS, "Main 1"), NameAttribute(NameOID.STATE_OR_PROVINCE_NAME, "Utrecht")]),
    Name([NameAttribute(NameOID.DOMAIN_COMPONENT, "com"), NameAttribute(NameOID.USER_ID, "u1")]),
    Name([NameAttribute(ObjectIdentifier("1.2.3.4.5555.6"), "own"), NameAttribute(NameOID.LOCALITY_NAME, "Ghent")]),
    Name([RelativeDistinguishedName([NameAttribute(NameOID.USER_ID, "u"), NameAttribute(CN, "two")])]),
]

RULES = [
    ("DEFAULT", "CN=a,O=b"),
    ("", "CN=a,O=b"),
    ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/,DEFAULT", "CN=duke,OU=ServiceUsers,O=Org"),
    ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/,DEFAULT", "CN=duke,OU=Others,O=Org"),
    ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", "CN=duke,OU=Others,O=Org"),
    ("RULE:^CN=(.*?), OU=(.*?), O=(.*?)$/$1@$2/L, DEFAULT", "CN=Duke, OU=SME, O=Org"),
    ("RULE:^CN=(.*?), OU=(.*?)$/$1@$2/U", "CN=Duke, OU=sme"),
    ("RULE:^cn=(.*?),.*$/$1/L", "CN=Duke,OU=sme"),
    ("RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U", "CN=Duke,OU=sme"),
    ("RULE:.*/fixed/", "CN=Duke"),
    ("RULE:.+/fixed/", "CN=Duke"),
    ("RULE:^CN=([^,]*).*$/$1\\/x/", "CN=Duke,OU=sme"),
    ("RULE:^CN=(a)(b)?$/$1-$2/", "CN=a"),
    ("RULE:^CN=(.*)$/\\$1/", "CN=a"),
    ("RULE:^CN=(.*)$/$1/X", "CN=a"),
    ("RULE:^CN=(.*)$/$1", "CN=a"),
    ("RULE:^CN=(.*)$//", "CN=a"),
    ("RULE:", "CN=a"),
    ("SOMETHING", "CN=a"),
    ("DEFAULTX", "CN=a"),
    ("DEFAULT,RULE:a/b/", "CN=a"),
    ("RULE:a/b/,DEFAULT,", "CN=a"),
    ("RULE:^CN=(.*)$/$1/LU", "CN=a"),
    ("RULE:^CN=(/$1/", "CN=a"),
]


def made_by_java(lines: list[str]) -> list[str]:
    return java(str(PROGRAM), input="\n".join(lines)).stdout.split("\n")[:-1]


def test_names_are_written_as_java_writes_them() -> None:
    encoded = [name.public_bytes() for name in NAMES]
    simple = [one for name, one in zip(NAMES, encoded, strict=True) if "\n" not in name.rfc4514_string()]
    javas = made_by_java([f"name {one.hex()}" for one in simple])
    ours = [name_text(first_element(one)) for one in simple]
    assert [pair for pair in zip(ours, javas, strict=True) if pair[0] != pair[1]] == []


def mapped(rules: str, name: str) -> str:
    try:
        return PrincipalMapping(rules).name_of(name)
    except ConfigError:
        return "WRONG RULES"
    except NoRuleMatches:
        return "NO RULE"


def test_rules_map_names_as_kafka_maps_them() -> None:
    javas = made_by_java([f"map  {rules}\t{name}" for rules, name in RULES])
    ours = [mapped(rules, name) for rules, name in RULES]
    unlike = [(*given, mine, its) for given, mine, its in zip(RULES, ours, javas, strict=True) if mine != its]
    assert unlike == []
