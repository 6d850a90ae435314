"""A node with listeners of several kinds, and certificates for it and its clients in a directory."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ottla.testing.free_ports import free_ports
from ottla.testing.node import NodeError, RunningNode
from tests.unit.security.tls import trial_certificates as trial

_ATTEMPTS = 5


class TlsNode:
    """`plain` takes plain text, `tls` wants no certificate, `mutual` requires one. `directory` has the files."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.write("ca.pem", trial.authority().issued.certificate)
        self.write("node.pem", trial.node().both)
        for name, issued in (("alice", trial.client()), ("impostor", trial.impostor()), ("expired", trial.expired())):
            self.write(f"{name}.pem", issued.certificate)
            self.write(f"{name}.key", issued.key)
        plain, tls, mutual, controller = free_ports(4)
        self.plain, self.tls, self.mutual = (f"localhost:{port}" for port in (plain, tls, mutual))
        self.config: Mapping[str, object] = {
            "listeners": f"PLAINTEXT://127.0.0.1:{plain},TLS://127.0.0.1:{tls},MUTUAL://127.0.0.1:{mutual},"
            f"CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://localhost:{plain},TLS://localhost:{tls},MUTUAL://localhost:{mutual}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,TLS:SSL,MUTUAL:SSL,CONTROLLER:PLAINTEXT",
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "controller.listener.names": "CONTROLLER",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": directory / "node.pem",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": directory / "ca.pem",
            "listener.name.mutual.ssl.client.auth": "required",
            "listener.name.mutual.ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/,DEFAULT",
        }
        self.node = RunningNode(config=self.config, port=plain)

    def write(self, name: str, data: bytes) -> None:
        """Replaces a file whole, as tools that renew certificates do."""
        new = self.directory / f"{name}.new"
        new.write_bytes(data)
        new.replace(self.directory / name)

    def port(self, address: str) -> int:
        return int(address.rpartition(":")[2])

    def librdkafka(self, address: str, shown: str | None = None) -> dict[str, object]:
        """Settings of confluent-kafka."""
        settings: dict[str, object] = {
            "bootstrap.servers": address,
            "security.protocol": "SSL",
            "ssl.ca.location": str(self.directory / "ca.pem"),
        }
        if shown is not None:
            settings["ssl.certificate.location"] = str(self.directory / f"{shown}.pem")
            settings["ssl.key.location"] = str(self.directory / f"{shown}.key")
        return settings


@contextmanager
def tls_node(directory: Path) -> Iterator[TlsNode]:
    """Its ports are free when they are chosen, and may be taken by another test a moment later: then others are."""
    for attempts_left in reversed(range(_ATTEMPTS)):
        made = TlsNode(directory)
        try:
            made.node.start()
        except NodeError as problem:
            made.node.close()
            if not attempts_left or "cannot listen" not in str(problem):
                raise
        else:
            break
    try:
        yield made
    finally:
        made.node.close()
