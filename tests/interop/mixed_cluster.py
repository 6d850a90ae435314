"""Nodes of ours and of Apache Kafka's in one cluster, each a process of its own, with settings that both read.

with MixedCluster(directory, {1: APACHE_KAFKA, 2: OURS}, {1: "controller", 2: "broker"}) as cluster:
    Admin(bootstrap_servers=cluster.bootstrap)
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ottla.errors import KafkaError
from ottla.testing.free_ports import free_ports
from tests.interop.apache_kafka import CLUSTER_ID, QUICK_START, java, libraries

OURS, APACHE_KAFKA = "ottla", "apache-kafka"
COMBINED = "broker,controller"
WAIT_S = 120.0
UNSERVED_OFF = ["--feature", "share.version=0", "--feature", "streams.version=0"]
"""Where a node of ours is to be, features that it does not serve are off."""


class MixedCluster:
    """`kinds` and `roles` are by node id; without roles, every node is broker and controller.

    The voters are static, unless there is a `founder`: then they are data (KIP-853), that node is the first, and the
    others join by themselves (KIP-1186).

    `more` are settings of all nodes, `format_options` are for formatting them, and `allowed_urls` those that nodes may
    have tokens and keys from.
    """

    def __init__(
        self,
        directory: Path,
        kinds: Mapping[int, str],
        roles: Mapping[int, str] | None = None,
        *,
        more: Mapping[str, object] | None = None,
        format_options: Sequence[str] = (),
        allowed_urls: Sequence[str] = (),
        founder: int | None = None,
    ) -> None:
        self.kinds = dict(kinds)
        self._allowed = "-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=" + ",".join(allowed_urls)
        roles = roles or dict.fromkeys(kinds, COMBINED)
        ports = iter(free_ports(2 * len(kinds)))
        of_brokers = {node_id: f"127.0.0.1:{next(ports)}" for node_id in kinds}
        of_controllers = {node_id: f"127.0.0.1:{next(ports)}" for node_id in kinds if "controller" in roles[node_id]}
        self.addresses = {node_id: at for node_id, at in of_brokers.items() if "broker" in roles[node_id]}
        self.files = {node_id: directory / f"{node_id}.properties" for node_id in kinds}
        self.processes: dict[int, subprocess.Popen[bytes]] = {}
        for node_id, path in self.files.items():
            listeners = []
            if node_id in self.addresses:
                listeners.append(f"PLAINTEXT://{self.addresses[node_id]}")
            if node_id in of_controllers:
                listeners.append(f"CONTROLLER://{of_controllers[node_id]}")
            settings = {
                "process.roles": roles[node_id],
                "node.id": node_id,
                "controller.listener.names": "CONTROLLER",
                **_quorum(of_controllers, founder),
                "listeners": ",".join(listeners),
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
                "log.dirs": directory / f"data-{node_id}",
                "broker.session.timeout.ms": 3000,
                "broker.heartbeat.interval.ms": 500,
                "replica.lag.time.max.ms": 5000,
                "offsets.topic.replication.factor": len(self.addresses),
                "offsets.topic.num.partitions": 4,
                "transaction.state.log.replication.factor": len(self.addresses),
                "transaction.state.log.num.partitions": 4,
                "transaction.state.log.min.isr": 1,
                "group.initial.rebalance.delay.ms": 0,
                **(more or {}),
            }
            path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
            options = [*UNSERVED_OFF, *format_options]
            if founder is not None and node_id in of_controllers:
                options.append("--standalone" if node_id == founder else "--no-initial-controllers")
            java("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(path), *options)

    @property
    def bootstrap(self) -> str:
        return ",".join(self.addresses.values())

    def __enter__(self) -> "MixedCluster":
        for node_id in self.files:
            self.start(node_id)
        return self

    def __exit__(self, problem: object, *_: object) -> None:
        for node_id in list(self.processes):
            self.kill(node_id)
        if problem is not None:
            for node_id, path in self.files.items():
                print(f"node {node_id}, {self.kinds[node_id]}:\n{path.with_suffix('.log').read_text()[-3000:]}")

    def start(self, node_id: int) -> None:
        path = str(self.files[node_id])
        ours = [sys.executable, "-m", "ottla.cli.main", "start", "--config", path]
        theirs = ["java", *QUICK_START, "-Xmx300m", self._allowed, "-cp", f"{libraries()}/*", "kafka.Kafka", path]
        with self.files[node_id].with_suffix(".log").open("ab") as log:
            self.processes[node_id] = subprocess.Popen(
                ours if self.kinds[node_id] == OURS else theirs,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "KAFKA_OPTS": self._allowed},
            )

    def kill(self, node_id: int) -> None:
        process = self.processes.pop(node_id)
        process.send_signal(signal.SIGKILL)
        process.wait()


def _quorum(of_controllers: Mapping[int, str], founder: int | None) -> dict[str, str]:
    if founder is None:
        return {"controller.quorum.voters": ",".join(f"{one}@{at}" for one, at in of_controllers.items())}
    return {
        "controller.quorum.bootstrap.servers": of_controllers[founder],
        "controller.quorum.auto.join.enable": "true",
    }


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
