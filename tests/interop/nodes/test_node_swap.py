"""One directory, two implementations: what Apache Kafka wrote, we serve, and back again."""

import re
from pathlib import Path

import pytest

from ottla.testing.node import RunningNode
from tests.interop.apache_kafka import MAIN_CLASSES, ApacheKafka, java
from tests.interop.nodes.test_node_tools import Tools

pytestmark = pytest.mark.interop

COMPRESSIONS = ["none", "gzip", "snappy", "lz4", "zstd"]
SHOW = ["print.offset", "print.timestamp", "print.key", "print.headers"]


def write(tool: Tools, topic: str, compression: str, who: str) -> None:
    options = ["--command-property", f"compression.type={compression}"]
    for reader in ("parse.key=true", "key.separator=:", "parse.headers=true"):
        options += ["--reader-property", reader]
    lines = "".join(f"by:{who},n:{number}\tkey {number}:value {number} of {who}\n" for number in range(20))
    tool("kafka-console-producer", f"--topic {topic}", *options, input=lines)


def read(tool: Tools, topic: str, count: int) -> list[str]:
    """Offset, time, headers, key and value of each record, as Kafka's consumer prints them."""
    options = [word for name in SHOW for word in ("--formatter-property", f"{name}=true")]
    words = f"--topic {topic} --partition 0 --offset earliest --max-messages {count}"
    return tool("kafka-console-consumer", words, *options).splitlines()


def describe(tool: Tools) -> list[str]:
    """Topics with their ids and settings, and every setting of one of them."""
    topics = sorted(in_order(line) for line in tool("kafka-topics", "--describe").splitlines())
    settings = tool("kafka-configs", "--entity-type topics --entity-name zstd --describe --all").splitlines()
    return topics + sorted(settings)


def in_order(line: str) -> str:
    """The settings of a topic come in the order of a hash table."""
    head, configs, settings = line.partition("Configs: ")
    return head + configs + ",".join(sorted(settings.split(",")))


def cluster_id(tool: Tools) -> str:
    printed = java(MAIN_CLASSES["kafka-cluster"], "cluster-id", "--bootstrap-server", tool.bootstrap).stdout
    (found,) = re.findall(r"Cluster ID: (\S+)", printed)
    return str(found)


@pytest.mark.parametrize("ending", ["stop", "kill"])
def test_a_directory_goes_from_kafka_to_us_and_back(ending: str, tmp_path: Path) -> None:
    with ApacheKafka(tmp_path) as kafka:
        tool = Tools(kafka.bootstrap)
        for compression in COMPRESSIONS:
            tool(
                "kafka-topics",
                f"--create --topic {compression} --config retention.ms=99999999999 --config segment.bytes=1048576",
            )
            write(tool, compression, compression, "kafka")
        tool("kafka-topics", "--create --topic several --partitions 4")
        tool("kafka-topics", "--create --topic gone")
        tool("kafka-topics", "--delete --topic gone")
        told = describe(tool)
        records = {topic: read(tool, topic, 20) for topic in COMPRESSIONS}
        identity = cluster_id(tool)
        getattr(kafka, ending)()

    with RunningNode(tmp_path) as node:
        tool = Tools(node.bootstrap)
        assert cluster_id(tool) == identity
        assert describe(tool) == told
        assert {topic: read(tool, topic, 20) for topic in COMPRESSIONS} == records
        for compression in COMPRESSIONS:
            write(tool, compression, compression, "ottla")
        tool("kafka-topics", "--create --topic ours --partitions 2 --config max.message.bytes=12345")
        tool("kafka-topics", "--alter --topic several --partitions 6")
        write(tool, "several", "lz4", "ottla")
        told = describe(tool)
        both = {topic: read(tool, topic, 40) for topic in COMPRESSIONS}
        assert {topic: lines[:20] for topic, lines in both.items()} == records
        getattr(node, ending)()

    with ApacheKafka(tmp_path) as kafka:
        tool = Tools(kafka.bootstrap)
        assert cluster_id(tool) == identity
        assert describe(tool) == told
        assert {topic: read(tool, topic, 40) for topic in COMPRESSIONS} == both
        write(tool, "ours", "zstd", "kafka")
        kafka.stop()

    with RunningNode(tmp_path) as node:
        assert {topic: read(Tools(node.bootstrap), topic, 40) for topic in COMPRESSIONS} == both
