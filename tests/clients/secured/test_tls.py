"""Clients of others over TLS: records both ways, certificates of all kinds, and connections that are none."""

import asyncio
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import closing

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from tests.clients.eventually import eventually
from tests.interop.tls_node import TlsNode, tls_node
from tests.unit.security.tls import trial_certificates as trial

RECORDS = 2_000
VALUE = bytes(range(256)) * 8
TIMEOUT_S = 30.0
ALERT = b"\x15\x03"
"""How TLS begins to say that it does not understand. It may get lost: the connection ends at once."""


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsNode]:
    with tls_node(tmp_path_factory.mktemp("certificates")) as running:
        yield running


def produce(settings: dict[str, object], topic: str, count: int = RECORDS) -> None:
    failed: list[object] = []
    producer = Producer(settings)
    for number in range(count):
        producer.produce(topic, VALUE, str(number), callback=lambda error, _: failed.append(error) if error else None)
        producer.poll(0)
    assert producer.flush(TIMEOUT_S) == 0
    assert failed == []


def consume(settings: dict[str, object], topic: str, count: int = RECORDS) -> list[str]:
    consumer = Consumer({**settings, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    keys: list[str] = []
    deadline = time.monotonic() + TIMEOUT_S
    while len(keys) < count and time.monotonic() < deadline:
        for record in consumer.consume(count, 1):
            assert record.value() == VALUE
            keys.append(record.key().decode())
    consumer.close()
    return keys


def refusal(settings: dict[str, object]) -> str:
    """What librdkafka says about a node that it cannot use."""
    said: list[KafkaError] = []
    producer = Producer({**settings, "error_cb": said.append, "reconnect.backoff.ms": 10_000, "log_level": 0})
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        producer.poll(0.05)
        for error in said:
            if error.code() == KafkaError._SSL:
                return str(error)
    raise AssertionError(f"it was not refused: {said}")


def log_of(node: TlsNode) -> str:
    return node.node.log.read_text(errors="replace")


@pytest.mark.parametrize("shown", [None, "alice"])
def test_librdkafka_writes_and_reads_over_tls(node: TlsNode, shown: str | None) -> None:
    settings = node.librdkafka(node.mutual if shown else node.tls, shown)
    topic = f"librdkafka-{shown}"
    produce(settings, topic)
    assert consume(settings, topic) == [str(number) for number in range(RECORDS)]


def test_aiokafka_writes_and_reads_over_tls(node: TlsNode) -> None:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

    context = ssl.create_default_context(cafile=str(node.directory / "ca.pem"))

    async def write_and_read() -> list[bytes | None]:
        secured = {"bootstrap_servers": node.tls, "security_protocol": "SSL", "ssl_context": context}
        async with AIOKafkaProducer(**secured) as producer:
            for number in range(100):
                await producer.send("aiokafka", VALUE, str(number).encode())
            await producer.flush()
        async with AIOKafkaConsumer("aiokafka", **secured, auto_offset_reset="earliest") as consumer:
            return [(await anext(consumer)).key for _ in range(100)]

    keys = asyncio.run(asyncio.wait_for(write_and_read(), TIMEOUT_S))
    assert keys == [str(number).encode() for number in range(100)]


def test_kafka_python_writes_and_reads_over_tls(node: TlsNode) -> None:
    from kafka import KafkaConsumer, KafkaProducer

    secured = {
        "bootstrap_servers": node.mutual,
        "security_protocol": "SSL",
        "ssl_cafile": str(node.directory / "ca.pem"),
        "ssl_certfile": str(node.directory / "alice.pem"),
        "ssl_keyfile": str(node.directory / "alice.key"),
    }
    with closing(KafkaProducer(**secured)) as producer:
        for number in range(100):
            producer.send("kafka-python", VALUE, str(number).encode())
        producer.flush(TIMEOUT_S)
    reading = KafkaConsumer("kafka-python", **secured, auto_offset_reset="earliest", consumer_timeout_ms=30_000)
    with closing(reading) as consumer:
        assert [next(consumer).key for _ in range(100)] == [str(number).encode() for number in range(100)]


@pytest.mark.parametrize(
    ("shown", "reason"),
    [
        (None, "the other side has shown no certificate, and ssl.client.auth requires one"),
        ("impostor", "the certificate of the other side is not accepted: unable to get local issuer certificate"),
        ("expired", "the certificate of the other side is not accepted: certificate has expired"),
    ],
)
def test_a_client_without_a_certificate_that_is_trusted_is_refused(
    node: TlsNode, shown: str | None, reason: str
) -> None:
    context = ssl.create_default_context(cafile=str(node.directory / "ca.pem"))
    if shown is not None:
        context.load_cert_chain(node.directory / f"{shown}.pem", node.directory / f"{shown}.key")
    with (
        socket.create_connection(("127.0.0.1", node.port(node.mutual)), TIMEOUT_S) as sock,
        pytest.raises((ssl.SSLError, ConnectionError)),
    ):
        context.wrap_socket(sock, server_hostname="localhost").recv(1)
    eventually(lambda: f"(MUTUAL): {reason}" in log_of(node), True)


def test_a_client_refuses_a_node_whose_authority_it_does_not_know(node: TlsNode) -> None:
    node.write("other-ca.pem", trial.authority("another CA").issued.certificate)
    settings = {**node.librdkafka(node.tls), "ssl.ca.location": str(node.directory / "other-ca.pem")}
    assert "certificate verify failed" in refusal(settings)


def test_a_client_refuses_a_node_of_another_name(node: TlsNode) -> None:
    """127.0.0.2 leads to the node, and is not in its certificate."""
    context = ssl.create_default_context(cafile=str(node.directory / "ca.pem"))
    with (
        socket.create_connection(("127.0.0.1", node.port(node.tls)), TIMEOUT_S) as sock,
        pytest.raises(ssl.SSLCertVerificationError, match="IP address mismatch"),
    ):
        context.wrap_socket(sock, server_hostname="127.0.0.2")


def test_plain_text_at_a_tls_listener_is_told_of(node: TlsNode) -> None:
    with socket.create_connection(("127.0.0.1", node.port(node.tls)), TIMEOUT_S) as sock:
        sock.sendall(b"\x00\x00\x00\x23\x00\x12\x00\x04" + bytes(31))
        assert sock.recv(100)[:2] in (b"", ALERT)
    eventually(lambda: "(TLS): the other side does not speak TLS: it sent 00 00 00 23" in log_of(node), True)


def test_tls_at_a_listener_for_plain_text_is_told_of(node: TlsNode) -> None:
    context = ssl.create_default_context(cafile=str(node.directory / "ca.pem"))
    with (
        socket.create_connection(("127.0.0.1", node.port(node.plain)), TIMEOUT_S) as sock,
        pytest.raises((ssl.SSLError, ConnectionError)),
    ):
        context.wrap_socket(sock, server_hostname="localhost")
    eventually(lambda: "(PLAINTEXT): the other side speaks TLS" in log_of(node), True)


def test_handshakes_that_are_never_finished_do_not_keep_clients_out(node: TlsNode) -> None:
    silent = [socket.create_connection(("127.0.0.1", node.port(node.tls)), TIMEOUT_S) for _ in range(300)]
    try:
        produce(node.librdkafka(node.tls), "half-open", 10)
        assert consume(node.librdkafka(node.tls), "half-open", 10) == [str(number) for number in range(10)]
    finally:
        for sock in silent:
            sock.close()


def shown_by(node: TlsNode, address: str) -> bytes:
    """The certificate that the node shows to the next client."""
    context = ssl.create_default_context(cafile=str(node.directory / "ca.pem"))
    context.load_cert_chain(node.directory / "alice.pem", node.directory / "alice.key")
    with socket.create_connection(("127.0.0.1", node.port(address)), TIMEOUT_S) as sock:
        return ssl.DER_cert_to_PEM_cert(
            context.wrap_socket(sock, server_hostname="localhost").getpeercert(binary_form=True) or b""
        ).encode()


def alter(node: TlsNode, **settings: str) -> None:
    entries = [
        ConfigEntry(name.replace("_", "."), text, incremental_operation=AlterConfigOpType.SET)
        for name, text in settings.items()
    ]
    admin = AdminClient({"bootstrap.servers": node.plain})
    resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=entries)
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(TIMEOUT_S)


def same_pem(one: bytes, other: bytes) -> bool:
    return one.split() == other.split()


def test_certificates_change_by_settings_without_a_dropped_connection(node: TlsNode) -> None:
    consumer = Consumer({**node.librdkafka(node.tls), "group.id": "stays", "auto.offset.reset": "earliest"})
    lost: list[KafkaError] = []
    producer = Producer({**node.librdkafka(node.mutual, "alice"), "error_cb": lost.append})
    producer.produce("before-and-after", b"before")
    assert producer.flush(TIMEOUT_S) == 0
    renewed = trial.authority().issue("node-1", trial.HERE)
    node.write("renewed.pem", renewed.both)
    alter(node, listener_name_mutual_ssl_keystore_location=str(node.directory / "renewed.pem"))
    eventually(lambda: same_pem(shown_by(node, node.mutual), renewed.certificate), True)
    assert same_pem(shown_by(node, node.tls), trial.node().certificate)
    producer.produce("before-and-after", b"after")
    assert producer.flush(TIMEOUT_S) == 0
    assert lost == []
    consumer.close()


def test_settings_that_the_node_could_not_use_are_refused(node: TlsNode) -> None:
    """By the node that is to use them, as in Kafka."""
    node.write("nonsense.pem", b"nonsense")
    node.write("node-9.pem", trial.authority().issue("node-9", trial.HERE).both)
    for name, reason in (
        ("missing.pem", "a file that can be read"),
        ("nonsense.pem", "a private key in PEM"),
        ("node-9.pem", "CN=node-9: it must be a certificate of CN=node-1, as before"),
    ):
        with pytest.raises(KafkaException) as refused:
            alter(node, listener_name_tls_ssl_keystore_location=str(node.directory / name))
        assert refused.value.args[0].code() == KafkaError.INVALID_REQUEST
        assert reason in str(refused.value)


def test_certificates_change_with_their_files(node: TlsNode) -> None:
    renewed = trial.authority().issue("node-1", trial.HERE)
    node.write("node.pem", renewed.both)
    eventually(lambda: same_pem(shown_by(node, node.tls), renewed.certificate), True)


def test_a_file_that_names_somebody_else_is_not_taken(node: TlsNode) -> None:
    before, stored = shown_by(node, node.tls), (node.directory / "node.pem").read_bytes()
    node.write("node.pem", trial.authority().issue("node-9", trial.HERE).both)
    eventually(lambda: "CN=node-9: it must be a certificate of CN=node-1, as before" in log_of(node), True)
    assert shown_by(node, node.tls) == before
    node.write("node.pem", stored)
