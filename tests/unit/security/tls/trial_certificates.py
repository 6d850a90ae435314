"""Certificates for tests, made once a process: an authority, a node at localhost, a client; and an impostor's."""

from datetime import UTC, datetime
from functools import cache

from ottla.security.tls.issuing import Authority, Issued

HERE = ("localhost", "127.0.0.1", "::1")


@cache
def authority(name: str = "trial CA") -> Authority:
    return Authority(name, datetime.now(UTC))


@cache
def node() -> Issued:
    return authority().issue("node-1", HERE)


@cache
def client(name: str = "alice") -> Issued:
    return authority().issue(name)


@cache
def expired() -> Issued:
    return authority().issue("node-1", HERE, from_days=-30, days=-2)


@cache
def elsewhere() -> Issued:
    """A good certificate of somebody at another address."""
    return authority().issue("node-2", ("elsewhere.example",))


@cache
def impostor() -> Issued:
    """Signed by an authority that nobody trusts."""
    return authority("another CA").issue("alice", HERE)


def inline(issued: Issued | None, trusted: Authority | None) -> dict[str, str]:
    """The settings, in PEM."""
    settings = {}
    if issued is not None:
        settings |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": issued.certificate.decode(),
            "ssl.keystore.key": issued.key.decode(),
        }
    if trusted is not None:
        settings |= {
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": trusted.issued.certificate.decode(),
        }
    return settings
