"""A cluster of real nodes, each in a process of its own, all controllers and brokers: killed, stopped, started again.

    with ClusterProcesses(3) as cluster:
        producer = ottla.Producer(bootstrap_servers=cluster.bootstrap)
        cluster.kill(1)     # as a crash would
        cluster.start(1)    # the same port, the same data

What a node printed is in its log, which is shown when something fails.
"""

import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from ottla import Admin
from ottla.client.errors import ClientError

TIMEOUT_S = 40.0
CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
# So that a test need not wait for long until a broker that is gone is noticed.
SETTINGS = {
    "broker.session.timeout.ms": 2000,
    "broker.heartbeat.interval.ms": 400,
    "replica.lag.time.max.ms": 3000,
    "min.insync.replicas": 2,
    "default.replication.factor": 3,
    "offsets.topic.replication.factor": 3,
    "offsets.topic.num.partitions": 5,
    "transaction.state.log.replication.factor": 3,
    "transaction.state.log.num.partitions": 5,
    "transaction.state.log.min.isr": 2,
    "group.initial.rebalance.delay.ms": 0,
}


class ClusterProcesses:
    def __init__(self, count: int = 3, **settings: object) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="ottla-cluster-"))
        self.ids = range(1, count + 1)
        ports = _free_ports(2 * count)
        self._ports = dict(zip(self.ids, ports, strict=False))
        self._controller_ports = dict(zip(self.ids, ports[count:], strict=True))
        self._settings = SETTINGS | {key.replace("_", "."): value for key, value in settings.items()}
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        for node_id in self.ids:
            self._write_settings(node_id)
            self._run("ottla.cli.storage", "format", "-t", CLUSTER_ID, "-c", str(self._file(node_id)))

    def __enter__(self) -> "ClusterProcesses":
        try:
            for node_id in self.ids:
                self.start(node_id)
            self.wait_for(lambda: self.brokers() == list(self.ids), "all brokers are there")
        except BaseException:
            self.close(failed=True)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _problem: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close(failed=kind is not None)

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self._ports.values())

    # Nodes

    def start(self, node_id: int) -> None:
        with self._log(node_id).open("ab") as log:
            command = _module("ottla.cli.start", "server_start", str(self._file(node_id)))
            self._processes[node_id] = subprocess.Popen(command, stdout=log, stderr=log)

    def kill(self, node_id: int) -> None:
        """As `kill -9`."""
        self._end(node_id, signal.SIGKILL)

    def stop(self, node_id: int) -> None:
        """A clean stop, which hands over what the node leads."""
        self._end(node_id, signal.SIGTERM)

    def _end(self, node_id: int, how: signal.Signals) -> None:
        process = self._processes.pop(node_id)
        process.send_signal(how)
        process.wait(TIMEOUT_S)

    def close(self, *, failed: bool) -> None:
        for process in self._processes.values():
            process.kill()
            process.wait()
        self._processes.clear()
        if failed:
            for node_id in self.ids:
                print(f"node {node_id} printed:\n{self._log(node_id).read_text()[-4000:]}")
        shutil.rmtree(self.directory, ignore_errors=True)

    # What the cluster says of itself

    def brokers(self) -> list[int]:
        try:
            with Admin(bootstrap_servers=self.bootstrap, default_api_timeout_ms=3000) as admin:
                return sorted(broker.id for broker in admin.describe_cluster().nodes)
        except ClientError:
            return []

    def leader_of(self, topic: str, partition: int = 0) -> int:
        return self._described(topic, partition)[0]

    def isr_of(self, topic: str, partition: int = 0) -> list[int]:
        return self._described(topic, partition)[1]

    def _described(self, topic: str, partition: int) -> tuple[int, list[int]]:
        with Admin(bootstrap_servers=self.bootstrap) as admin:
            found = admin.describe_topics([topic])[topic].partitions[partition]
            return found.leader if found.leader is not None else -1, sorted(found.in_sync_replicas)

    def wait_for(self, holds: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while not holds():
            assert time.monotonic() < deadline, f"not after {TIMEOUT_S} s: {what}"
            time.sleep(0.05)

    # Files

    def _file(self, node_id: int) -> Path:
        return self.directory / f"node-{node_id}.properties"

    def _log(self, node_id: int) -> Path:
        return self.directory / f"node-{node_id}.log"

    def _write_settings(self, node_id: int) -> None:
        voters = ",".join(f"{one}@127.0.0.1:{port}" for one, port in self._controller_ports.items())
        settings = {
            "process.roles": "broker,controller",
            "node.id": node_id,
            "controller.quorum.voters": voters,
            "listeners": f"PLAINTEXT://127.0.0.1:{self._ports[node_id]},"
            f"CONTROLLER://127.0.0.1:{self._controller_ports[node_id]}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": self.directory / f"data-{node_id}",
            **self._settings,
        }
        self._file(node_id).write_text("".join(f"{key}={value}\n" for key, value in settings.items()))

    @staticmethod
    def _run(module: str, *words: str) -> None:
        done = subprocess.run(_module(module, "main", *words), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def _module(module: str, function: str, *words: str) -> list[str]:
    call = f"import sys; from {module} import {function}; sys.exit({function}())"
    return [sys.executable, "-c", call, *words]


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports
