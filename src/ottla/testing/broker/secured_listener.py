"""A listener with TLS, SASL or both for brokers of tests, and what its clients need: made of nothing but a protocol.

The certificates are of an authority that lives as long as the broker or cluster, and are in the settings themselves:
there are no files to keep. The one user has a password that nobody else knows. A client may show a certificate, and is
then the principal that it names (`certificate_of`); without one it is anonymous, or the user of SASL.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Final

from ottla.testing.free_ports import free_ports

if TYPE_CHECKING:
    from ottla.security.tls.issuing import Authority

USER: Final = "test"
PROTOCOLS: Final = ("SSL", "SASL_PLAINTEXT", "SASL_SSL")
_NAME: Final = "SECURED"
_PREFIX: Final = f"listener.name.{_NAME.lower()}."
_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"


class SecuredListeners:
    """One for each of `count` brokers, at `addresses`. `client` has the settings of their clients.

    TLS needs `cryptography` (`pip install 'ottla[security]'`).
    """

    def __init__(self, protocol: str, count: int = 1) -> None:
        if protocol not in PROTOCOLS:
            raise ValueError(f"security is {protocol!r}, and must be one of: {', '.join(PROTOCOLS)}")
        self.addresses = [f"localhost:{port}" for port in free_ports(count)]
        self._broker: Mapping[str, str] = {
            "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,{_NAME}:{protocol}",
            "inter.broker.listener.name": "PLAINTEXT",
        }
        self.client: Mapping[str, str] = {"bootstrap.servers": self.bootstrap, "security.protocol": protocol}
        self._authority: Authority | None = None
        if protocol.endswith("SSL"):
            self._add_certificates()
        if protocol.startswith("SASL_"):
            self._add_user()

    @property
    def bootstrap(self) -> str:
        return ",".join(self.addresses)

    def broker(self, listeners: str, number: int = 0) -> dict[str, str]:
        """The settings of one broker. Its other listeners are for the brokers themselves, and for topics and faults."""
        return {**self._broker, "listeners": f"{listeners},{_NAME}://{self.addresses[number]}"}

    def certificate_of(self, name: str) -> dict[str, str]:
        """More settings for a client: with them it is the principal `User:CN=name`."""
        assert self._authority is not None, "only TLS has certificates"
        issued = self._authority.issue(name)
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.key": issued.key.decode(),
            "ssl.keystore.certificate.chain": issued.certificate.decode(),
        }

    def _add_certificates(self) -> None:
        from ottla.security.tls.issuing import Authority

        authority = self._authority = Authority("a broker of tests", datetime.now(UTC))
        issued = authority.issue("localhost", ("localhost", "127.0.0.1"))
        trusted = authority.issued.certificate.decode()
        self._broker = {
            **self._broker,
            f"{_PREFIX}ssl.keystore.type": "PEM",
            f"{_PREFIX}ssl.keystore.key": issued.key.decode(),
            f"{_PREFIX}ssl.keystore.certificate.chain": issued.certificate.decode(),
            f"{_PREFIX}ssl.truststore.type": "PEM",
            f"{_PREFIX}ssl.truststore.certificates": trusted,
            f"{_PREFIX}ssl.client.auth": "requested",
        }
        self.client = {**self.client, "ssl.truststore.type": "PEM", "ssl.truststore.certificates": trusted}

    def _add_user(self) -> None:
        password = token_urlsafe(16)
        self._broker = {
            **self._broker,
            f"{_PREFIX}sasl.enabled.mechanisms": "PLAIN",
            f"{_PREFIX}plain.sasl.jaas.config": f'{_MODULE} required user_{USER}="{password}";',
        }
        login = f'{_MODULE} required username="{USER}" password="{password}";'
        self.client = {**self.client, "sasl.mechanism": "PLAIN", "sasl.jaas.config": login}
