"""Which replica a consumer is to read from: one in its own rack, if it says where it is (KIP-392).

`replica.selector.class` names Kafka's class for it. A consumer without a rack, or of a rack without a replica that has
what it asks for, reads from the leader. Where followers serve consumers, they hear of a new high watermark at once, and
not with the next records.
"""

from typing import Final

from ottla.broker.partitions.held_partitions import Partitions
from ottla.broker.partitions.partition import Partition

RACK_AWARE: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
SETTING: Final = "replica.selector.class"


class ReplicaSelector:
    """For the clients of one listener, which may not reach every broker."""

    __slots__ = ("_listener", "_partitions")

    def __init__(self, partitions: Partitions, listener: str) -> None:
        self._partitions = partitions
        self._listener = listener

    def choose(self, partition: Partition, offset: int, rack: str) -> int | None:
        """The follower in sync in that rack that has most of the log; None: the leader."""
        state, rack_of = partition.state, self._partitions.metadata.rack_of
        assert state is not None
        if rack_of(state.local_id, self._listener) == rack:
            return None
        best: tuple[int, int] | None = None
        for replica, follower in state.followers.items():
            has_it = follower.log_start_offset <= offset <= follower.end_offset and follower.has_fetched
            if has_it and replica in state.isr and rack_of(replica, self._listener) == rack:
                best = max(best or (-1, 0), (follower.end_offset, -replica))
        return -best[1] if best is not None else None


def selector_of(partitions: Partitions, listener: str, rack: str) -> ReplicaSelector | None:
    """None where every consumer reads from the leader."""
    return ReplicaSelector(partitions, listener) if rack and chooses_replicas(partitions) else None


def chooses_replicas(partitions: Partitions) -> bool:
    """Whether consumers of this node's partitions may be sent to followers."""
    return partitions.node_settings.effective[SETTING] == RACK_AWARE
