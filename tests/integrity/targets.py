"""What a workload runs on: one node with a listener for TLS besides the plain one, or three that replicate."""

import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ottla.testing import Cluster
from ottla.testing.broker.secured_listener import SecuredListener
from ottla.testing.broker.topics import create_topic
from ottla.testing.node import RunningNode
from ottla.testing.workload.drawing import MAX_MESSAGE_BYTES
from ottla.testing.workload.plans import TopicPlan

SETTINGS: Mapping[str, object] = {
    "message.max.bytes": MAX_MESSAGE_BYTES,
    "replica.fetch.max.bytes": MAX_MESSAGE_BYTES,
    "transaction.state.log.num.partitions": 3,
    "offsets.topic.num.partitions": 3,
    # Compaction is wanted within a test's patience; when there is something to do is the topics' affair.
    "log.cleaner.backoff.ms": 100,
}


class Target:
    """Nodes that run, die and come back. `has_tls` if lanes may be encrypted."""

    bootstrap: str
    has_tls: bool

    def create(self, topic: TopicPlan) -> None:
        raise NotImplementedError

    def address_of(self, node: int, *, encrypted: bool) -> tuple[str, int]:
        raise NotImplementedError

    def client_settings(self, *, encrypted: bool) -> dict[str, object]:
        """What a client of ours needs to connect."""
        raise NotImplementedError

    def tls(self) -> ssl.SSLContext:
        raise NotImplementedError

    def kill(self) -> None:
        """Every node at once, as `kill -9` does."""
        raise NotImplementedError

    def start(self) -> None:
        raise NotImplementedError

    def data_dirs(self) -> dict[str, Path]:
        raise NotImplementedError

    def logs(self) -> str:
        """What nodes have said of errors."""
        raise NotImplementedError


class OneNode(Target):
    has_tls = True

    def __init__(self) -> None:
        self._secured = SecuredListener("SSL")
        self._node = RunningNode(config={**self._secured.broker, **SETTINGS})

    def create(self, topic: TopicPlan) -> None:
        create_topic(self._node.address, topic.name, partitions=topic.partitions, settings=topic.settings)

    def address_of(self, node: int, *, encrypted: bool) -> tuple[str, int]:
        if not encrypted:
            return self._node.address
        host, _, port = self._secured.bootstrap.rpartition(":")
        return host, int(port)

    def client_settings(self, *, encrypted: bool) -> dict[str, object]:
        return dict(self._secured.client) if encrypted else {"bootstrap.servers": self._node.bootstrap}

    def tls(self) -> ssl.SSLContext:
        return ssl.create_default_context(cadata=self._secured.client["ssl.truststore.certificates"])

    def kill(self) -> None:
        self._node.kill()

    def start(self) -> None:
        self._node.start()

    def data_dirs(self) -> dict[str, Path]:
        return {"node": self._node.data}

    def logs(self) -> str:
        return _errors(self._node.log)

    def close(self) -> None:
        self._node.close()


class ThreeNodes(Target):
    has_tls = False

    def __init__(self) -> None:
        # Nothing is to fail here, so that leaders stay where they are: on a busy machine, too.
        patience = {"broker.session.timeout.ms": 15_000, "broker.heartbeat.interval.ms": 2_000}
        self._cluster = Cluster(3, {**SETTINGS, **patience}, faults=False)

    def create(self, topic: TopicPlan) -> None:
        self._cluster.create_topic(topic.name, partitions=topic.partitions, settings=topic.settings)

    def address_of(self, node: int, *, encrypted: bool) -> tuple[str, int]:
        host, _, port = self._cluster.bootstrap.split(",")[node - 1].rpartition(":")
        return host, int(port)

    def client_settings(self, *, encrypted: bool) -> dict[str, object]:
        return {"bootstrap.servers": self._cluster.bootstrap}

    def kill(self) -> None:
        for broker in self._cluster:
            broker.kill()

    def start(self) -> None:
        self._cluster.start()

    def data_dirs(self) -> dict[str, Path]:
        return {f"node {number}": self._cluster.directory / f"node-{number}" / "data" for number in (1, 2, 3)}

    def logs(self) -> str:
        return "".join(_errors(broker.log) for broker in self._cluster)

    def close(self) -> None:
        self._cluster.close()


@contextmanager
def running(nodes: int) -> Iterator[Target]:
    target = OneNode() if nodes == 1 else ThreeNodes()
    try:
        target.start()
        yield target
    finally:
        target.close()


def _errors(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return "".join(f"{line}\n" for line in lines if "ERROR" in line or "Traceback" in line)
