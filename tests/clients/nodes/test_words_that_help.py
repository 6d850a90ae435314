"""What people are told when something is not as they meant it: each with the name of what to change.

Where Kafka's tools have words that scripts look for, ours have the same; they were taken from Apache Kafka 4.3.1.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla import Admin, Consumer, Producer
from ottla.admin import QuotaEntity
from ottla.cli.kafka import run
from ottla.config.parse import ConfigError
from ottla.errors import KafkaError
from ottla.testing import Broker, Cluster
from ottla.testing.node import NodeError

WAIT_S = 60


@pytest.fixture(scope="module")
def node() -> Iterator[Broker]:
    with Broker({"offsets.topic.num.partitions": 1}) as broker:
        broker.create_topic("orders")
        yield broker


Tool = Callable[..., str]


@pytest.fixture
def tool(node: Broker, capsys: pytest.CaptureFixture[str]) -> Tool:
    def printed(line: str) -> str:
        name, *words = line.split()
        run(name, ["--bootstrap-server", node.bootstrap, *words])
        out, err = capsys.readouterr()
        return out + err

    return printed


# Clients


def problem_of(act: Callable[[], object]) -> str:
    with pytest.raises((ConfigError, KafkaError)) as raised:
        act()
    return str(raised.value)


def test_a_record_that_the_producer_may_not_send_names_the_producers_limit(node: Broker) -> None:
    with Producer(bootstrap_servers=node.bootstrap) as producer:
        told = problem_of(lambda: producer.send("orders", b"x" * 2_000_000).result(WAIT_S))
    assert told == (
        "a record of 2000026 bytes is beyond max.request.size=1048576 of this producer. Raise the producer's "
        "`max.request.size`, and the topic's `max.message.bytes` if the record is beyond that, too."
    )


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("queue.buffering.max.messages", "buffer.memory, in bytes"),
        ("message.timeout.ms", "delivery.timeout.ms"),
        ("sasl.username", "sasl.jaas.config, with a login module's username and password"),
        ("ssl.ca.location", "ssl.truststore.location, with ssl.truststore.type=PEM"),
    ],
)
def test_settings_of_librdkafka_are_told_with_ours(name: str, ours: str) -> None:
    told = problem_of(lambda: Producer({"bootstrap.servers": "localhost:9092", name: "1"}))
    assert told.startswith(f"{name}=1: it must be the name of a setting of the producer; ")
    assert told.endswith(f"; librdkafka has it, and here it is {ours}")


def test_a_password_that_librdkafka_would_take_is_not_shown() -> None:
    told = problem_of(lambda: Producer({"bootstrap.servers": "localhost:9092", "sasl.password": "secret"}))
    assert "secret" not in told


def test_sasl_without_a_login_shows_one_that_can_be_copied() -> None:
    given = {"bootstrap.servers": "localhost:9092", "security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}
    assert problem_of(lambda: Producer(given)) == (
        "sasl.jaas.config is missing: it must be given: a login, as in "
        '`org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="secret";`'
    )
    given["sasl.mechanism"] = "SCRAM-SHA-256"
    assert "security.scram.ScramLoginModule" in problem_of(lambda: Producer(given))


@pytest.mark.parametrize(
    ("security", "reason"),
    [
        ("SASL_PLAINTEXT", "at the first request; does the listener want SASL (security.protocol)?"),
        ("SSL", "speaks TLS, and this client does not (security.protocol)"),
    ],
)
def test_a_plain_client_at_a_guarded_listener_is_told_what_it_lacks(security: str, reason: str) -> None:
    with Broker(security=security) as guarded, Admin(bootstrap_servers=guarded.bootstrap) as admin:
        assert reason in problem_of(lambda: admin.list_topics(timeout=2))


def test_serializers_of_one_argument_are_taken(node: Broker) -> None:
    node.create_topic("of-one")
    writing: dict[str, Any] = {
        "value_serializer": lambda value: json.dumps(value).encode(),
        "key_serializer": str.encode,
    }
    with Producer(bootstrap_servers=node.bootstrap, **writing) as producer:
        producer.send("of-one", {"a": 1}, "key").result(WAIT_S)
    reading: dict[str, Any] = {"value_deserializer": json.loads, "key_deserializer": bytes.decode, "group_id": "of-one"}
    with Consumer(bootstrap_servers=node.bootstrap, auto_offset_reset="earliest", **reading) as reader:
        reader.subscribe(["of-one"])
        found = next(record for _ in range(100) for record in reader.poll(1))
    assert (found.key, found.value) == ("key", {"a": 1})


def test_a_serializer_that_makes_text_is_told_to_encode_it(node: Broker) -> None:
    with Producer(bootstrap_servers=node.bootstrap, value_serializer=json.dumps) as producer:
        told = problem_of(lambda: producer.send("orders", {"a": 1}))
    assert "its serializer has returned str, and not bytes: encode it" in told


# Brokers for tests


def test_a_mistyped_setting_of_a_broker_for_tests_is_refused_with_the_nearest() -> None:
    with pytest.raises(NodeError, match=r"num\.partition: no setting has this name \(did you mean num\.partitions\?\)"):
        Broker({"num.partition": 3}).__enter__()


def test_a_cluster_for_tests_may_be_secured() -> None:
    with Cluster(2, security="SASL_SSL") as cluster, Producer(cluster.client_settings) as producer:
        cluster.create_topic("orders")
        assert producer.send("orders", b"a").result(WAIT_S).offset == 0
        assert cluster.bootstrap.count("localhost:") == 2


def test_factories_take_what_brokers_and_clusters_take(ottla_broker_factory: Callable[..., Broker]) -> None:
    broker = ottla_broker_factory(security="SSL")
    assert broker.client_settings["security.protocol"] == "SSL"


# Kafka's tools


@pytest.fixture
def member(node: Broker) -> Iterator[Consumer]:
    """In the group `live`, with a partition and without a committed offset."""
    with Consumer(bootstrap_servers=node.bootstrap, group_id="live", enable_auto_commit=False) as consumer:
        consumer.subscribe(["orders"])
        while not consumer.assignment():
            consumer.poll(0.1)
        yield consumer


def test_groups_that_cannot_be_deleted(tool: Tool, member: Consumer) -> None:
    for group, reason in (
        ("live", "GroupNotEmptyException: The group is not empty."),
        ("gone", "GroupIdNotFoundException: The group id does not exist."),
    ):
        told = f"* Group '{group}' could not be deleted due to: org.apache.kafka.common.errors.{reason}\n"
        assert told in tool(f"consumer-groups --delete --group {group}")
    offsets = tool("consumer-groups --delete-offsets --group gone --topic orders")
    assert offsets.startswith("\nError: The group id does not exist.\n")


def test_a_partition_without_a_committed_offset_has_a_hyphen(tool: Tool, member: Consumer) -> None:
    row = tool("consumer-groups --describe --group live").splitlines()[-1].split()
    assert row[:6] == ["live", "orders", "0", "-", "0", "-"]


def test_no_authorizer(tool: Tool) -> None:
    before = "Error while executing ACL command: org.apache.kafka.common.errors.SecurityDisabledException: "
    told = f"{before}No Authorizer is configured on the broker\n"
    assert tool("acls --list") == told
    assert tool("acls --add --allow-principal User:a --operation Read --topic x").endswith(told)


def test_quotas_stand_in_kafkas_order(tool: Tool, node: Broker) -> None:
    with Admin(bootstrap_servers=node.bootstrap) as admin:
        rates = {"producer_byte_rate": 100.0, "consumer_byte_rate": 200.0}
        more = {"request_percentage": 6.0, "controller_mutation_rate": 3.0}
        admin.alter_client_quotas({QuotaEntity.of(user="alice"): {**rates, **more}}).raise_first()
        admin.alter_client_quotas({QuotaEntity.of(client_id=None): rates}).raise_first()
    assert tool("configs --describe --entity-type users --entity-name alice") == (
        "Quota configs for user-principal 'alice' are producer_byte_rate=100.0, consumer_byte_rate=200.0, "
        "controller_mutation_rate=3.0, request_percentage=6.0\n"
    )
    assert tool("configs --describe --entity-type clients --entity-default") == (
        "Quota configs for the default client-id are consumer_byte_rate=200.0, producer_byte_rate=100.0\n"
    )


def test_a_mistyped_topic_is_told_with_the_nearest(tool: Tool) -> None:
    assert tool("topics --describe --topic ordres") == (
        "Error while executing topic command : Topic 'ordres' does not exist as expected (did you mean orders?)\n"
    )


# Ports that are taken


@pytest.mark.parametrize("option", ["--port", "--metrics", "--faults"])
def test_a_port_that_is_taken_is_told_without_numbers_of_errors(node: Broker, tmp_path: Path, option: str) -> None:
    port = node.bootstrap.rpartition(":")[2]
    words = ["--data", str(tmp_path), *(() if option == "--port" else ("--port", "0")), option, port]
    command = [sys.executable, "-m", "ottla.cli.main", "start", *words]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S)
    assert ended.returncode == 1
    assert "Errno" not in ended.stderr
    assert "ddress already in use" in ended.stderr
    assert port in ended.stderr
