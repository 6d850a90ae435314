"""A cluster of real nodes, each in a process of its own: killed, stopped, started again, and gone at the end.

    with ClusterOfProcesses(directory) as cluster:
        producer = ottla.Producer(bootstrap_servers=cluster.bootstrap)
        cluster.kill(1)     # as a crash would
        cluster.start(1)    # the same ports, the same data

It is laid out as `ottla cluster start` does it, unless the caller has made the nodes. What the nodes printed is shown
when something fails.
"""

import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from ottla import Admin
from ottla.admin import TopicDescription
from ottla.cli.local_cluster.cluster_layout import NodeFiles, bootstrap
from ottla.cli.local_cluster.cluster_making import make_cluster
from ottla.cli.local_cluster.node_process import send_signal, start_process, wait_until_gone, wait_until_ready
from ottla.client.errors import UnknownTopicOrPartition
from ottla.config.properties import read_properties

WAIT_S = 60.0
# So that a test need not wait for long until a broker that is gone is noticed, and coordinators are soon there.
SETTINGS = {
    "broker.session.timeout.ms": 2000,
    "broker.heartbeat.interval.ms": 400,
    "replica.lag.time.max.ms": 3000,
    "offsets.topic.num.partitions": 5,
    "transaction.state.log.num.partitions": 5,
    "group.initial.rebalance.delay.ms": 0,
}


class ClusterOfProcesses:
    """Started when it is entered; every process is killed at the end. `nodes` are its files, by id."""

    def __init__(
        self,
        directory: Path,
        count: int = 3,
        settings: Mapping[str, str] | None = None,
        *,
        nodes: Sequence[NodeFiles] | None = None,
    ) -> None:
        made = make_cluster(directory, count, port=0) if nodes is None else nodes
        self.nodes = {node.node_id: node for node in made}
        for node in self.nodes.values():
            add_settings(node, {**SETTINGS, **(settings or {})})
        self._children: list[subprocess.Popen[bytes]] = []
        self.authority: Path | None = None
        """Who has signed the nodes' certificates, if they have any."""

    @property
    def bootstrap(self) -> str:
        return bootstrap(list(self.nodes.values()))

    @property
    def cluster_id(self) -> str:
        meta = next(iter(self.nodes.values())).data / "meta.properties"
        return read_properties(meta.read_bytes())["cluster.id"]

    def __enter__(self) -> "ClusterOfProcesses":
        try:
            self.start(*self.nodes)
        except BaseException:
            self.close(has_failed=True)
            raise
        return self

    def start(self, *node_ids: int) -> None:
        self._children += [start_process(self.nodes[node_id]) for node_id in node_ids]
        wait_until_ready([self.nodes[node_id] for node_id in node_ids], WAIT_S)

    def kill(self, node_id: int) -> None:
        """As `kill -9`."""
        self._end(node_id, signal.SIGKILL)

    def stop(self, node_id: int) -> None:
        """A clean stop, which hands over what the node leads."""
        self._end(node_id, signal.SIGTERM)

    def _end(self, node_id: int, how: signal.Signals) -> None:
        node = self.nodes[node_id]
        assert send_signal(node, how), f"node {node_id} does not run"
        assert not wait_until_gone([node], WAIT_S), f"node {node_id} does not end"

    def close(self, *, has_failed: bool) -> None:
        for child in self._children:
            child.kill()
            child.wait()
        for node in self.nodes.values():  # those that a command has started
            send_signal(node, signal.SIGKILL)
        if has_failed:
            for node in self.nodes.values():
                if node.log.exists():
                    print(f"node {node.node_id} printed:\n{node.log.read_text()[-4000:]}")

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(has_failed=kind is not None)

    # What the cluster says of itself

    def are_in_sync(self, topic: str, *node_ids: int) -> bool:
        """Whether every partition of the topic has exactly these in its ISR."""
        with Admin(bootstrap_servers=self.bootstrap) as admin:
            found = described(admin, topic).partitions
        return all(sorted(partition.in_sync_replicas) == sorted(node_ids) for partition in found)

    def leader_of(self, topic: str, partition: int = 0) -> int:
        return self._described(topic, partition)[0]

    def isr_of(self, topic: str, partition: int = 0) -> list[int]:
        return self._described(topic, partition)[1]

    def _described(self, topic: str, partition: int) -> tuple[int, list[int]]:
        with Admin(bootstrap_servers=self.bootstrap) as admin:
            found = described(admin, topic).partitions[partition]
            return found.leader if found.leader is not None else -1, sorted(found.in_sync_replicas)


def add_settings(node: NodeFiles, settings: Mapping[str, object]) -> None:
    """Of two lines with the same key the later one counts."""
    with node.properties.open("a") as file:
        file.writelines(f"{key}={value}\n" for key, value in settings.items())


def described(admin: Admin, topic: str) -> TopicDescription:
    """The topic as some broker has it, as soon as it knows it: brokers hear of a new topic one after the other."""
    found: list[TopicDescription] = []

    def look() -> bool:
        with suppress(UnknownTopicOrPartition):
            found.append(admin.describe_topics([topic])[topic])
        return bool(found)

    eventually(look, f"topic {topic} is known")
    return found[0]


def eventually(look: Callable[[], bool], what: str) -> None:
    ends_s = time.monotonic() + WAIT_S
    while not look():
        assert time.monotonic() < ends_s, f"not after {WAIT_S:.0f} s: {what}"
        time.sleep(0.05)
