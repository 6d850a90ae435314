"""A listener with TLS, SASL or both for a broker of tests, and what its clients need: made of nothing but a protocol.

The certificates are of an authority that lives as long as the broker, and are in the settings themselves: there are no
files to keep. The one user has a password that nobody else knows.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from secrets import token_urlsafe
from typing import Final

from ottla.testing.free_ports import free_port

USER: Final = "test"
PROTOCOLS: Final = ("SSL", "SASL_PLAINTEXT", "SASL_SSL")
_NAME: Final = "SECURED"
_PREFIX: Final = f"listener.name.{_NAME.lower()}."
_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"


class SecuredListener:
    """`broker` and `client` are settings. TLS needs `cryptography` (`pip install 'ottla[security]'`)."""

    def __init__(self, protocol: str) -> None:
        if protocol not in PROTOCOLS:
            raise ValueError(f"security is {protocol!r}, and must be one of: {', '.join(PROTOCOLS)}")
        self.bootstrap = f"localhost:{free_port()}"
        self.broker: Mapping[str, str] = {
            # The plain listener is for the broker itself, and for topics and faults. Its port stays, too.
            "listeners": f"PLAINTEXT://127.0.0.1:{free_port()},{_NAME}://{self.bootstrap},CONTROLLER://127.0.0.1:0",
            "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,{_NAME}:{protocol}",
            "inter.broker.listener.name": "PLAINTEXT",
        }
        self.client: Mapping[str, str] = {"bootstrap.servers": self.bootstrap, "security.protocol": protocol}
        if protocol.endswith("SSL"):
            self._add_certificates()
        if protocol.startswith("SASL_"):
            self._add_user()

    def _add_certificates(self) -> None:
        from ottla.security.tls.issuing import Authority

        authority = Authority("a broker of tests", datetime.now(UTC))
        issued = authority.issue("localhost", ("localhost", "127.0.0.1"))
        self.broker = {
            **self.broker,
            f"{_PREFIX}ssl.keystore.type": "PEM",
            f"{_PREFIX}ssl.keystore.key": issued.key.decode(),
            f"{_PREFIX}ssl.keystore.certificate.chain": issued.certificate.decode(),
        }
        trusted = authority.issued.certificate.decode()
        self.client = {**self.client, "ssl.truststore.type": "PEM", "ssl.truststore.certificates": trusted}

    def _add_user(self) -> None:
        password = token_urlsafe(16)
        self.broker = {
            **self.broker,
            f"{_PREFIX}sasl.enabled.mechanisms": "PLAIN",
            f"{_PREFIX}plain.sasl.jaas.config": f'{_MODULE} required user_{USER}="{password}";',
        }
        login = f'{_MODULE} required username="{USER}" password="{password}";'
        self.client = {**self.client, "sasl.mechanism": "PLAIN", "sasl.jaas.config": login}
