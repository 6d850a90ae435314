"""Quotas on a running node: set with kafka-configs, held against clients, told in replies and on the metrics page."""

import re
import socket
import time
from collections.abc import Callable, Iterator
from itertools import count
from select import select
from urllib.request import urlopen

import pytest
from confluent_kafka import Producer as ConfluentProducer

from ottla import Admin, Consumer, Producer, TopicPartition
from ottla.admin import NewTopic
from ottla.cli.kafka import run
from ottla.errors import ThrottlingQuotaExceeded
from ottla.testing.free_ports import free_port
from ottla.testing.node import RunningNode
from ottla.wire.messages import MetadataRequest
from tests.clients.eventually import eventually
from tests.interop.wire_connection import WireConnection
from tests.unit.broker.brokers import batch, fetch_request, only, produce_request

PRODUCE, FETCH, METADATA = 12, 12, 12
_numbers = count()


@pytest.fixture(scope="module")
def metrics_port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def node(metrics_port: int) -> Iterator[RunningNode]:
    with RunningNode(options=("--metrics", str(metrics_port))) as node:
        with Admin(bootstrap_servers=node.bootstrap) as admin:
            admin.create_topics([NewTopic("orders", 1, 1)]).raise_first()
        yield node


@pytest.fixture
def configs(node: RunningNode, capsys: pytest.CaptureFixture[str]) -> Callable[[str], str]:
    """kafka-configs with these words, and what it prints."""

    def told(words: str) -> str:
        assert run("configs", ["--bootstrap-server", node.bootstrap, *words.split()]) == 0
        return capsys.readouterr().out

    return told


@pytest.fixture
def limit(configs: Callable[[str], str]) -> Callable[..., str]:
    """Sets quotas of a client id that nobody else has, and tells the id."""

    def limited(**quotas: float) -> str:
        client_id = f"client-{next(_numbers)}"
        set_to = ",".join(f"{key}={value}" for key, value in quotas.items())
        configs(f"--alter --entity-type clients --entity-name {client_id} --add-config {set_to}")
        return client_id

    return limited


@pytest.mark.parametrize(
    ("entity", "shown", "quota"),
    [
        ("--entity-type users --entity-name ann", "user-principal 'ann'", "producer_byte_rate=1000000.0"),
        ("--entity-type users --entity-default", "the default user-principal", "consumer_byte_rate=1.0E9"),
        ("--entity-type clients --entity-name app", "client-id 'app'", "request_percentage=200.0"),
        ("--entity-type clients --entity-default", "the default client-id", "controller_mutation_rate=100000.0"),
        (
            "--entity-type users --entity-name ann --entity-type clients --entity-default",
            "user-principal 'ann', the default client-id",
            "producer_byte_rate=2000000.0",
        ),
        ("--entity-type ips --entity-name 127.9.9.9", "ip '127.9.9.9'", "connection_creation_rate=5.0"),
        ("--entity-type ips --entity-default", "the default ip", "connection_creation_rate=100000.0"),
    ],
)
def test_kafka_configs_sets_shows_and_removes(
    configs: Callable[[str], str], entity: str, shown: str, quota: str
) -> None:
    key, _, value = quota.partition("=")
    configs(f"--alter {entity} --add-config {key}={float(value):.0f}")
    eventually(lambda: configs(f"--describe {entity}"), f"Quota configs for {shown} are {quota}\n")
    configs(f"--alter {entity} --delete-config {key}")
    eventually(lambda: configs(f"--describe {entity}"), "")


def test_a_throttled_producer_is_muted_and_others_are_not(node: RunningNode, limit: Callable[..., str]) -> None:
    slow = limit(producer_byte_rate=1000)
    request = produce_request(batch(bytes(30_000)), acks=1)
    with WireConnection(node.bootstrap, slow) as muted, WireConnection(node.bootstrap, "quick") as other:
        throttle_ms = 0
        while not throttle_ms:  # The node may not have heard of the quota yet.
            throttle_ms = muted.ask(request, PRODUCE).throttle_time_ms
        assert throttle_ms > 10_000
        muted.send(request, PRODUCE)
        for _ in range(50):
            assert other.ask(request, PRODUCE).throttle_time_ms == 0
        assert not muted.has_reply(within_s=0.2), "its request waits"


def test_what_a_producer_can_send_is_bounded_by_its_rate(node: RunningNode, limit: Callable[..., str]) -> None:
    """Ten seconds' worth at first, and then the rate."""
    rate = 200_000
    client_id = limit(producer_byte_rate=rate)
    request = produce_request(batch(bytes(50_000)), acks=1)
    with WireConnection(node.bootstrap, client_id) as connection:
        began_s, sent = time.monotonic(), 0
        while time.monotonic() - began_s < 2:
            connection.ask(request, PRODUCE)
            sent += 50_000
        elapsed_s = time.monotonic() - began_s
    assert sent < rate * (elapsed_s + 10) * 1.1 + 500_000
    assert sent > rate * 8


def test_a_throttled_consumer_gets_its_records_later(node: RunningNode, limit: Callable[..., str]) -> None:
    with WireConnection(node.bootstrap, "writer") as writer:
        for _ in range(4):
            writer.ask(produce_request(batch(bytes(40_000)), acks=1), PRODUCE)
    client_id = limit(consumer_byte_rate=10_000)
    with WireConnection(node.bootstrap, client_id) as reader:
        reply = reader.ask(fetch_request(partition_max_bytes=41_000), FETCH)
        while not reply.throttle_time_ms:
            assert only(reply).records
            reply = reader.ask(fetch_request(partition_max_bytes=41_000), FETCH)
        assert reply.responses == []


def test_our_clients_obey_and_report(node: RunningNode, limit: Callable[..., str]) -> None:
    producing, consuming = limit(producer_byte_rate=20_000), limit(consumer_byte_rate=40_000)
    with Admin(bootstrap_servers=node.bootstrap) as admin:
        admin.create_topics([NewTopic("obeyed", 1, 1)]).raise_first()
    with Producer(bootstrap_servers=node.bootstrap, client_id=producing) as producer:
        for _ in range(24):
            producer.send("obeyed", bytes(10_000))
        producer.flush()
        assert producer.metrics()["produce-throttle-time-max"] > 0
        assert producer.metrics()["produce-throttle-time-avg"] > 0
    with Consumer(bootstrap_servers=node.bootstrap, client_id=consuming, max_partition_fetch_bytes=50_000) as consumer:
        consumer.assign([TopicPartition("obeyed", 0)])
        consumer.seek_to_beginning(TopicPartition("obeyed", 0))
        found = 0
        while found < 24:
            found += len(consumer.poll(1.0))
        assert found == 24


def test_librdkafka_is_told(node: RunningNode, limit: Callable[..., str]) -> None:
    told: list[float] = []
    client_id = limit(producer_byte_rate=20_000)
    producer = ConfluentProducer(
        {
            "bootstrap.servers": node.bootstrap,
            "client.id": client_id,
            "throttle_cb": lambda event: told.append(event.throttle_time),
            "batch.num.messages": 1,
        }
    )
    for _ in range(24):
        producer.produce("orders", bytes(10_000))
    assert producer.flush(30) == 0
    assert max(told) > 0


def test_too_many_changes_of_topics_are_refused_and_tried_again(node: RunningNode, limit: Callable[..., str]) -> None:
    client_id = limit(controller_mutation_rate=2)
    with Admin(bootstrap_servers=node.bootstrap, client_id=client_id) as admin:
        admin.create_topics([NewTopic("first", 24, 1)]).raise_first()
        with pytest.raises(ThrottlingQuotaExceeded):
            admin.create_topics([NewTopic("second", 1, 1)], retry_on_quota=False).raise_first()
        admin.create_topics([NewTopic("second", 1, 1)]).raise_first()


def test_an_address_that_connects_too_often_is_hung_up_on(node: RunningNode, configs: Callable[[str], str]) -> None:
    configs("--alter --entity-type ips --entity-name 127.0.0.2 --add-config connection_creation_rate=1")
    host, _, port = node.bootstrap.rpartition(":")

    def is_refused() -> bool:
        connections = [
            socket.create_connection((host, int(port)), 10, source_address=("127.0.0.2", 0)) for _ in range(15)
        ]
        ended, _, _ = select(connections, [], [], 2)
        for connection in connections:
            connection.close()
        return bool(ended)

    eventually(is_refused, True)
    with WireConnection(node.bootstrap, "from elsewhere") as other:
        assert other.ask(MetadataRequest(topics=[]), METADATA).brokers


def test_the_metrics_page_shows_what_clients_use(
    node: RunningNode, metrics_port: int, limit: Callable[..., str]
) -> None:
    client_id = limit(producer_byte_rate=1_000_000)

    def shown() -> bool:
        with WireConnection(node.bootstrap, client_id) as connection:
            connection.ask(produce_request(batch(bytes(1000)), acks=1), PRODUCE)
        with urlopen(f"http://127.0.0.1:{metrics_port}/metrics", timeout=10) as response:
            page = response.read().decode()
        found = re.search(rf'kafka_server_produce_byte_rate\{{user="",client_id="{client_id}"\}} (\S+)', page)
        assert re.search(r'connection_accept_rate\{listener="PLAINTEXT"\} \d', page)
        return found is not None and float(found[1]) > 0

    eventually(shown, True)
