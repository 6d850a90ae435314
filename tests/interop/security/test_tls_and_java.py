"""Java's clients over TLS at a node of ours; stores that `keytool` makes."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.config.parse import ConfigError
from ottla.security.tls.contexts import client_context, server_context
from tests.interop.apache_kafka import MAIN_CLASSES, ApacheKafkaError, java
from tests.interop.tls_node import TlsNode, tls_node
from tests.unit.security.tls import trial_certificates as trial

pytestmark = pytest.mark.interop

LINES = [f"line {number}" for number in range(200)]
PASSWORD = "sesame-open"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsNode]:
    with tls_node(tmp_path_factory.mktemp("certificates")) as running:
        yield running


def properties(node: TlsNode, name: str, shown: trial.Issued | None, **more: str) -> str:
    """A file with the settings of a Java client, in PEM."""
    settings = {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(node.directory / "ca.pem"),
        **{key.replace("_", "."): text for key, text in more.items()},
    }
    if shown is not None:
        store = node.directory / f"{name}-store.pem"
        store.write_bytes(shown.both)
        settings |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(store)}
    file = node.directory / f"{name}.properties"
    file.write_text("".join(f"{key}={text}\n" for key, text in settings.items()))
    return str(file)


def tool(name: str, address: str, config: str, *words: str, input: str | None = None) -> str:
    arguments = ("--bootstrap-server", address, "--command-config", config, *words)
    return java(MAIN_CLASSES[name], *arguments, input=input).stdout


@pytest.mark.parametrize("version", ["TLSv1.3", "TLSv1.2"])
def test_javas_console_clients_write_and_read(node: TlsNode, version: str) -> None:
    config = properties(node, f"alice-{version}", trial.client(), ssl_enabled_protocols=version)
    topic = f"java-{version}"
    tool("kafka-console-producer", node.mutual, config, "--topic", topic, input="\n".join(LINES) + "\n")
    read = tool(
        "kafka-console-consumer",
        node.mutual,
        config,
        "--topic",
        topic,
        "--from-beginning",
        "--max-messages",
        str(len(LINES)),
        "--timeout-ms",
        "60000",
    )
    assert read.splitlines() == LINES


@pytest.mark.parametrize("shown", [None, trial.impostor()])
def test_java_without_a_certificate_that_is_trusted_is_refused(node: TlsNode, shown: trial.Issued | None) -> None:
    config = properties(node, f"refused-{shown is None}", shown)
    with pytest.raises(ApacheKafkaError, match=r"SslAuthenticationException|SSL handshake failed"):
        tool("kafka-topics", node.mutual, config, "--list")


def test_java_refuses_a_node_of_another_authority(node: TlsNode) -> None:
    node.write("other-ca.pem", trial.authority("another CA").issued.certificate)
    config = properties(node, "mistrustful", None, ssl_truststore_location=str(node.directory / "other-ca.pem"))
    with pytest.raises(ApacheKafkaError, match="SSL handshake failed"):
        tool("kafka-topics", node.tls, config, "--list")


def keytool(*words: str) -> None:
    subprocess.run(["keytool", *words, "-storepass", PASSWORD, "-noprompt"], check=True, capture_output=True)


def stores_of(directory: Path, kind: str) -> dict[str, str]:
    """A key store and the trust store that goes with it, as people make them."""
    key, trust, certificate = directory / f"node.{kind}", directory / f"trust.{kind}", directory / f"{kind}.cert"
    keytool("-genkeypair", "-alias", "node", "-keyalg", "RSA", "-dname", "CN=node,O=Acme", "-keystore", str(key),
            "-storetype", kind, "-keypass", PASSWORD, "-ext", "SAN=dns:localhost", "-validity", "30")  # fmt: skip
    keytool("-exportcert", "-alias", "node", "-keystore", str(key), "-file", str(certificate), "-rfc")
    keytool("-importcert", "-alias", "ca", "-keystore", str(trust), "-storetype", kind, "-file", str(certificate))
    return {
        "ssl.keystore.location": str(key),
        "ssl.keystore.password": PASSWORD,
        "ssl.truststore.location": str(trust),
        "ssl.truststore.password": PASSWORD,
    }


def test_stores_that_keytool_makes_are_read(tmp_path: Path) -> None:
    from tests.unit.security.tls.test_contexts import talk

    stores = stores_of(tmp_path, "PKCS12")
    talk(server_context(stores), client_context(stores))


def test_the_line_that_converts_a_jks_store_does(tmp_path: Path) -> None:
    stores = stores_of(tmp_path, "JKS")
    with pytest.raises(ConfigError, match="keytool -importkeystore") as refused:
        server_context(stores)
    line = str(refused.value).partition("This converts it: ")[2]
    passwords = ["-srcstorepass", PASSWORD, "-deststorepass", PASSWORD]
    subprocess.run([*line.split(), *passwords, "-noprompt"], check=True, capture_output=True)
    converted = line.split()[line.split().index("-destkeystore") + 1]
    server_context({"ssl.keystore.location": converted, "ssl.keystore.password": PASSWORD})
