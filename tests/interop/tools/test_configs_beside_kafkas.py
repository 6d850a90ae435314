"""kafka-configs prints what Kafka's prints."""

import pytest

from tests.interop.tools.beside import Beside

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def scene(beside: Beside) -> Beside:
    beside.both("kafka-topics {at} --create --topic c-{me}")
    return beside


def commands(beside: Beside, *lines: str) -> None:
    for words in lines:
        beside.same(f"kafka-configs {{at}} {words}", ordered=False)


def test_settings_of_topics(scene: Beside) -> None:
    scene.file("add.properties", "retention.ms=123456\nsegment.bytes=1048576\n")
    commands(
        scene,
        "--describe --topic c-{me}",
        "--describe --topic c-{me} --all",
        "--describe --entity-type topics",
        "--describe --topic nope",
        "--alter --topic c-{me} --add-config retention.ms=5000000,cleanup.policy=[compact,delete]",
        "--describe --entity-type topics --entity-name c-{me}",
        "--alter --topic c-{me} --delete-config cleanup.policy,nonsense",
        "--alter --topic c-{me} --add-config-file {files}/add.properties",
        "--describe --topic c-{me}",
        "--alter --topic c-{me} --add-config retention.ms=soon",
        "--alter --topic c-{me} --add-config nonsense=1",
        "--alter --topic c-{me} --add-config nonsense",
        "--alter --topic nope --add-config retention.ms=1",
    )


def test_settings_of_brokers(scene: Beside) -> None:
    commands(
        scene,
        "--describe --broker 1",
        "--describe --broker-defaults",
        "--describe --entity-type brokers",
        "--alter --broker 1 --add-config log.cleaner.threads=2",
        "--describe --broker 1",
        "--alter --broker 1 --delete-config log.cleaner.threads",
        "--alter --broker-defaults --add-config log.retention.ms=7000000",
        "--describe --entity-type brokers --entity-default",
        "--alter --broker-defaults --delete-config log.retention.ms",
        "--alter --broker 1 --add-config process.roles=x",
        "--describe --broker-logger 1",
        "--alter --broker-logger 1 --add-config kafka.x=DEBUG",
    )
    scene.same("kafka-configs --bootstrap-controller {controller} --describe --broker 1")


def test_quotas(scene: Beside) -> None:
    commands(
        scene,
        "--alter --client q-{me} --add-config producer_byte_rate=1024,consumer_byte_rate=20480000",
        "--describe --client q-{me}",
        "--describe --entity-type clients",
        "--alter --user u-{me} --client q-{me} --add-config request_percentage=50",
        "--describe --user u-{me} --client q-{me}",
        "--describe --entity-type users --entity-type clients",
        "--alter --entity-type users --entity-name u-{me} --entity-type clients --entity-default "
        "--add-config producer_byte_rate=5",
        "--describe --entity-type users --entity-name u-{me} --entity-type clients --entity-default",
        "--alter --user-defaults --add-config producer_byte_rate=10",
        "--describe --user-defaults",
        "--alter --entity-type users --entity-default --delete-config producer_byte_rate",
        "--alter --client q-{me} --add-config producer_byte_rate=x",
        "--alter --client q-{me} --add-config nonsense=1",
        "--alter --client q-{me} --delete-config nonsense",
        "--alter --ip 127.0.0.9 --add-config connection_creation_rate=10",
        "--describe --ip 127.0.0.9",
        "--alter --ip-defaults --add-config connection_creation_rate=100",
        "--describe --entity-type ips",
        "--alter --ip nohost.invalid --add-config connection_creation_rate=10",
    )


def test_credentials(scene: Beside) -> None:
    commands(
        scene,
        "--alter --user a-{me} --add-config SCRAM-SHA-256=[iterations=8192,password=secret]",
        "--alter --user a-{me} --add-config SCRAM-SHA-512=[password=secret]",
        "--describe --user a-{me}",
        "--alter --user a-{me} --delete-config SCRAM-SHA-256",
        "--alter --user a-{me} --delete-config SCRAM-SHA-256",
        "--alter --user a-{me} --add-config SCRAM-SHA-256=[iterations=1,password=secret]",
        "--alter --user a-{me} --add-config SCRAM-SHA-256=secret",
        "--describe --user nobody",
    )


def test_settings_of_groups_and_of_metrics(scene: Beside) -> None:
    commands(
        scene,
        "--alter --client-metrics m-{me} --add-config interval.ms=10000,metrics=[a,b]",
        "--describe --client-metrics m-{me}",
        "--describe --entity-type client-metrics",
        "--alter --client-metrics m-{me} --delete-config metrics",
        "--describe --client-metrics nope",
        "--alter --group cg-{me} --add-config consumer.session.timeout.ms=50000",
        "--describe --group cg-{me}",
        "--describe --entity-type groups",
        "--describe --group nope",
        "--alter --group cg-{me} --delete-config consumer.session.timeout.ms",
    )


def test_what_is_wrong_is_told_alike(scene: Beside) -> None:
    commands(
        scene,
        "--alter --topic x",
        "--alter --topic x --add-config a=b --add-config-file x",
        "--describe",
        "--topic x",
        "--describe --alter --topic x",
        "--describe --topic x --broker 1",
        "--describe --entity-type nope --entity-name x",
        "--describe --entity-type topics --entity-default",
        "--describe --broker x",
        "--bootstrap-controller {controller} --describe --broker 1",
        "--lis",
    )
    scene.same("kafka-configs --describe --topic x")
