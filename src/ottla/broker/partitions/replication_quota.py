"""How fast replicas that catch up may be sent, or may fetch (KIP-73): a reassignment must not take the whole network.

Which replicas are throttled is a topic's setting, and the rate is one that is given at run time
(`kafka-reassign-partitions --throttle`). All bytes of such a replica count, and only one that is not in sync waits: a
reply goes out, or is asked for, when what came before it is paid for at that rate.
"""

from typing import Final, NamedTuple

from ottla.base.ids import TopicPartition
from ottla.base.ports import Clock
from ottla.broker.cluster.cluster_metadata import ClusterMetadata, NodeIdentity

_ALL: Final = "*"


class ReplicationQuota:
    """One side of it: `leader` or `follower`."""

    def __init__(self, side: str, metadata: ClusterMetadata, identity: NodeIdentity, clock: Clock) -> None:
        self._rate_setting = f"{side}.replication.throttled.rate"
        self._replicas_setting = f"{side}.replication.throttled.replicas"
        self._metadata = metadata
        self._identity = identity
        self._clock = clock
        self._paid_until_s = 0.0

    def is_throttled(self, name: TopicPartition) -> bool:
        """Whether this node's replica of a partition counts."""
        throttled = self._metadata.image.configs.of_topic(name.topic).get(self._replicas_setting)
        if not throttled:
            return False
        return throttled == _ALL or f"{name.partition}:{self._identity.node_id}" in throttled.split(",")

    def record(self, size: int) -> None:
        """So many bytes of a throttled replica went over the network."""
        rate = self._bytes_per_s()
        if rate is not None:
            self._paid_until_s = max(self._paid_until_s, self._clock.elapsed_s()) + size / max(rate, 1)

    @property
    def wait_s(self) -> float:
        """How long to wait until all that was recorded is paid for; 0 if it is."""
        if self._bytes_per_s() is None:
            return 0.0
        return max(self._paid_until_s - self._clock.elapsed_s(), 0.0)

    def _bytes_per_s(self) -> int | None:
        configs, setting = self._metadata.image.configs, self._rate_setting
        text = configs.of_broker(self._identity.node_id).get(setting) or configs.of_cluster().get(setting)
        return int(text) if text is not None and text.isdecimal() else None


class ReplicationQuotas(NamedTuple):
    leader: ReplicationQuota
    follower: ReplicationQuota

    @classmethod
    def of_node(cls, metadata: ClusterMetadata, identity: NodeIdentity, clock: Clock) -> "ReplicationQuotas":
        return cls(*(ReplicationQuota(side, metadata, identity, clock) for side in ("leader", "follower")))
