"""Our nodes and Apache Kafka's in one quorum: each kind leads and follows the other, and the metadata goes on."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.admin import NewTopic
from ottla.cli.local_cluster.cluster_making import make_cluster
from ottla.cli.local_cluster.node_process import start_process, wait_until_ready
from ottla.client.blocking.admin import Admin
from tests.interop.apache_kafka import java
from tests.interop.mixed_cluster import APACHE_KAFKA, OURS, WAIT_S, MixedCluster, eventually

pytestmark = pytest.mark.interop

MOST_ROUNDS = 8


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[MixedCluster]:
    with MixedCluster(tmp_path, {1: APACHE_KAFKA, 2: OURS, 3: OURS}) as cluster:
        yield cluster


def test_either_kind_leads_the_other(cluster: MixedCluster) -> None:
    led: set[str] = set()
    topics: set[str] = set()
    with Admin(bootstrap_servers=",".join(cluster.addresses.values())) as admin:
        for round_number in range(MOST_ROUNDS):
            eventually(lambda: len(admin.describe_cluster().nodes) == 3, "three brokers are there")
            for number, address in cluster.addresses.items():
                name = f"round-{round_number}-through-{number}"
                with Admin(bootstrap_servers=address) as through:
                    through.create_topics([NewTopic(name, partitions=1, replication_factor=3)])[name]
                topics.add(name)
            quorum = admin.describe_metadata_quorum()
            end_offset = quorum.high_watermark
            eventually(
                lambda end=end_offset: all(
                    voter.log_end_offset >= end for voter in admin.describe_metadata_quorum().voters
                ),
                "all voters have the metadata",
            )
            assert {topic.name for topic in admin.list_topics()} == topics
            led.add(cluster.kinds[quorum.leader_id])
            if len(led) == 2:
                break
            cluster.kill(quorum.leader_id)
            dead = quorum.leader_id
            eventually(lambda dead=dead: admin.describe_metadata_quorum().leader_id != dead, "somebody else leads")
            cluster.start(dead)
    assert led == {OURS, APACHE_KAFKA}


def test_kafkas_tools_see_our_quorum(tmp_path: Path) -> None:
    nodes = make_cluster(tmp_path, 3, port=0)
    processes = [start_process(node) for node in nodes]
    try:
        wait_until_ready(nodes, WAIT_S)
        tool = "org.apache.kafka.tools.MetadataQuorumCommand"
        status = java(tool, "--bootstrap-server", nodes[0].address, "describe", "--status").stdout
        assert f"LeaderEpoch:            {1}" in status
        assert status.count("CONTROLLER://127.0.0.1:") == 3
        replication = java(tool, "--bootstrap-server", nodes[1].address, "describe", "--replication").stdout
        assert sorted(line.split()[-1] for line in replication.splitlines()[1:]) == ["Follower", "Follower", "Leader"]
        topics = "org.apache.kafka.tools.TopicCommand"
        java(topics, "--bootstrap-server", nodes[2].address, "--create", "--topic", "a", "--replication-factor", "3")
        assert "Replicas: " in java(topics, "--bootstrap-server", nodes[0].address, "--describe", "--topic", "a").stdout
    finally:
        for process in processes:
            process.kill()
            process.wait()
