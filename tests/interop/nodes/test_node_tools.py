"""Apache Kafka's own command-line tools against a node of ours.

With `OTTLA_TEST_TARGET=apache-kafka` they run against Apache Kafka, which is how these tests are tested.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.apache_kafka import MAIN_CLASSES, java
from tests.interop.target import Target, a_target

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def node() -> Iterator[Target]:
    with a_target() as running:
        yield running


class Tools:
    """Kafka's tools by name, each called with the node's address."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def __call__(self, name: str, words: str = "", *more: str, input: str | None = None, check: bool = True) -> str:
        address = ("--bootstrap-server", self.bootstrap)
        done = java(MAIN_CLASSES[name], *address, *words.split(), *more, input=input, check=check)
        return done.stdout + ("" if check else done.stderr)


@pytest.fixture(scope="module")
def tool(node: Target) -> Tools:
    return Tools(node.bootstrap)


def test_topics(tool: Tools) -> None:
    assert "Created topic orders" in tool(
        "kafka-topics", "--create --topic orders --partitions 2 --config retention.ms=1000000"
    )
    assert "already exists" in tool("kafka-topics", "--create --topic orders", check=False)
    assert "orders" in tool("kafka-topics", "--list").split()
    described = tool("kafka-topics", "--describe --topic orders")
    assert re.search(r"PartitionCount: 2\s+ReplicationFactor: 1\s+Configs: .*retention.ms=1000000", described)
    assert re.search(r"Partition: 1\s+Leader: 1\s+Replicas: 1\s+Isr: 1\s", described)
    tool("kafka-topics", "--alter --topic orders --partitions 5")
    assert "PartitionCount: 5" in tool("kafka-topics", "--describe --topic orders")
    tool("kafka-topics", "--delete --topic orders")
    assert "orders" not in tool("kafka-topics", "--list").split()


def test_console_producer_and_consumer_and_offsets(tool: Tools) -> None:
    tool("kafka-topics", "--create --topic lines")
    lines = [f"k{number}:line {number}" for number in range(100)]
    options = ("--command-property", "compression.type=lz4", "--reader-property", "parse.key=true")
    options += ("--reader-property", "key.separator=:")
    tool("kafka-console-producer", "--topic lines", *options, input="".join(f"{line}\n" for line in lines))
    show = ("--formatter-property", "print.key=true", "--formatter-property", "key.separator=:")
    read = tool("kafka-console-consumer", "--topic lines --partition 0 --offset 40 --max-messages 60", *show)
    assert read.splitlines() == lines[40:]
    assert tool("kafka-get-offsets", "--topic lines").split() == ["lines:0:100"]
    assert tool("kafka-get-offsets", "--topic lines --time earliest").split() == ["lines:0:0"]
    assert tool("kafka-get-offsets", "--topic lines --time 0").split() == ["lines:0:0"]
    latest = tool("kafka-get-offsets", "--topic lines --time max-timestamp").strip()
    assert re.fullmatch(r"lines:0:\d+", latest)


def test_configs_of_a_topic(tool: Tools) -> None:
    tool("kafka-topics", "--create --topic configured")
    entity = "--entity-type topics --entity-name configured"
    tool("kafka-configs", f"{entity} --alter --add-config retention.ms=5000000,cleanup.policy=[compact,delete]")
    described = tool("kafka-configs", f"{entity} --describe")
    assert "retention.ms=5000000 sensitive=false" in described
    assert "cleanup.policy=compact,delete" in described
    tool("kafka-configs", f"{entity} --alter --delete-config cleanup.policy")
    everything = tool("kafka-configs", f"{entity} --describe --all")
    assert "cleanup.policy=delete sensitive=false synonyms={DEFAULT_CONFIG:log.cleanup.policy=delete}" in everything
    refused = tool("kafka-configs", f"{entity} --alter --add-config retention.ms=soon", check=False)
    assert "Invalid value soon for configuration retention.ms" in refused


def test_configs_of_a_broker_and_of_all_brokers(tool: Tools) -> None:
    tool("kafka-configs", "--entity-type brokers --entity-name 1 --alter --add-config log.cleaner.threads=2")
    assert "log.cleaner.threads=2" in tool("kafka-configs", "--entity-type brokers --entity-name 1 --describe")
    tool("kafka-configs", "--entity-type brokers --entity-default --alter --add-config log.retention.ms=7000000")
    assert "log.retention.ms=7000000" in tool("kafka-configs", "--entity-type brokers --entity-default --describe")
    tool("kafka-configs", "--entity-type brokers --entity-default --alter --delete-config log.retention.ms")
    refused = tool(
        "kafka-configs", "--entity-type brokers --entity-name 1 --alter --add-config process.roles=x", check=False
    )
    assert re.search("(?i)cannot update|Invalid", refused)


def test_quotas(tool: Tools) -> None:
    entity = "--entity-type clients --entity-name someone"
    tool("kafka-configs", f"{entity} --alter --add-config producer_byte_rate=1024")
    assert "producer_byte_rate=1024.0" in tool("kafka-configs", f"{entity} --describe")


def test_log_dirs(tool: Tools) -> None:
    tool("kafka-topics", "--create --topic stored --partitions 2")
    described = tool("kafka-log-dirs", "--describe --topic-list stored")
    (broker,) = json.loads(described.splitlines()[-1])["brokers"]
    partitions = [partition["partition"] for held in broker["logDirs"] for partition in held["partitions"]]
    assert sorted(partitions) == ["stored-0", "stored-1"]
    assert [held["error"] for held in broker["logDirs"]] == [None]


def test_metadata_quorum(tool: Tools) -> None:
    status = tool("kafka-metadata-quorum", "describe --status")
    assert re.search(r"LeaderId:\s+1\b", status)
    assert re.search(r"HighWatermark:\s+[1-9]\d*", status)
    assert re.search(r"CurrentVoters:\s+\[\{\"id\": 1", status)
    replication = tool("kafka-metadata-quorum", "describe --replication")
    assert re.search(r"^1\s+\S+\s+\d+\s+0\s+.*Leader", replication, re.MULTILINE)


def test_broker_api_versions_and_features_and_cluster(tool: Tools) -> None:
    versions = tool("kafka-broker-api-versions", "")
    assert re.search(r"Produce\(0\): 0 to 13 \[usable: 13\]", versions)
    assert re.search(r"Fetch\(1\): 4 to 18 \[usable: 18\]", versions)
    features = tool("kafka-features", "describe")
    assert re.search(r"Feature: metadata.version\s+SupportedMinVersion: 3.3-IV3\s+SupportedMaxVersion: 4.3", features)
    assert re.search(
        r"Cluster ID: \S{22}",
        java(MAIN_CLASSES["kafka-cluster"], "cluster-id", "--bootstrap-server", tool.bootstrap).stdout,
    )


def test_delete_records(tool: Tools, tmp_path: Path) -> None:
    tool("kafka-topics", "--create --topic trimmed")
    tool("kafka-console-producer", "--topic trimmed", input="a\nb\nc\nd\n")
    wanted = tmp_path / "offsets.json"
    wanted.write_text(json.dumps({"partitions": [{"topic": "trimmed", "partition": 0, "offset": 3}], "version": 1}))
    assert "low_watermark: 3" in tool("kafka-delete-records", f"--offset-json-file {wanted}")
    assert tool("kafka-get-offsets", "--topic trimmed --time earliest").split() == ["trimmed:0:3"]


def test_elections_and_reassignments(tool: Tools) -> None:
    tool("kafka-topics", "--create --topic elected")
    election = "--election-type preferred --topic elected --partition 0"
    assert "Valid replica already elected" in tool("kafka-leader-election", election)
    assert "No partition reassignments found" in tool("kafka-reassign-partitions", "--list")


def test_verifiable_producer(tool: Tools) -> None:
    tool("kafka-topics", "--create --topic verified")
    printed = tool("kafka-verifiable-producer", "--topic verified --max-messages 2000 --acks -1")
    sent = [json.loads(line) for line in printed.splitlines() if '"producer_send_success"' in line]
    assert sorted(event["offset"] for event in sent) == list(range(2000))
    assert '"acked":2000' in printed


def test_perf_producer_with_default_settings(tool: Tools) -> None:
    """Idempotent, acks=all, five in flight."""
    tool("kafka-topics", "--create --topic perf --partitions 3")
    words = "--topic perf --num-records 50000 --record-size 200 --throughput -1 --command-property"
    printed = java(
        MAIN_CLASSES["kafka-producer-perf-test"], *words.split(), f"bootstrap.servers={tool.bootstrap}"
    ).stdout
    assert "50000 records sent" in printed
    ends = [int(line.rpartition(":")[2]) for line in tool("kafka-get-offsets", "--topic perf").split()]
    assert sum(ends) == 50000


def test_dump_log_reads_our_directory(tool: Tools, node: Target) -> None:
    tool("kafka-topics", "--create --topic dumped --config retention.bytes=987654321")
    tool("kafka-console-producer", "--topic dumped --compression-codec zstd", input="one\ntwo\n")
    segment = next((node.data / "dumped-0").glob("*.log"))
    printed = java(MAIN_CLASSES["kafka-dump-log"], "--print-data-log", "--files", str(segment)).stdout
    assert re.search(r"count: 2 .*compresscodec: zstd .*isvalid: true", printed)
    assert "payload: two" in printed
    metadata = sorted((node.data / "__cluster_metadata-0").glob("*.log"))
    decoder = ("--cluster-metadata-decoder", "--files", ",".join(map(str, metadata)))
    printed = java(MAIN_CLASSES["kafka-dump-log"], *decoder).stdout
    assert '"type":"TOPIC_RECORD"' in printed
    assert '"name":"dumped"' in printed
    assert '"name":"retention.bytes","value":"987654321"' in printed
    assert '"type":"REGISTER_BROKER_RECORD"' in printed
    assert "isvalid: false" not in printed
