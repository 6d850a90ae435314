"""What the nodes of a simulated cluster are told: properties as Kafka's, one set a node."""

from collections.abc import Callable, Mapping
from random import Random
from typing import Final, NamedTuple

from ottla.base.ids import Uuid
from ottla.machines.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet
from ottla.testing.sim.cluster.encryption import Encryption

BROKER_PORT: Final = 9092
CONTROLLER_PORT: Final = 9093
TLS_PORT: Final = 9094


class ClusterSettings(NamedTuple):
    """`flushes`: whether every record is on the disk before it is acknowledged, so that power cuts lose none."""

    nodes: int = 1
    flushes: bool = False
    more: Mapping[str, str] = {}
    """For every node, over what follows from the rest."""
    most_controllers: int = 3
    isolated: bool = False
    """Whether controllers are no brokers, where there are enough nodes for both."""
    dynamic_voters: bool = False
    """Whether the voters are data (KIP-853): all controllers at first. One that loses its vote asks for it again."""
    encryption: Encryption = Encryption()

    @property
    def replication_factor(self) -> int:
        return min(len(self.brokers()), 3)

    @property
    def min_insync_replicas(self) -> int:
        return 2 if self.replication_factor >= 3 else 1

    def controllers(self) -> range:
        return range(1, min(self.nodes, self.most_controllers) + 1)

    def brokers(self) -> range:
        are_apart = self.isolated and self.nodes > self.most_controllers
        return range(self.most_controllers + 1 if are_apart else 1, self.nodes + 1)

    def properties(self, node_id: int) -> dict[str, str]:
        address = address_of(node_id)
        roles, listeners = [], []
        if node_id in self.brokers():
            roles.append("broker")
            listeners.append(f"PLAINTEXT://{address}:{BROKER_PORT}")
            if self.encryption.has_listener:
                listeners.append(f"SSL://{address}:{TLS_PORT}")
        if node_id in self.controllers():
            roles.append("controller")
            listeners.append(f"CONTROLLER://{address}:{CONTROLLER_PORT}")
        return {
            "process.roles": ",".join(roles),
            "node.id": str(node_id),
            "listeners": ",".join(listeners),
            "controller.listener.names": "CONTROLLER",
            **self._quorum(),
            **self.encryption.properties(is_broker=node_id in self.brokers()),
            "log.dirs": "/data",
            "default.replication.factor": str(self.replication_factor),
            "min.insync.replicas": str(self.min_insync_replicas),
            "offsets.topic.replication.factor": str(self.replication_factor),
            "offsets.topic.num.partitions": "3",
            "transaction.state.log.replication.factor": str(self.replication_factor),
            "transaction.state.log.min.isr": str(self.min_insync_replicas),
            "transaction.state.log.num.partitions": "3",
            "group.initial.rebalance.delay.ms": "100",
            "group.consumer.heartbeat.interval.ms": "1000",
            "group.consumer.min.heartbeat.interval.ms": "1000",
            "group.consumer.session.timeout.ms": "10000",
            "group.consumer.min.session.timeout.ms": "10000",
            "log.retention.ms": "-1",
            **({"log.flush.interval.messages": "1"} if self.flushes else {}),
            **self.more,
        }

    def _quorum(self) -> dict[str, str]:
        addresses = {one: f"{address_of(one)}:{CONTROLLER_PORT}" for one in self.controllers()}
        if self.dynamic_voters:
            return {
                "controller.quorum.bootstrap.servers": ",".join(addresses.values()),
                "controller.quorum.auto.join.enable": "true",
            }
        return {"controller.quorum.voters": ",".join(f"{one}@{address}" for one, address in addresses.items())}

    def initial_voters(self, new_directory_id: Callable[[], Uuid]) -> VoterSet | None:
        """What nodes are formatted with; None where a setting names the voters."""
        if not self.dynamic_voters:
            return None
        return VoterSet(
            Voter(ReplicaKey(one, new_directory_id()), (Endpoint("CONTROLLER", address_of(one), CONTROLLER_PORT),))
            for one in self.controllers()
        )


def drawn_settings(chance: Random, nodes: int) -> ClusterSettings:
    """Settings that make rare things happen often: small segments, frequent snapshots."""
    flushes = chance.random() < 0.5
    between_snapshots = chance.choice((2_000, 20_000, 20 << 20))
    more = {
        "log.segment.bytes": str(chance.choice((1 << 20, 1 << 20, 1 << 30))),
        "metadata.log.max.record.bytes.between.snapshots": str(between_snapshots),
        "metadata.max.retention.bytes": str(2 * between_snapshots),
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
        "log.flush.scheduler.interval.ms": "1000",
    }
    if chance.random() < 0.3:
        more["log.flush.interval.ms"] = str(chance.choice((1_000, 10_000)))
    return ClusterSettings(nodes, flushes, more)


def address_of(node_id: int) -> str:
    return f"10.0.0.{node_id}"
