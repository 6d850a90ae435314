"""`--json` of Kafka's tools, against a node of ours."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ottla import Admin, Producer, TopicPartition
from ottla.admin import NewTopic, QuotaEntity, ScramMechanism, ScramUpsertion
from ottla.cli.kafka import run
from ottla.config.values import Password
from ottla.testing.node import RunningNode


@pytest.fixture(scope="module")
def node() -> Iterator[RunningNode]:
    rules = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    with RunningNode(config=rules) as node, Admin(bootstrap_servers=node.bootstrap) as admin:
        topics = [NewTopic("clicks", 2, 1, config={"retention.ms": "5000"}), NewTopic("orders", 1, 1)]
        admin.create_topics(topics).raise_first()
        with Producer(bootstrap_servers=node.bootstrap) as producer:
            producer.send("clicks", b"v", partition=1)
        admin.alter_consumer_group_offsets("readers", {TopicPartition("clicks", 0): 0}).raise_first()
        yield node


@pytest.fixture
def tool(node: RunningNode, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    def told(name: str, *words: str) -> Any:
        assert run(name, ["--bootstrap-server", node.bootstrap, "--json", *words]) == 0
        return json.loads(capsys.readouterr().out)

    return told


def test_topics(tool: Callable[..., Any]) -> None:
    assert tool("topics", "--list", "--exclude-internal") == ["clicks", "orders"]
    (clicks,) = tool("topics", "--describe", "--topic", "clicks")
    assert (clicks["topic"], clicks["configs"]["retention.ms"]) == ("clicks", "5000")
    assert [one["partition"] for one in clicks["partitions"]] == [0, 1]
    first = clicks["partitions"][0]
    assert first["replicas"] == first["in_sync_replicas"] == [first["leader"]]
    assert first["eligible_leader_replicas"] in ([], None)


def test_filters_of_topics(tool: Callable[..., Any]) -> None:
    assert tool("topics", "--describe", "--unavailable-partitions") == []
    overridden = tool("topics", "--describe", "--topics-with-overrides", "--topic", "clicks")
    assert [(one["topic"], "partitions" in one) for one in overridden] == [("clicks", False)]


def test_offsets(tool: Callable[..., Any]) -> None:
    assert tool("get-offsets", "--topic", "clicks") == [
        {"topic": "clicks", "partition": 0, "offset": 0},
        {"topic": "clicks", "partition": 1, "offset": 1},
    ]


def test_groups(tool: Callable[..., Any]) -> None:
    (group,) = tool("groups", "--list")
    assert (group["group"], group["type"]) == ("readers", "Classic")


def test_consumer_groups(tool: Callable[..., Any]) -> None:
    assert tool("consumer-groups", "--list") == [{"group": "readers", "type": "Classic", "state": "Empty"}]
    (row,) = tool("consumer-groups", "--describe", "--group", "readers")
    assert (row["topic"], row["partition"], row["offset"], row["end_offset"], row["lag"]) == ("clicks", 0, 0, 0, 0)
    assert row["consumer_id"] is None
    (state,) = tool("consumer-groups", "--describe", "--group", "readers", "--state")
    assert (state["state"], state["members"]) == ("Empty", 0)
    assert tool("consumer-groups", "--describe", "--group", "readers", "--members") == []


def test_json_goes_with_what_prints_something(node: RunningNode, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("topics", ["--bootstrap-server", node.bootstrap, "--delete", "--topic", "orders", "--json"]) == 1
    assert 'Option "[json]" can\'t be used with option "[delete]"' in capsys.readouterr().err


def test_settings(tool: Callable[..., Any]) -> None:
    (clicks,) = tool("configs", "--describe", "--topic", "clicks")
    assert (clicks["type"], clicks["name"]) == ("topics", "clicks")
    (retention,) = clicks["configs"]
    assert (retention["name"], retention["value"], retention["source"]) == (
        "retention.ms",
        "5000",
        "DYNAMIC_TOPIC_CONFIG",
    )
    (everything,) = tool("configs", "--describe", "--topic", "clicks", "--all")
    assert len(everything["configs"]) > 20
    brokers = tool("configs", "--describe", "--entity-type", "brokers")
    assert [one["name"] for one in brokers] == ["1", None]
    assert tool("configs", "--describe", "--topic", "nowhere") == []


def test_quotas_and_credentials(node: RunningNode, tool: Callable[..., Any]) -> None:
    with Admin(bootstrap_servers=node.bootstrap) as admin:
        quota = QuotaEntity((("client-id", None), ("user", "alice")))
        admin.alter_client_quotas({quota: {"producer_byte_rate": 1024.0}}).raise_first()
        credential = ScramUpsertion("alice", ScramMechanism.SCRAM_SHA_256, Password("secret"), 4096)
        admin.alter_user_scram_credentials([credential]).raise_first()
    assert tool("configs", "--describe", "--user", "alice", "--client-defaults") == [
        {"entity": {"client-id": None, "user": "alice"}, "quotas": {"producer_byte_rate": 1024.0}}
    ]
    assert tool("configs", "--describe", "--user", "alice") == [
        {"user": "alice", "credentials": [{"mechanism": "SCRAM-SHA-256", "iterations": 4096}]}
    ]


def test_a_cluster(node: RunningNode, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("cluster", ["cluster-id", "--bootstrap-server", node.bootstrap, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["cluster_id"]) == 22
    assert run("cluster", ["list-endpoints", "--bootstrap-server", node.bootstrap, "--json"]) == 0
    host, _, port = node.bootstrap.partition(":")
    (broker,) = json.loads(capsys.readouterr().out)
    assert broker == {"id": 1, "host": host, "port": int(port), "rack": None, "state": "unfenced", "type": "broker"}


@pytest.fixture
def command(node: RunningNode, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Of a tool that has commands."""

    def told(name: str, *words: str) -> Any:
        assert run(name, ["--bootstrap-server", node.bootstrap, *words, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    return told


def test_a_quorum_and_features(command: Callable[..., Any]) -> None:
    status = command("metadata-quorum", "describe", "--status")
    assert len(status["cluster_id"]) == 22
    (voter,) = command("metadata-quorum", "describe", "--replication")["voters"]
    assert voter["replica_id"] == status["leader_id"] == 1
    features = command("features", "describe")
    assert features["finalized"]["group.version"] == {"low": 1, "high": 1}


def test_transactions(node: RunningNode, command: Callable[..., Any]) -> None:
    with Producer(bootstrap_servers=node.bootstrap, transactional_id="sums") as producer:
        producer.begin()
        producer.send("orders", b"one").result(30)
        (listed,) = command("transactions", "list")
        assert (listed["transactional_id"], listed["state"], listed["coordinator_id"]) == ("sums", "Ongoing", 1)
        described = command("transactions", "describe", "--transactional-id", "sums")
        assert described["partitions"] == [{"topic": "orders", "partition": 0}]
        (state,) = command("transactions", "describe-producers", "--topic", "orders", "--partition", "0")
        assert state["producer_id"] == listed["producer_id"]
        assert command("transactions", "find-hanging", "--topic", "orders") == []
        producer.abort()


def test_rules_of_access(node: RunningNode, tool: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    rule = ["--add", "--allow-principal", "User:alice", "--operation", "Read", "--topic", "clicks"]
    assert run("acls", ["--bootstrap-server", node.bootstrap, *rule]) == 0
    capsys.readouterr()
    assert tool("acls", "--list", "--topic", "clicks") == [
        {
            "resource_type": "TOPIC",
            "resource_name": "clicks",
            "principal": "User:alice",
            "operation": "READ",
            "permission": "ALLOW",
            "pattern_type": "LITERAL",
            "host": "*",
        }
    ]
    assert tool("acls", "--list", "--topic", "clicks", "--principal", "User:bob") == []
