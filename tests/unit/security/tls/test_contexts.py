"""Settings make contexts that do what Java's TLS would do with them; what cannot be used is told by its setting."""

import os
import ssl
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)
from cryptography.x509 import load_pem_x509_certificate

from ottla.config.parse import ConfigError
from ottla.security.tls.cipher_suites import openssl_name
from ottla.security.tls.contexts import allowed_suites, client_context, server_context
from ottla.security.tls.key_files import MOST_BYTES
from ottla.security.tls.stores import read_material
from tests.unit.security.tls import trial_certificates as trial

NODE = trial.inline(trial.node(), trial.authority())
CLIENT = trial.inline(trial.client(), trial.authority())


def talk(
    server: ssl.SSLContext, client: ssl.SSLContext, host: str = "localhost"
) -> tuple[ssl.SSLObject, ssl.SSLObject]:
    """Both ends after their handshake, which raises what either of them has against the other."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        client.wrap_bio(to_client, to_server, server_hostname=host),
        server.wrap_bio(to_server, to_client, server_side=True),
    )
    left = list(ends)
    for _ in range(10):
        for end in list(left):
            try:
                end.do_handshake()
                left.remove(end)
            except ssl.SSLWantReadError:
                pass
    assert not left
    return ends


def refusal(values: Mapping[str, str], *, of_client: bool = False) -> str:
    with pytest.raises(ConfigError) as caught:
        (client_context if of_client else server_context)(values)
    assert "PRIVATE KEY" not in str(caught.value)
    return str(caught.value)


def test_pem_in_settings_is_enough_for_both_ends() -> None:
    client, _ = talk(server_context(NODE), client_context(CLIENT))
    assert client.version() == "TLSv1.3"


def test_pem_in_files_does_the_same(tmp_path: Path) -> None:
    (tmp_path / "node.pem").write_bytes(trial.node().both)
    (tmp_path / "ca.pem").write_bytes(trial.authority().issued.certificate)
    key = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(tmp_path / "node.pem")}
    trust = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(tmp_path / "ca.pem")}
    talk(server_context(key), client_context(trust))


def test_pem_whose_lines_have_become_blanks_is_read() -> None:
    """So it stands in a properties file."""
    one_line = {key: text.replace("\n", " ") for key, text in NODE.items()}
    talk(server_context(one_line), client_context(one_line))


def test_an_encrypted_key_needs_its_password() -> None:
    key = load_pem_private_key(trial.node().key, None)
    encrypted = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"sesame"))
    values = {**NODE, "ssl.keystore.key": encrypted.decode()}
    talk(server_context({**values, "ssl.key.password": "sesame"}), client_context(CLIENT))
    assert "ssl.key.password" in refusal({**values, "ssl.key.password": "other"})
    assert "ssl.key.password" in refusal(values)


def test_pkcs12_stores_are_read_whatever_java_calls_them(tmp_path: Path) -> None:
    key = load_pem_private_key(trial.node().key, None)
    certificate = load_pem_x509_certificate(trial.node().certificate)
    authority = load_pem_x509_certificate(trial.authority().issued.certificate)
    encryption = BestAvailableEncryption(b"sesame")
    (tmp_path / "node.p12").write_bytes(
        pkcs12.serialize_key_and_certificates(b"node", key, certificate, [authority], encryption)  # type: ignore[arg-type]
    )
    (tmp_path / "ca.p12").write_bytes(pkcs12.serialize_key_and_certificates(None, None, None, [authority], encryption))
    stores = {
        "ssl.keystore.location": str(tmp_path / "node.p12"),
        "ssl.keystore.password": "sesame",
        "ssl.truststore.location": str(tmp_path / "ca.p12"),
        "ssl.truststore.password": "sesame",
    }
    talk(server_context(stores), client_context(stores))
    talk(server_context({**stores, "ssl.keystore.type": "PKCS12"}), client_context(stores))
    assert "ssl.keystore.password" in refusal({**stores, "ssl.keystore.password": "other"})
    assert refusal({**stores, "ssl.keystore.password": ""}).startswith("ssl.keystore.password is missing")


def test_a_jks_store_is_refused_with_the_command_that_converts_it(tmp_path: Path) -> None:
    store = tmp_path / "node.jks"
    store.write_bytes(b"\xfe\xed\xfe\xed\0\0\0\2")
    told = refusal({"ssl.keystore.location": str(store), "ssl.keystore.password": "sesame"})
    assert f"keytool -importkeystore -srckeystore {store} -destkeystore {tmp_path / 'node.p12'}" in told


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({}, "ssl.keystore.location is missing"),
        ({"ssl.keystore.location": "/nowhere"}, "ssl.keystore.location=/nowhere"),
        ({**NODE, "ssl.keystore.type": "BCFKS"}, "ssl.keystore.type=BCFKS"),
        ({**NODE, "ssl.keystore.type": "JKS"}, "ssl.keystore.type=JKS"),
        ({**NODE, "ssl.keystore.location": "/x"}, "ssl.keystore.location=/x"),
        ({**NODE, "ssl.keystore.password": "x"}, "ssl.keystore.password=[hidden]"),
        ({**NODE, "ssl.keystore.certificate.chain": ""}, "ssl.keystore.certificate.chain is missing"),
        ({**NODE, "ssl.keystore.key": trial.client().key.decode()}, "ssl.keystore.key=[hidden]: it must be the key of"),
        ({**NODE, "ssl.keystore.key": "nonsense"}, "ssl.keystore.key=[hidden]"),
        ({**NODE, "ssl.truststore.certificates": "nonsense"}, "ssl.truststore.certificates=[hidden]"),
        ({**NODE, "ssl.truststore.location": "/x"}, "ssl.truststore.location=/x"),
        ({**NODE, "ssl.truststore.password": "x"}, "ssl.truststore.password=[hidden]"),
        ({**NODE, "ssl.truststore.type": "JKS"}, "ssl.truststore.type=JKS"),
        ({**NODE, "ssl.enabled.protocols": "TLSv1.4"}, "ssl.enabled.protocols=TLSv1.4"),
        ({**NODE, "ssl.protocol": "SSLv3"}, "ssl.protocol=SSLv3"),
        ({**NODE, "ssl.cipher.suites": "TLS_OWN_SUITE"}, "ssl.cipher.suites=TLS_OWN_SUITE"),
        (
            {**NODE, "ssl.enabled.protocols": "TLSv1.2", "ssl.cipher.suites": "TLS_AES_128_GCM_SHA256"},
            "ssl.cipher.suites=TLS_AES_128_GCM_SHA256",
        ),
    ],
)
def test_what_cannot_be_used_is_told_by_its_setting(values: dict[str, str], named: str) -> None:
    assert refusal(values).startswith(named)


def _fifo(path: Path) -> Path:
    os.mkfifo(path)
    return path


def _huge(path: Path) -> Path:
    with path.open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    return path


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (_fifo, "not a regular file"),
        (_huge, "more than 8 MiB"),
        (lambda _: Path("/dev/zero"), "not a regular file"),
        (lambda path: path.parent, "Is a directory|not a regular file"),
        (lambda path: path, "No such file or directory"),
        (lambda path: Path(f"{path}\0"), "null byte"),
    ],
    ids=["fifo", "huge", "device", "directory", "nothing", "null"],
)
def test_only_a_regular_file_of_some_size_is_read(tmp_path: Path, make: Callable[[Path], Path], reason: str) -> None:
    """Its path may come over the network: nothing waits for a FIFO, and no device is read to its end."""
    location = make(tmp_path / "store")
    with pytest.raises(ConfigError, match=reason):
        read_material({"ssl.truststore.type": "PEM", "ssl.truststore.location": str(location)})


def test_a_client_takes_https_or_nothing_for_the_identification_of_endpoints() -> None:
    assert "https" in refusal({**CLIENT, "ssl.endpoint.identification.algorithm": "ldaps"}, of_client=True)


def test_versions_are_those_that_are_enabled() -> None:
    old = {**NODE, "ssl.enabled.protocols": "TLSv1.2"}
    assert talk(server_context(old), client_context(CLIENT))[0].version() == "TLSv1.2"
    with pytest.raises(ssl.SSLError):
        talk(server_context(old), client_context({**CLIENT, "ssl.enabled.protocols": "TLSv1.3"}))


def test_suites_of_tls_1_2_alone_leave_only_that() -> None:
    chosen = {**NODE, "ssl.cipher.suites": "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"}
    cipher = talk(server_context(chosen), client_context(CLIENT))[0].cipher()
    assert cipher is not None
    assert cipher[:2] == ("ECDHE-ECDSA-AES256-GCM-SHA384", "TLSv1.2")


def test_some_suites_of_tls_1_3_are_known_to_be_the_allowed_ones() -> None:
    assert allowed_suites({"ssl.cipher.suites": ("TLS_AES_128_GCM_SHA256",)}) == {"TLS_AES_128_GCM_SHA256"}
    assert allowed_suites({}) is None


@pytest.mark.parametrize(
    ("java", "openssl"),
    [
        ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
        ("TLS_RSA_WITH_AES_256_CBC_SHA", "AES256-SHA"),
        ("TLS_DHE_RSA_WITH_AES_128_CBC_SHA256", "DHE-RSA-AES128-SHA256"),
        ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"),
        ("ECDHE-RSA-AES128-SHA", "ECDHE-RSA-AES128-SHA"),
    ],
)
def test_suites_have_java_names_and_openssl_names(java: str, openssl: str) -> None:
    assert openssl_name(java) == openssl
    ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).set_ciphers(openssl + ":@SECLEVEL=0")


@pytest.mark.parametrize(
    ("shown", "host", "reason"),
    [
        (trial.expired(), "localhost", "expired"),
        (trial.impostor(), "localhost", "unable to get local issuer"),
        (trial.elsewhere(), "localhost", "Hostname mismatch"),
        (trial.node(), "127.0.0.2", "IP address mismatch"),
    ],
)
def test_a_client_refuses_a_server_that_it_cannot_believe(shown: trial.Issued, host: str, reason: str) -> None:
    server = server_context(trial.inline(shown, None))
    with pytest.raises(ssl.SSLCertVerificationError, match=reason):
        talk(server, client_context(CLIENT), host)


def test_names_are_not_compared_without_an_algorithm() -> None:
    server = server_context(trial.inline(trial.elsewhere(), None))
    talk(server, client_context({**CLIENT, "ssl.endpoint.identification.algorithm": ""}))


@pytest.mark.parametrize(("asked", "shown", "is_let_in"), [
    ("none", None, True),
    ("none", trial.client(), True),
    ("requested", None, True),
    ("requested", trial.client(), True),
    ("requested", trial.impostor(), False),
    ("required", None, False),
    ("required", trial.client(), True),
    ("required", trial.impostor(), False),
    ("required", trial.expired(), False),
])  # fmt: skip
def test_clients_are_asked_for_certificates_as_the_setting_says(
    asked: str, shown: trial.Issued | None, is_let_in: bool
) -> None:
    server = server_context({**NODE, "ssl.client.auth": asked})
    client = client_context(trial.inline(shown, trial.authority()))
    if is_let_in:
        certificate = talk(server, client)[1].getpeercert(binary_form=True)
        assert (certificate is not None) == (asked != "none" and shown is not None)
    else:
        with pytest.raises(ssl.SSLError):
            talk(server, client)


def test_a_certificate_in_the_trust_store_is_trusted_whoever_signed_it() -> None:
    """As Java does: a node's own certificate may be all that its clients trust."""
    pinned = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": trial.node().certificate.decode()}
    talk(server_context(NODE), client_context(pinned))


def test_material_is_equal_as_long_as_nothing_changes(tmp_path: Path) -> None:
    file = tmp_path / "node.pem"
    file.write_bytes(trial.node().both)
    values = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(file)}
    before = read_material(values)
    assert read_material(values) == before
    file.write_bytes(trial.expired().both)
    assert read_material(values) != before
    assert "PRIVATE" not in repr(before)


def test_reading_settings_without_a_context_loads_no_openssl() -> None:
    program = "import sys, ottla.security.tls.contexts, ottla.security.tls.stores; sys.exit('_ssl' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)
