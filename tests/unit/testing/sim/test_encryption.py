"""TLS in simulations: one certificate that never changes, and settings with which nodes and clients find each other."""

import ssl
from contextlib import suppress
from datetime import datetime
from ipaddress import ip_address
from random import Random

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding

from ottla.client.admin.topics import NewTopic
from ottla.runtime.tls.trust import ListenerTrust
from ottla.testing.sim.cluster.cluster_settings import ClusterSettings, address_of
from ottla.testing.sim.cluster.encryption import KEY, MOST_NODES, SSL_SETTINGS, Encryption, draw_encryption
from ottla.testing.sim.cluster.simulated_cluster import SimulatedCluster

SSL = "SSL"


def test_the_certificate_is_this_one() -> None:
    key = Ed25519PrivateKey.from_private_bytes(KEY)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "ottla sim")])
    purposes = [x509.oid.ExtendedKeyUsageOID.SERVER_AUTH, x509.oid.ExtendedKeyUsageOID.CLIENT_AUTH]
    addresses = ["127.0.0.1", *(address_of(node_id) for node_id in range(1, MOST_NODES + 1))]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(datetime(1970, 1, 1))
        .not_valid_after(datetime(9999, 12, 31))
        .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address(address)) for address in addresses]), critical=False
        )
        .sign(key, None)
    )
    assert certificate.public_bytes(Encoding.PEM).decode() == SSL_SETTINGS["ssl.keystore.certificate.chain"]


def flights(trust: ListenerTrust) -> list[int]:
    """How many bytes each side of a handshake sends at a time."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    assert trust.server is not None
    client = trust.client.wrap_bio(to_client, to_server, server_hostname="10.0.0.1")
    server = trust.server.wrap_bio(to_server, to_client, server_side=True)
    sizes: list[int] = []
    for end, outgoing in [(client, to_server), (server, to_client)] * 3:
        with suppress(ssl.SSLWantReadError):
            end.do_handshake()
        sizes.append(outgoing.pending)
    assert (client.version(), server.version()) == ("TLSv1.3", "TLSv1.3")
    return sizes


def test_every_handshake_has_the_same_length() -> None:
    for asked in ("none", "required"):
        trust = ListenerTrust({**SSL_SETTINGS, "ssl.client.auth": asked}, is_dialled=True)
        assert len({tuple(flights(trust)) for _ in range(50)}) == 1


def test_seeds_have_every_mixture_of_encrypted_and_plain() -> None:
    drawn = {draw_encryption(Random(seed), 3) for seed in range(300)}
    assert Encryption() in drawn
    assert len(drawn) == 1 + 2**4
    assert draw_encryption(Random(0), MOST_NODES + 1) == Encryption()


@pytest.mark.parametrize("of_clients", [0.0, 1.0])
def test_clients_of_both_kinds_reach_the_cluster(of_clients: float) -> None:
    cluster = SimulatedCluster(1, ClusterSettings(1, encryption=Encryption(True, True, True, of_clients, True)))
    cluster.start()
    cluster.create_topics(NewTopic("orders", 1, 1))
    assert cluster.clients[0].settings.get("security.protocol") == (SSL if of_clients else None)


def test_some_clients_of_a_cluster_are_encrypted_and_some_are_not() -> None:
    cluster = SimulatedCluster(1, ClusterSettings(1, encryption=Encryption(True, of_clients=0.5)))
    protocols = {cluster.client(f"client {number}").settings.get("security.protocol") for number in range(20)}
    assert protocols == {None, SSL}
