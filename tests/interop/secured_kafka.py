"""Apache Kafka with a listener for each way to be secured, and what a client needs to use them.

with SecuredKafka(directory) as kafka:
    Producer(kafka.client("SASL_SSL", "SCRAM-SHA-256", user="alice", password="alice-secret"))
"""

from collections.abc import Mapping
from pathlib import Path

from ottla.testing.free_ports import free_ports
from tests.interop.apache_kafka import ApacheKafka
from tests.interop.certificate_maker import Authority

PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTH_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
USERS = {"alice": "alice-secret", "bob": "bob-secret"}


class SecuredKafka(ApacheKafka):
    """Listeners SSL, MTLS (which wants a certificate), SASL_PLAINTEXT, SASL_SSL and, between nodes, PLAINTEXT.

    Its certificate is for `localhost`; the listener EXPIRED has one that is out of date.
    """

    def __init__(self, directory: Path, *, config: Mapping[str, object] | None = None) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.authority = Authority(directory)
        node = self.authority.issue("node", names=("localhost",))
        names = ("SSL", "MTLS", "SASL_PLAINTEXT", "SASL_SSL", "EXPIRED")
        self.ports = dict(zip(names, free_ports(len(names)), strict=True))
        super().__init__(directory)
        listeners = [f"{name}://localhost:{port}" for name, port in self.ports.items()]
        self.ports["PLAINTEXT"] = int(self.bootstrap.rpartition(":")[2])
        self.config["listeners"] = ",".join([str(self.config["listeners"]), *listeners])
        self.config["listener.security.protocol.map"] = (
            "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SSL:SSL,MTLS:SSL,EXPIRED:SSL,"
            "SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL"
        )
        self.config |= {
            "inter.broker.listener.name": "PLAINTEXT",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": node.pem,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self.authority.pem,
            "listener.name.mtls.ssl.client.auth": "required",
            "listener.name.expired.ssl.keystore.type": "PEM",
            "listener.name.expired.ssl.keystore.location": self.authority.issue("old", expired=True).pem,
            "delegation.token.secret.key": "a-secret-of-this-test",
            "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        }
        users = " ".join(f'user_{user}="{password}"' for user, password in USERS.items())
        for listener in ("sasl_plaintext", "sasl_ssl"):
            self.config |= {
                f"listener.name.{listener}.plain.sasl.jaas.config": f"{PLAIN_MODULE} required {users};",
                f"listener.name.{listener}.scram-sha-256.sasl.jaas.config": f"{SCRAM_MODULE} required;",
                f"listener.name.{listener}.scram-sha-512.sasl.jaas.config": f"{SCRAM_MODULE} required;",
                f"listener.name.{listener}.oauthbearer.sasl.jaas.config": f"{OAUTH_MODULE} required;",
            }
        self.config |= config or {}

    def format(self, *options: str) -> None:
        scram = [
            f"{mechanism}=[name={user},password={password}]"
            for user, password in USERS.items()
            for mechanism in MECHANISMS[1:3]
        ]
        super().format(*options, *(word for one in scram for word in ("--add-scram", one)))

    def client(
        self,
        protocol: str,
        mechanism: str | None = None,
        *,
        listener: str | None = None,
        user: str = "alice",
        password: str | None = None,
        **more: object,
    ) -> dict[str, object]:
        """The settings of a client, with Kafka's names; `more` are others, with underscores for dots."""
        host = "127.0.0.1" if listener == "PLAINTEXT" else "localhost"
        settings: dict[str, object] = {
            "bootstrap.servers": f"{host}:{self.ports[listener or protocol]}",
            "security.protocol": protocol,
        }
        if protocol.endswith("SSL"):
            settings |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self.authority.pem)}
        if mechanism is not None:
            module = PLAIN_MODULE if mechanism == "PLAIN" else SCRAM_MODULE
            login = f'{module} required username="{user}" password="{password or USERS.get(user, "")}";'
            settings |= {"sasl.mechanism": mechanism, "sasl.jaas.config": login}
        return settings | {name.replace("_", "."): value for name, value in more.items()}
