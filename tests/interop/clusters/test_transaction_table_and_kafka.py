"""Three nodes of Apache Kafka are asked the whole table of transaction coordinators again: it is what they do.

`python -m tests.interop.clusters.test_transaction_table_and_kafka`
writes the table anew.

Node 1 coordinates. Node 3 is the only replica of the topic `held` and is killed before anything is asked, so markers
for it stay on their way. Node 2 has the other replica of the coordinator's log: while it is paused, transitions are
pending.
"""

import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ottla import Admin, NewTopic
from ottla.admin import ElectionType
from ottla.base.ids import TopicPartition
from ottla.wire.message import Message
from ottla.wire.messages import FindCoordinatorRequest, InitProducerIdRequest
from tests.golden.transactions.transaction_scenes import PENDING, WRITTEN, log_request
from tests.golden.transactions.transaction_table import (
    FACTS,
    WAITS,
    Cluster,
    Table,
    asked_while_pending,
    made_table,
    pending_scene,
    read_facts,
    write_facts,
)
from tests.interop.apache_kafka import libraries
from tests.interop.mixed_cluster import APACHE_KAFKA, MixedCluster, eventually
from tests.interop.wire_connection import WireConnection

pytestmark = pytest.mark.interop

COORDINATOR, FOLLOWER, AWAY = 1, 2, 3
ANSWERS_WITHIN_S = 3.0
SETTINGS = {
    "transaction.state.log.num.partitions": 1,
    "transaction.state.log.min.isr": 2,
    "offsets.topic.num.partitions": 1,
    "offsets.topic.replication.factor": 1,
    # Longer than any run: node 3 stays the leader of `held`, and node 2 in the ISR while it is paused. In a run that
    # outlasted node 3's session, Apache Kafka completed transactions that had reached `held`.
    "broker.session.timeout.ms": 1_800_000,
    "replica.lag.time.max.ms": 1_800_000,
    "request.timeout.ms": 120_000,
}
REPLICAS = {
    "__transaction_state": [COORDINATOR, FOLLOWER],
    "__consumer_offsets": [COORDINATOR],
    "orders": [COORDINATOR],
    "held": [AWAY],
}


class Nodes:
    """The cluster as the table needs it, with everything led where it is to be."""

    def __init__(self, cluster: MixedCluster) -> None:
        self._cluster = cluster
        self._address = cluster.addresses[COORDINATOR]
        self._connection: WireConnection | None = None

    def send(self, request: Message, version: int) -> Any:
        if self._connection is None:
            self._connection = WireConnection(self._address)
        self._connection.send(request, version)
        if not self._connection.has_reply(ANSWERS_WITHIN_S):
            self._connection = None
            return WAITS
        return self._connection.receive()

    def prepare(self) -> None:
        """Topics, and the states that come from the log, which are loaded when node 3 is gone."""
        with Admin(bootstrap_servers=self._cluster.bootstrap) as admin:
            eventually(lambda: len(admin.describe_cluster().nodes) == len(self._cluster.addresses), "three nodes")
            admin.create_topics(
                [
                    NewTopic(name, assignment={0: replicas}, config=_compacted(name))
                    for name, replicas in REPLICAS.items()
                ]
            ).raise_first()
            eventually(lambda: all(_leader(admin, name) == replicas[0] for name, replicas in REPLICAS.items()), "led")
            with WireConnection(self._address, "__admin_client") as tool:
                for title in WRITTEN:
                    eventually(lambda title=title: _is_written(tool, title), "states are in the log")
            self._cluster.kill(AWAY)
            self._load_anew(admin)

    def _load_anew(self, admin: Admin) -> None:
        """The coordinator reads its log: node 2 is made the leader, and then node 1 again."""
        log = TopicPartition("__transaction_state", 0)
        for replicas in ([FOLLOWER, COORDINATOR], [COORDINATOR, FOLLOWER]):
            admin.alter_partition_reassignments({log: replicas}).raise_first()
            eventually(lambda: not admin.list_partition_reassignments(), "moved")
            eventually(lambda: _in_sync(admin, log.topic) == {COORDINATOR, FOLLOWER}, "both nodes are in sync")
            admin.elect_leaders(ElectionType.PREFERRED, [log]).raise_first()
            eventually(lambda wanted=replicas[0]: _leader(admin, log.topic) == wanted, "led by the other")
        first = InitProducerIdRequest(transactional_id="first", transaction_timeout_ms=60_000)
        eventually(lambda: not self.send(first, 5).error_code, "the coordinator gives producer ids")
        group = FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
        eventually(lambda: not self.send(group, 4).coordinators[0].error_code, "groups are coordinated")

    def asked_while_pending(self) -> Table:
        scenes = {title: pending_scene(self.send, title, "") for title in PENDING}
        self._cluster.processes[FOLLOWER].send_signal(signal.SIGSTOP)
        waiting: list[WireConnection] = []
        table: Table = {}
        for title, pending in PENDING.items():
            scene, _ = scenes[title]
            waiting.append(WireConnection(self._address))
            waiting[-1].send(pending.request(scene), pending.version)
        assert not any(one.has_reply(0.2) for one in waiting)
        for title in PENDING:
            table[f"pending: {title}"] = asked_while_pending(self.send, *scenes[title])
        assert not any(one.has_reply(0.01) for one in waiting)
        self._cluster.processes[FOLLOWER].send_signal(signal.SIGCONT)
        return table


def _compacted(name: str) -> dict[str, str]:
    return {"cleanup.policy": "compact"} if name.startswith("__") else {}


def _is_written(tool: WireConnection, title: str) -> bool:
    reply = tool.ask(log_request(title, int(time.time() * 1000)), 12)
    return not reply.responses[0].partition_responses[0].error_code


def _leader(admin: Admin, topic: str) -> int | None:
    return admin.describe_topics([topic])[topic].partitions[0].leader


def _in_sync(admin: Admin, topic: str) -> set[int]:
    return set(admin.describe_topics([topic])[topic].partitions[0].in_sync_replicas)


def asked_anew(say: Callable[[str], None] = lambda _: None) -> Table:
    libraries()
    table: Table = {}
    for transaction_version in (2, 0):
        with a_cluster(transaction_version) as nodes:
            nodes.prepare()
            say(f"transaction.version {transaction_version}")
            table |= made_table(Cluster(nodes.send, lambda: time.sleep(0.002), transaction_version))
            if transaction_version:
                table |= nodes.asked_while_pending()
    return table


@contextmanager
def a_cluster(transaction_version: int) -> Iterator[Nodes]:
    feature = ["--feature", f"transaction.version={transaction_version}"]
    kinds = dict.fromkeys((COORDINATOR, FOLLOWER, AWAY), APACHE_KAFKA)
    with (
        tempfile.TemporaryDirectory() as directory,
        MixedCluster(Path(directory), kinds, more=SETTINGS, format_options=feature) as cluster,
    ):
        yield Nodes(cluster)


def test_the_table_is_what_apache_kafka_does() -> None:
    facts, asked = read_facts(), asked_anew()
    assert asked.keys() == facts.keys()
    differing = [
        f"{state}, {question}, {producer}: {said}, and in the table {facts[state][question].get(producer)}"
        for state, row in asked.items()
        for question, cells in row.items()
        for producer, said in cells.items()
        if facts[state][question].get(producer) != said
    ]
    assert differing == []


if __name__ == "__main__":
    write_facts(asked_anew(print))
    print(f"wrote {FACTS}")
