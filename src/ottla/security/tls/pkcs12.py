"""Key stores and trust stores in PKCS12, as `keytool` makes them. Needs `cryptography` (the extra `security`)."""

from typing import Any

from ottla.base.installing import install_command
from ottla.security.tls.stores import KeyMaterial, wrong


def read_key_store(location: str, data: bytes, password: str) -> KeyMaterial:
    """The key in the store, and its certificates. Raises `ConfigError`."""
    store = _load("ssl.keystore", location, data, password)
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    if store.key is None or store.cert is None:
        raise wrong("ssl.keystore.location", location, "a key store with a private key and its certificate")
    certificates = [store.cert, *store.additional_certs]
    chain = b"".join(one.certificate.public_bytes(Encoding.PEM) for one in certificates)
    key: bytes = store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return KeyMaterial(chain, key, None, "ssl.keystore.location")


def read_trust_store(location: str, data: bytes, password: str | None) -> bytes:
    """The certificates in the store, in PEM. Raises `ConfigError`."""
    store = _load("ssl.truststore", location, data, password)
    from cryptography.hazmat.primitives.serialization import Encoding

    certificates = [*([store.cert] if store.cert is not None else ()), *store.additional_certs]
    if not certificates:
        raise wrong("ssl.truststore.location", location, "a trust store with at least one certificate")
    return b"".join(one.certificate.public_bytes(Encoding.PEM) for one in certificates)


def _load(setting: str, location: str, data: bytes, password: str | None) -> Any:
    try:
        from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12
    except ImportError:
        raise wrong(
            f"{setting}.location",
            location,
            "PEM (`openssl pkcs12 -in FILE -out FILE.pem` converts it), or PKCS12 with the library "
            f"that reads it: {install_command('security')}",
        ) from None
    try:
        return load_pkcs12(data, password.encode() if password is not None else None)
    except ValueError as problem:
        raise wrong(
            f"{setting}.location", location, f"a PKCS12 file that {setting}.password opens ({problem})"
        ) from problem
