"""Our clients with keys and certificates in PKCS12, as Java's tools write them, at a node that wants certificates."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, load_pem_private_key, pkcs12
from cryptography.x509 import load_pem_x509_certificate

from ottla import Admin, aio
from ottla.config.parse import ConfigError
from ottla.errors import SslAuthenticationFailed
from ottla.security.tls.issuing import Authority, Issued
from ottla.testing import Broker

PASSWORD = "sesame"


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority("own", datetime.now(UTC))


@pytest.fixture(scope="module")
def broker(authority: Authority) -> Iterator[Broker]:
    node = authority.issue("node", ("localhost",))
    settings = {
        "listener.name.secured.ssl.keystore.key": node.key.decode(),
        "listener.name.secured.ssl.keystore.certificate.chain": node.certificate.decode(),
        "listener.name.secured.ssl.truststore.type": "PEM",
        "listener.name.secured.ssl.truststore.certificates": authority.issued.certificate.decode(),
        "listener.name.secured.ssl.client.auth": "required",
    }
    with Broker(settings, security="SSL") as broker:
        yield broker


def store(file: Path, issued: Issued | None, authority: Authority) -> str:
    """A key with its certificate and the authority's; or the latter alone."""
    trusted = load_pem_x509_certificate(authority.issued.certificate)
    encryption = BestAvailableEncryption(PASSWORD.encode())
    if issued is None:
        written = pkcs12.serialize_java_truststore([pkcs12.PKCS12Certificate(trusted, b"ca")], encryption)
    else:
        key, own = load_pem_private_key(issued.key, None), load_pem_x509_certificate(issued.certificate)
        written = pkcs12.serialize_key_and_certificates(b"client", key, own, [trusted], encryption)  # type: ignore[arg-type]
    file.write_bytes(written)
    return str(file)


@pytest.fixture
def settings(broker: Broker, authority: Authority, tmp_path: Path) -> dict[str, str]:
    return {
        "bootstrap.servers": broker.bootstrap,
        "security.protocol": "SSL",
        "ssl.keystore.location": store(tmp_path / "alice.p12", authority.issue("alice"), authority),
        "ssl.keystore.password": PASSWORD,
        "ssl.keystore.type": "PKCS12",
        "ssl.truststore.location": store(tmp_path / "ca.p12", None, authority),
        "ssl.truststore.password": PASSWORD,
        "ssl.truststore.type": "PKCS12",
    }


def test_a_client_shows_the_certificate_of_its_store(settings: dict[str, str]) -> None:
    with Admin(settings) as admin:
        admin.list_topics()


def test_an_asyncio_client_does_the_same(settings: dict[str, str]) -> None:
    async def scene() -> None:
        async with aio.Admin(settings) as admin:
            await admin.list_topics()

    asyncio.run(scene())


def test_a_store_of_another_authority_gets_nowhere(settings: dict[str, str], tmp_path: Path) -> None:
    other = Authority("other", datetime.now(UTC))
    own = {**settings, "ssl.keystore.location": store(tmp_path / "mallory.p12", other.issue("alice"), other)}
    with Admin(own) as admin, pytest.raises(SslAuthenticationFailed):
        admin.list_topics()
    trusting = {**settings, "ssl.truststore.location": store(tmp_path / "other.p12", None, other)}
    with (
        Admin(trusting) as admin,
        pytest.raises(SslAuthenticationFailed, match=r"is of no CA that ssl\.truststore"),
    ):
        admin.list_topics()


def test_a_wrong_password_of_a_store_is_told_when_the_client_is_made_and_not_shown(settings: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"ssl\.keystore\.password") as raised:
        Admin({**settings, "ssl.keystore.password": "not-the-password"})
    assert "not-the-password" not in str(raised.value)
