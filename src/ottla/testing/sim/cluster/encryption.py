"""TLS in a simulated cluster: which listeners have it, and the settings of nodes and clients for them.

OpenSSL draws keys and nonces by itself, so encrypted bytes are others each time. Their number is not, and only that is
in the trace, beside what was encrypted (`network.plaintext`). For that, everything that is sent has to have one length:
there is one certificate, whose bytes never change, with an Ed25519 key, whose signatures all have 64 bytes; and nobody
is given tickets to resume a session. OpenSSL looks at the machine's real clock, so the certificate is valid for ever.

The certificate is as `tests/unit/testing/sim/test_encryption.py` makes it. Its key is no secret.
"""

from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from random import Random
from typing import Final, NamedTuple

MOST_NODES: Final = 9
"""The certificate is for the addresses of so many, and for 127.0.0.1."""
KEY: Final = sha256(b"ottla sim").digest()

_CERTIFICATE: Final = """-----BEGIN CERTIFICATE-----
MIIBQDCB86ADAgECAgEBMAUGAytlcDAUMRIwEAYDVQQDDAlvdHRsYSBzaW0wIBcN
NzAwMTAxMDAwMDAwWhgPOTk5OTEyMzEwMDAwMDBaMBQxEjAQBgNVBAMMCW90dGxh
IHNpbTAqMAUGAytlcAMhAPniskArC0PFoxDAEw6YJ/a8ptmkFbA1BlK4TteKrT58
o2gwZjAdBgNVHSUEFjAUBggrBgEFBQcDAQYIKwYBBQUHAwIwRQYDVR0RBD4wPIcE
fwAAAYcECgAAAYcECgAAAocECgAAA4cECgAABIcECgAABYcECgAABocECgAAB4cE
CgAACIcECgAACTAFBgMrZXADQQBjKSC8dTnyFKJm9wDB87DSGqI6u4y2lMU/Na0W
SZANlv0jl+L1YBqYfCht0jXD5Awd7aCkbGWClaOJnd1XJRsC
-----END CERTIFICATE-----
"""
_PKCS8_OF_ED25519: Final = bytes.fromhex("302e020100300506032b657004220420")
_KIND: Final = "PRIVATE KEY"
_PRIVATE: Final = f"-----BEGIN {_KIND}-----\n{b64encode(_PKCS8_OF_ED25519 + KEY).decode()}\n-----END {_KIND}-----\n"

SSL_SETTINGS: Final[Mapping[str, str]] = {
    "ssl.keystore.type": "PEM",
    "ssl.keystore.key": _PRIVATE,
    "ssl.keystore.certificate.chain": _CERTIFICATE,
    "ssl.truststore.type": "PEM",
    "ssl.truststore.certificates": _CERTIFICATE,
}
"""Of nodes and of clients: all show the one certificate, and trust it."""

_SEEDS: Final = 0.3
"""How many of the seeds have TLS."""


class Encryption(NamedTuple):
    """Who speaks TLS."""

    has_listener: bool = False
    """Brokers have a second listener for clients, with TLS."""
    of_brokers: bool = False
    """Brokers reach each other by it."""
    of_controllers: bool = False
    """The controllers' listener has TLS."""
    of_clients: float = 0.0
    """How many of the clients use it."""
    asks_clients: bool = False
    """Clients have to show a certificate."""

    @property
    def is_any(self) -> bool:
        return self.has_listener or self.of_controllers

    def properties(self, *, is_broker: bool) -> dict[str, str]:
        """Of a node, besides its listeners."""
        if not self.is_any:
            return {}
        controllers = "SSL" if self.of_controllers else "PLAINTEXT"
        properties = {
            "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,SSL:SSL,CONTROLLER:{controllers}",
            "ssl.client.auth": "required" if self.asks_clients else "none",
            **SSL_SETTINGS,
        }
        if is_broker:
            properties["inter.broker.listener.name"] = "SSL" if self.of_brokers else "PLAINTEXT"
        return properties


def draw_encryption(chance: Random, nodes: int) -> Encryption:
    if nodes > MOST_NODES or chance.random() >= _SEEDS:
        return Encryption()
    return Encryption(
        has_listener=True,
        of_brokers=chance.random() < 0.5,
        of_controllers=chance.random() < 0.5,
        of_clients=chance.choice((0.5, 1.0)),
        asks_clients=chance.random() < 0.5,
    )
