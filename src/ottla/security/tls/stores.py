"""Our key and certificates, and the certificates that we trust: what `ssl.keystore.*` and `ssl.truststore.*` say.

Both come as PEM, in files or in the settings themselves (KIP-651), or from PKCS12 files. Stores in Java's own form
(JKS) are refused with the command that converts them: no library that reads them is kept up.

What cannot be used is a `ConfigError` that names the setting. Secrets are never part of one.
"""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from ottla.config.parse import ConfigError, Problem
from ottla.config.values import HIDDEN, Password, Value
from ottla.security.tls.key_files import UnreadableFile, read_file

PEM: Final = "PEM"
_TYPES: Final = (PEM, "PKCS12", "JKS")
_JKS_BEGINNINGS: Final = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
_BEGIN_CERTIFICATE: Final = b"-----BEGIN CERTIFICATE-----"
_END_CERTIFICATE: Final = b"-----END CERTIFICATE-----"
_BLOCK: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)


class KeyMaterial(NamedTuple):
    """A private key and the certificates that go with it, ours first. All in PEM."""

    chain: bytes
    key: bytes
    password: str | None
    key_setting: str
    """The setting that they come from, for messages."""

    def __repr__(self) -> str:
        return f"KeyMaterial({self.key_setting}={HIDDEN})"


class Material(NamedTuple):
    """What a context is made of. Two of them are equal if nothing in the files and settings has changed."""

    key: KeyMaterial | None
    trusted: bytes | None
    """Certificates in PEM; None is those that the system trusts."""


def read_material(values: Mapping[str, Value]) -> Material:
    """Reads the files. Raises `ConfigError`."""
    return Material(_read_key(values), _read_trusted(values))


def certificates_of(pem: bytes) -> list[bytes]:
    """The certificates in a text, each in PEM."""
    pieces = pem.split(_BEGIN_CERTIFICATE)[1:]
    return [_BEGIN_CERTIFICATE + piece.partition(_END_CERTIFICATE)[0] + _END_CERTIFICATE + b"\n" for piece in pieces]


# Our own


def _read_key(values: Mapping[str, Value]) -> KeyMaterial | None:
    kind = _type_of(values, "ssl.keystore.type")
    location, password = _text(values, "ssl.keystore.location"), _text(values, "ssl.keystore.password")
    key, chain = _text(values, "ssl.keystore.key"), _text(values, "ssl.keystore.certificate.chain")
    if key is None and chain is None and location is None:
        return None
    if key is not None or chain is not None:
        if kind != PEM:
            raise wrong("ssl.keystore.type", kind, "PEM where ssl.keystore.key is given")
        if location is not None:
            raise wrong("ssl.keystore.location", location, "left out where ssl.keystore.key is given")
        if key is None or chain is None:
            missing = "ssl.keystore.key" if key is None else "ssl.keystore.certificate.chain"
            raise wrong(missing, None, "given: a key and its certificates go together")
    if kind == PEM and password is not None:
        raise wrong("ssl.keystore.password", HIDDEN, "left out for PEM: ssl.key.password is for the key")
    key_password = _text(values, "ssl.key.password")
    if location is None:
        assert key is not None
        assert chain is not None
        return KeyMaterial(_pem_lines(chain), _pem_lines(key), key_password, "ssl.keystore.key")
    data = _read_file("ssl.keystore.location", location)
    _refuse_jks("ssl.keystore.location", location, data)
    if kind == PEM:
        return KeyMaterial(data, data, key_password, "ssl.keystore.location")
    if password is None:
        raise wrong("ssl.keystore.password", None, f"given for a key store of the type {kind}")
    from ottla.security.tls.pkcs12 import read_key_store

    return read_key_store(location, data, password)


# Whom we trust


def _read_trusted(values: Mapping[str, Value]) -> bytes | None:
    kind = _type_of(values, "ssl.truststore.type")
    location, password = _text(values, "ssl.truststore.location"), _text(values, "ssl.truststore.password")
    inline = _text(values, "ssl.truststore.certificates")
    if inline is None and location is None:
        return None
    if inline is not None and kind != PEM:
        raise wrong("ssl.truststore.type", kind, "PEM where ssl.truststore.certificates is given")
    if inline is not None and location is not None:
        raise wrong("ssl.truststore.location", location, "left out where ssl.truststore.certificates is given")
    if kind == PEM and password is not None:
        raise wrong("ssl.truststore.password", HIDDEN, "left out for PEM, which has none")
    if location is None:
        assert inline is not None
        return _only_certificates("ssl.truststore.certificates", HIDDEN, _pem_lines(inline))
    data = _read_file("ssl.truststore.location", location)
    _refuse_jks("ssl.truststore.location", location, data)
    if kind == PEM:
        return _only_certificates("ssl.truststore.location", location, data)
    from ottla.security.tls.pkcs12 import read_trust_store

    return read_trust_store(location, data, password)


def _only_certificates(key: str, text: str, pem: bytes) -> bytes:
    certificates = certificates_of(pem)
    if not certificates:
        raise wrong(key, text, "PEM with at least one certificate")
    return b"".join(certificates)


# What both need


def _type_of(values: Mapping[str, Value], key: str) -> str:
    text = _text(values, key) or "JKS"
    if text.upper() not in _TYPES:
        raise wrong(key, text, "PEM, PKCS12 or JKS")
    return text.upper()


def _text(values: Mapping[str, Value], key: str) -> str | None:
    """What is given. Java's clients take an empty location for none."""
    value = values.get(key)
    if isinstance(value, Password):
        value = value.secret
    return str(value) if value not in (None, "") else None


def _pem_lines(text: str) -> bytes:
    """PEM from a setting. In a properties file it is often one line, whose breaks have become blanks."""
    lines: list[str] = []
    for label, body in _BLOCK.findall(text):
        lines.append(f"-----BEGIN {label}-----")
        lines += body.strip().splitlines() if "\n" in body.strip() else body.split()
        lines.append(f"-----END {label}-----\n")
    return "\n".join(lines).encode()


def _read_file(key: str, location: str) -> bytes:
    try:
        return read_file(location)
    except UnreadableFile as problem:
        raise wrong(key, location, f"a file that can be read ({problem})") from problem


def _refuse_jks(key: str, location: str, data: bytes) -> None:
    if data.startswith(_JKS_BEGINNINGS):
        converted = location.removesuffix(".jks") + ".p12"
        raise wrong(
            key,
            location,
            "PEM or PKCS12, and is a JKS file. This converts it: keytool -importkeystore "
            f"-srckeystore {location} -destkeystore {converted} -deststoretype PKCS12",
        )


def wrong(key: str, text: str | None, bound: str) -> ConfigError:
    return ConfigError((Problem(key, text, bound),))
