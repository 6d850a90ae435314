"""Our nodes and Apache Kafka's in one quorum: each kind leads and follows the other, and the metadata goes on."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from apache_kafka import CLUSTER_ID, QUICK_START, free_ports, java, libraries

from ottla.admin import NewTopic
from ottla.cli.local_cluster.cluster_making import make_cluster
from ottla.cli.local_cluster.node_process import start_process, wait_until_ready
from ottla.client.blocking.admin import Admin
from ottla.errors import KafkaError

pytestmark = pytest.mark.interop

KAFKAS, OURS = (1,), (2, 3)
WAIT_S = 120.0
MOST_ROUNDS = 8


class MixedCluster:
    """Three combined nodes with static voters; the first is Apache Kafka's."""

    def __init__(self, directory: Path) -> None:
        ports = free_ports(6)
        voters = ",".join(f"{number}@127.0.0.1:{ports[2 + number]}" for number in (1, 2, 3))
        self.addresses = {number: f"127.0.0.1:{ports[number - 1]}" for number in (1, 2, 3)}
        self.files = {number: directory / f"{number}.properties" for number in (1, 2, 3)}
        self.processes: dict[int, subprocess.Popen[bytes]] = {}
        for number, path in self.files.items():
            settings = {
                "process.roles": "broker,controller",
                "node.id": number,
                "controller.listener.names": "CONTROLLER",
                "controller.quorum.voters": voters,
                "listeners": f"PLAINTEXT://{self.addresses[number]},CONTROLLER://127.0.0.1:{ports[2 + number]}",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
                "log.dirs": directory / f"data-{number}",
                "broker.session.timeout.ms": 3000,
                "broker.heartbeat.interval.ms": 500,
            }
            path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
            java("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(path))

    def start(self, number: int) -> None:
        path = str(self.files[number])
        ours = [sys.executable, "-m", "ottla.cli.main", "start", "--config", path]
        theirs = ["java", *QUICK_START, "-Xmx300m", "-cp", f"{libraries()}/*", "kafka.Kafka", path]
        with self.files[number].with_suffix(".log").open("ab") as log:
            self.processes[number] = subprocess.Popen(
                theirs if number in KAFKAS else ours, stdout=log, stderr=subprocess.STDOUT
            )

    def kill(self, number: int) -> None:
        process = self.processes.pop(number)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def close(self) -> None:
        for number in list(self.processes):
            self.kill(number)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[MixedCluster]:
    made = MixedCluster(tmp_path)
    try:
        for number in (1, 2, 3):
            made.start(number)
        yield made
    finally:
        made.close()


def eventually(look: Callable[[], bool], what: str) -> None:
    ends_s = time.monotonic() + WAIT_S
    while True:
        try:
            if look():
                return
        except KafkaError:
            pass
        assert time.monotonic() < ends_s, f"{what}: not after {WAIT_S:.0f} s"
        time.sleep(0.2)


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
            led.add("Apache Kafka" if quorum.leader_id in KAFKAS else "ottla")
            if len(led) == 2:
                break
            cluster.kill(quorum.leader_id)
            dead = quorum.leader_id
            eventually(lambda dead=dead: admin.describe_metadata_quorum().leader_id != dead, "somebody else leads")
            cluster.start(dead)
    assert led == {"ottla", "Apache Kafka"}


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
