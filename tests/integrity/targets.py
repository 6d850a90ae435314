"""What a workload runs on: one node, or three that replicate, with a listener for TLS besides the plain one.

Who comes over TLS is a principal with a certificate, which may do everything but write to one topic (`FORBIDDEN`). Who
comes without is anonymous, and may do everything: it makes topics, rules and quotas, and reads.
"""

import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from ottla import Admin
from ottla.client.admin.access.acls import AclBinding, AclPermission, AclResourceType
from ottla.client.admin.operations import AclOperation
from ottla.testing import Cluster
from ottla.testing.broker.secured_listener import SecuredListeners
from ottla.testing.broker.topics import ask, create_topic
from ottla.testing.free_ports import free_port
from ottla.testing.node import RunningNode
from ottla.testing.workload.drawing import MAX_MESSAGE_BYTES
from ottla.testing.workload.plans import TopicPlan
from ottla.testing.workload.variants import FORBIDDEN
from ottla.wire.acls import PatternType
from ottla.wire.messages import DescribeAclsRequest

PRINCIPAL: Final = "lanes"
"""In the certificate of encrypted lanes."""
SETTINGS: Mapping[str, object] = {
    "message.max.bytes": MAX_MESSAGE_BYTES,
    "replica.fetch.max.bytes": MAX_MESSAGE_BYTES,
    "transaction.state.log.num.partitions": 3,
    "offsets.topic.num.partitions": 3,
    # Compaction is wanted within a test's patience; when there is something to do is the topics' affair.
    "log.cleaner.backoff.ms": 100,
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
_RULES_WITHIN_S = 30.0


def _rules() -> list[AclBinding]:
    who = f"User:CN={PRINCIPAL}"
    kinds = (AclResourceType.TOPIC, AclResourceType.TRANSACTIONAL_ID, AclResourceType.GROUP)
    allowed = [AclBinding(kind, "*", who, AclOperation.ALL) for kind in kinds]
    denied = AclBinding(AclResourceType.TOPIC, FORBIDDEN.name, who, AclOperation.WRITE, AclPermission.DENY)
    return [*allowed, denied]


class Target:
    """Nodes that run, die and come back."""

    nodes: Sequence[int]
    secured: SecuredListeners

    def __init__(self) -> None:
        self._files = TemporaryDirectory(prefix="ottla-integrity-")
        self._certificate = self.secured.certificate_of(PRINCIPAL)
        self._pem = Path(self._files.name) / "lanes.pem"
        key, chain = (self._certificate[f"ssl.keystore.{name}"] for name in ("key", "certificate.chain"))
        self._pem.write_text(key + chain)

    @property
    def bootstrap(self) -> str:
        return ",".join("{}:{}".format(*self.address_of(node, encrypted=False)) for node in self.nodes)

    def create(self, topic: TopicPlan) -> None:
        raise NotImplementedError

    def address_of(self, node: int, *, encrypted: bool) -> tuple[str, int]:
        if not encrypted:
            return self._plain_address(node)
        host, _, port = self.secured.addresses[node - 1].rpartition(":")
        return host, int(port)

    def client_settings(self, *, encrypted: bool) -> dict[str, object]:
        """What a client of ours needs to connect."""
        if encrypted:
            return {**self.secured.client, **self._certificate}
        return {"bootstrap.servers": self.bootstrap}

    def tls(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cadata=self.secured.client["ssl.truststore.certificates"])
        context.load_cert_chain(self._pem)
        return context

    def make_rules(self) -> None:
        """Comes back when every node goes by them."""
        with Admin(bootstrap_servers=self.bootstrap) as admin:
            admin.create_acls(_rules()).raise_first()
        asked = DescribeAclsRequest(
            resource_type_filter=AclResourceType.TOPIC,
            resource_name_filter=None,
            principal_filter=None,
            host_filter=None,
            pattern_type_filter=PatternType.ANY,
            operation=AclOperation.WRITE,
            permission_type=AclPermission.DENY,
        )
        deadline_s = time.monotonic() + _RULES_WITHIN_S
        for node in self.nodes:
            while not ask(self.address_of(node, encrypted=False), asked, 3).resources:
                assert time.monotonic() < deadline_s, f"node {node} does not know the rules"
                time.sleep(0.02)

    def kill_one(self, node: int) -> None:
        """As `kill -9` does."""
        raise NotImplementedError

    def kill(self) -> None:
        """Every node at once."""
        for node in self.nodes:
            self.kill_one(node)

    def start(self) -> None:
        """Those that do not run."""
        raise NotImplementedError

    def data_dirs(self) -> dict[str, Path]:
        raise NotImplementedError

    def logs(self) -> str:
        """What nodes have said of errors."""
        raise NotImplementedError

    def close(self) -> None:
        self._files.cleanup()

    def _plain_address(self, node: int) -> tuple[str, int]:
        raise NotImplementedError


class OneNode(Target):
    nodes = (1,)

    def __init__(self) -> None:
        self.secured = SecuredListeners("SSL")
        listeners = f"PLAINTEXT://127.0.0.1:{free_port()},CONTROLLER://127.0.0.1:0"
        self._node = RunningNode(config={**self.secured.broker(listeners), **SETTINGS})
        super().__init__()

    def create(self, topic: TopicPlan) -> None:
        create_topic(self._node.address, topic.name, partitions=topic.partitions, settings=topic.settings)

    def kill_one(self, node: int) -> None:
        self._node.kill()

    def start(self) -> None:
        if not self._node.is_running:
            self._node.start()

    def data_dirs(self) -> dict[str, Path]:
        return {"node": self._node.data}

    def logs(self) -> str:
        return _errors(self._node.log)

    def close(self) -> None:
        self._node.close()
        super().close()

    def _plain_address(self, node: int) -> tuple[str, int]:
        return self._node.address


class ThreeNodes(Target):
    nodes = (1, 2, 3)

    def __init__(self) -> None:
        # Leaders stay where they are as long as their processes live: on a busy machine, too.
        patience = {"broker.session.timeout.ms": 15_000, "broker.heartbeat.interval.ms": 2_000}
        self._cluster = Cluster(3, {**SETTINGS, **patience}, faults=False, security="SSL")
        assert self._cluster.secured is not None
        self.secured = self._cluster.secured
        super().__init__()

    def create(self, topic: TopicPlan) -> None:
        self._cluster.create_topic(topic.name, partitions=topic.partitions, settings=topic.settings)

    def kill_one(self, node: int) -> None:
        self._cluster[node].kill()

    def start(self) -> None:
        self._cluster.start()

    def data_dirs(self) -> dict[str, Path]:
        return {f"node {number}": self._cluster.directory / f"node-{number}" / "data" for number in (1, 2, 3)}

    def logs(self) -> str:
        return "".join(_errors(broker.log) for broker in self._cluster)

    def close(self) -> None:
        self._cluster.close()
        super().close()

    def _plain_address(self, node: int) -> tuple[str, int]:
        host, _, port = self._cluster[node].bootstrap.rpartition(":")
        return host, int(port)


@contextmanager
def running(nodes: int) -> Iterator[Target]:
    target: Any = OneNode() if nodes == 1 else ThreeNodes()
    try:
        target.start()
        target.make_rules()
        yield target
    finally:
        target.close()


def _errors(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return "".join(f"{line}\n" for line in lines if "ERROR" in line or "Traceback" in line)
