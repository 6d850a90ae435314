"""What a new cluster on this machine needs for TLS and logins, and what its clients need: made of nothing.

DIR/security/ca.pem, node.pem     an authority for trying things out, and the nodes' certificate
DIR/client.properties             for `--command-config` of every tool, and `from_properties` of clients

Nodes log in to each other as `admin`, and so do the tools with that file, over the same listeners. The password is the
cluster's own, and is in files that only their owner reads.
"""

import os
from pathlib import Path
from secrets import token_urlsafe
from typing import Final

PROTOCOLS: Final = ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")
_HOSTS: Final = ("localhost", "127.0.0.1", "::1")
_USER: Final = "admin"
_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
_LISTENERS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


def client_properties(directory: Path) -> Path:
    return directory / "client.properties"


def security_of(listeners: str) -> str:
    """The protocol of a cluster, by the `listeners` of one of its brokers."""
    name = listeners.partition("://")[0]
    return name.lower() if name in _LISTENERS else PROTOCOLS[0]


def secure(directory: Path, protocol: str) -> dict[str, str]:
    """The settings that all nodes have; writes the files. For `plaintext` there are neither."""
    name = protocol.upper()
    if protocol == PROTOCOLS[0]:
        return {}
    nodes = {
        "listener.security.protocol.map": f"{name}:{name},CONTROLLER:{name}",
        "inter.broker.listener.name": name,
    }
    clients = {"security.protocol": name}
    if protocol.endswith("ssl"):
        authority, node = _make_certificates(directory / "security")
        trust = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(authority)}
        nodes |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(node), **trust}
        clients |= trust
    if protocol.startswith("sasl"):
        password = token_urlsafe(16)
        login = f'{_MODULE} required username="{_USER}" password="{password}"'
        users = f'{login} user_{_USER}="{password}";'
        nodes |= {
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "sasl.mechanism.controller.protocol": "PLAIN",
            f"listener.name.{name.lower()}.plain.sasl.jaas.config": users,
            "listener.name.controller.plain.sasl.jaas.config": users,
        }
        clients |= {"sasl.mechanism": "PLAIN", "sasl.jaas.config": f"{login};"}
    text = "".join(f"{key}={value}\n" for key, value in clients.items())
    _write(client_properties(directory), text.encode())
    return nodes


def _make_certificates(directory: Path) -> tuple[Path, Path]:
    from datetime import UTC, datetime

    from ottla.security.tls.issuing import Authority

    authority = Authority("ottla trial CA", datetime.now(UTC))
    issued = authority.issue("node", _HOSTS)
    _write(directory / "ca.pem", authority.issued.certificate)
    _write(directory / "node.pem", issued.both)
    return directory / "ca.pem", directory / "node.pem"


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)
