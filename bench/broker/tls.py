"""Produce and fetch over TLS: both nodes with the same certificate and the same cipher suite, TLS_AES_256_GCM_SHA384.

The clients are in Python and decrypt with OpenSSL, as fast for one node as for the other. The processor time of the
node is what to look at: rates are limited by the client as well.
"""

import ssl
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from contenders import JAVA_OPTIONS, SETTINGS, Contender, free_ports, scratch_directory
from load import LARGE, LARGE_RECORDS, SMALL, SMALL_RECORDS, alternating, fetch, run_window
from report import Row, compared
from tests.interop.apache_kafka import ApacheKafka
from throughput import FETCH_BYTES, fill
from wire_client import WireClient, produce_request

from ottla.security.tls.issuing import Authority
from ottla.testing.node import RunningNode

SUITE = "TLS_AES_256_GCM_SHA384"
TARGET = 1.2
SIZES = (("10 x 100 B", SMALL, SMALL_RECORDS, 5), ("64 x 1 KB", LARGE, LARGE_RECORDS, 5))
FETCHED_BYTES = 128 << 20
MOST_BYTES = 128 << 20


class TlsClient(WireClient):
    def __init__(self, address: str, context: ssl.SSLContext) -> None:
        super().__init__(address)
        secured = context.wrap_socket(self.socket, server_hostname="localhost")
        cipher = secured.cipher()
        assert cipher is not None
        assert cipher[0] == SUITE, f"{cipher[0]} is not what is compared"
        self.socket = secured


class Node:
    """A contender, and where it takes TLS."""

    def __init__(self, name: str, settings: Mapping[str, object]) -> None:
        plain, tls, controller = free_ports(3)
        listeners = f"PLAINTEXT://127.0.0.1:{plain},TLS://127.0.0.1:{tls},CONTROLLER://127.0.0.1:{controller}"
        config = {
            **SETTINGS,
            **settings,
            "listeners": listeners,
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,TLS:SSL,CONTROLLER:PLAINTEXT",
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "controller.listener.names": "CONTROLLER",
        }
        if name == "kafka":
            kafka = ApacheKafka(config=config, java_options=JAVA_OPTIONS)
            kafka.bootstrap, kafka._port = f"127.0.0.1:{plain}", plain
            kafka.format()
            self.contender = Contender(name, kafka)
        else:
            self.contender = Contender(name, RunningNode(config=config, port=plain))
        self.name = name
        self.address = f"127.0.0.1:{tls}"


def measure_tls(names: list[str], rounds: int, warm_up_s: float) -> list[Row]:
    with scratch_directory() as directory:
        settings, context = _certificates(Path(directory))
        nodes = [Node(name, settings) for name in names]
        try:
            for node in nodes:
                node.contender.start_timed()
                _warm_up(node, context, warm_up_s)
            return [
                *(row for size in SIZES for row in _measure_produce(nodes, context, rounds, *size)),
                *_measure_fetch(nodes, context, rounds),
            ]
        finally:
            for node in nodes:
                node.contender.node.close()


def _certificates(directory: Path) -> tuple[dict[str, object], ssl.SSLContext]:
    authority = Authority("bench", datetime.now(UTC))
    (directory / "node.pem").write_bytes(authority.issue("node", ("localhost",)).both)
    (directory / "ca.pem").write_bytes(authority.issued.certificate)
    settings: dict[str, object] = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": directory / "node.pem",
        "ssl.cipher.suites": SUITE,
        "ssl.enabled.protocols": "TLSv1.3",
    }
    return settings, ssl.create_default_context(cafile=str(directory / "ca.pem"))


def _produce(
    node: Node, context: ssl.SSLContext, topic: str, batch: bytes, records: int, in_flight: int, seconds: float
) -> tuple[float, float]:
    """Requests per second, and the node's processor time for one."""
    with TlsClient(node.address, context) as client:
        before, cpu_s = client.end_offset(topic), node.contender.cpu_s()
        request = produce_request(topic, bytes(batch), -1)
        answered, took = run_window(client.socket, request, in_flight, seconds, MOST_BYTES // len(batch))
        cpu_s = node.contender.cpu_s() - cpu_s
        if client.end_offset(topic) - before != answered * records:
            raise RuntimeError("what was acknowledged is not there")
    return answered / took, cpu_s / answered


def _warm_up(node: Node, context: ssl.SSLContext, seconds: float) -> None:
    with WireClient(node.contender.bootstrap) as client:
        client.create_topic("warm-up")
        for _ in range(4):
            for _, batch, records, in_flight in SIZES:
                _produce(node, context, "warm-up", batch, records, in_flight, seconds / 12)
        client.delete_topic("warm-up")


def _measure_produce(
    nodes: list[Node],
    context: ssl.SSLContext,
    rounds: int,
    size: str,
    batch: bytearray,
    records: int,
    in_flight: int,
) -> list[Row]:
    topic = f"tls-{len(batch)}"
    for node in nodes:
        with WireClient(node.contender.bootstrap) as client:
            client.create_topic(topic)
    cpu: dict[str, list[float]] = {node.name: [] for node in nodes}

    def one(node: Node) -> float:
        rate, cpu_s = _produce(node, context, topic, batch, records, in_flight, 0.7)
        cpu[node.name].append(1 / cpu_s)
        return rate

    results = alternating(rounds, [partial(one, node) for node in nodes])
    rates = dict(zip([node.name for node in nodes], results, strict=True))
    shown = f"produce over TLS {size}, {in_flight} in flight, acks=all"
    return [
        compared(
            shown, rates, lambda rate: f"{rate / 1000:.1f} k/s {rate * len(batch) / 1e6:.0f} MB/s", at_least=TARGET
        ),
        compared("  requests per second of processor time", cpu, lambda rate: f"{rate / 1000:.1f} k/s"),
    ]


def _measure_fetch(nodes: list[Node], context: ssl.SSLContext, rounds: int) -> list[Row]:
    requests = {node.name: fill(node.contender, "tls-fetch", FETCHED_BYTES) for node in nodes}
    cpu: dict[str, list[float]] = {node.name: [] for node in nodes}

    def one(node: Node) -> float:
        with TlsClient(node.address, context) as client:
            cpu_s = node.contender.cpu_s()
            received, took = fetch(client.socket, requests[node.name])
            cpu[node.name].append(received / (node.contender.cpu_s() - cpu_s))
        if received < len(requests[node.name]) * FETCH_BYTES * 0.8:
            raise RuntimeError(f"{received} bytes for {len(requests[node.name])} fetches of 1 MB")
        return received / took

    results = alternating(rounds, [partial(one, node) for node in nodes])
    rates = dict(zip([node.name for node in nodes], results, strict=True))
    return [
        compared("fetch over TLS, 1 MB", rates, _megabytes, at_least=TARGET),
        compared("  bytes per second of processor time", cpu, _megabytes),
    ]


def _megabytes(rate: float) -> str:
    return f"{rate / 1e6:.0f} MB/s"
