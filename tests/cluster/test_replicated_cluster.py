"""Three real nodes: what was acknowledged survives the loss of any one of them, and clients go on by themselves."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ottla import Admin, Consumer, Producer
from ottla.admin import NewTopic
from tests.cluster.processes_of_a_cluster import ClusterOfProcesses, eventually
from tests.cluster.programs_of_a_cluster import PARTITIONS, Reading, Writing, assert_nothing_is_lost_or_repeated, tool


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterOfProcesses]:
    with ClusterOfProcesses(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


def create_topic(cluster: ClusterOfProcesses, topic: str) -> None:
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        admin.create_topics([NewTopic(topic, PARTITIONS, 3)]).raise_first()
    eventually(lambda: cluster.isr_of(topic) == [1, 2, 3], f"{topic} is in sync")


def test_a_leader_that_is_killed_costs_nothing(cluster: ClusterOfProcesses, capsys: pytest.CaptureFixture[str]) -> None:
    create_topic(cluster, "orders")
    writing, reading = Writing(cluster, "orders"), Reading(cluster, "orders")
    writing.wait_for_more()
    killed = cluster.leader_of("orders")
    left = sorted({1, 2, 3} - {killed})
    cluster.kill(killed)
    eventually(lambda: cluster.isr_of("orders") == left, "the ISR has shrunk")
    writing.wait_for_more()
    assert cluster.leader_of("orders") in left
    described = tool(capsys, "topics", cluster, "--describe", "--topic", "orders", "--under-replicated-partitions")
    assert described.count("Partition:") == PARTITIONS
    cluster.start(killed)
    eventually(lambda: cluster.isr_of("orders") == [1, 2, 3], "the ISR has grown again")
    writing.wait_for_more()
    assert_nothing_is_lost_or_repeated(writing, reading)


def test_a_rolling_restart_fails_no_request(cluster: ClusterOfProcesses) -> None:
    create_topic(cluster, "rolled")
    writing, reading = Writing(cluster, "rolled"), Reading(cluster, "rolled")
    for node_id in cluster.nodes:
        writing.wait_for_more()
        cluster.stop(node_id)
        writing.wait_for_more()
        cluster.start(node_id)
        eventually(
            lambda: all(cluster.isr_of("rolled", index) == [1, 2, 3] for index in range(PARTITIONS)), "all are in sync"
        )
    assert_nothing_is_lost_or_repeated(writing, reading)


def test_a_reassignment_ends_and_the_preferred_leader_leads(
    cluster: ClusterOfProcesses, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    create_topic(cluster, "moved")
    with Producer(bootstrap_servers=cluster.bootstrap, acks="all") as producer:
        for number in range(30):
            producer.send("moved", b"%d" % number, partition=0)
    leader = cluster.leader_of("moved")
    target = min({1, 2, 3} - {leader})
    plan = tmp_path / "plan.json"
    wanted = {"topic": "moved", "partition": 0, "replicas": [target, leader]}
    plan.write_text(json.dumps({"version": 1, "partitions": [wanted]}))
    words = ["--reassignment-json-file", str(plan)]
    tool(capsys, "reassign-partitions", cluster, "--execute", *words)
    eventually(lambda: cluster.isr_of("moved") == sorted((target, leader)), "the replica has left")
    eventually(_verifies(capsys, cluster, words), "the reassignment is complete")
    tool(capsys, "leader-election", cluster, "--election-type", "PREFERRED", "--topic", "moved", "--partition", "0")
    eventually(lambda: cluster.leader_of("moved") == target, "the preferred replica leads")
    with Consumer(bootstrap_servers=cluster.bootstrap, group_id="of moved", auto_offset_reset="earliest") as consumer:
        consumer.subscribe(["moved"])
        found: list[int] = []
        eventually(lambda: len(_read_into(found, consumer)) >= 30, "all is read")
    assert found == list(range(30))


def _verifies(capsys: pytest.CaptureFixture[str], cluster: ClusterOfProcesses, words: list[str]) -> Callable[[], bool]:
    return lambda: "is completed" in tool(capsys, "reassign-partitions", cluster, "--verify", *words)


def _read_into(found: list[int], consumer: Consumer) -> list[int]:
    found += [int(record.value) for record in consumer.poll(0.2)]
    return found
