"""What a node knows of the metadata quorum at this moment: DescribeQuorum and the metrics show it."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ottla.base.ids import ZERO_UUID, Uuid
from ottla.machines.raft.machine import Raft
from ottla.machines.raft.progress import ReplicaProgress
from ottla.machines.raft.voters import ReplicaKey


class QuorumReplica(NamedTuple):
    """A voter, or an observer, as the leader knows it; -1 is what it does not know."""

    replica_id: int
    directory_id: Uuid = ZERO_UUID
    log_end_offset: int = -1
    last_fetch_ms: int = -1
    last_caught_up_ms: int = -1


class QuorumEndpoint(NamedTuple):
    node_id: int
    listener: str
    host: str
    port: int


class QuorumView(Protocol):
    """What a node knows of the metadata quorum at this moment. The leader stands for itself among the voters."""

    @property
    def leader_id(self) -> int: ...

    @property
    def leader_epoch(self) -> int: ...

    @property
    def high_watermark(self) -> int: ...

    def voters(self, now_ms: int) -> Sequence[QuorumReplica]: ...

    def observers(self, now_ms: int) -> Sequence[QuorumReplica]: ...

    def endpoints(self) -> Sequence[QuorumEndpoint]:
        """Of the voters, for clients that speak to controllers directly (KIP-919)."""
        ...


class RaftQuorum:
    """The view that the Raft machine of this node gives."""

    def __init__(self, raft: Raft) -> None:
        self._raft = raft

    @property
    def leader_id(self) -> int:
        return self._raft.leader_id

    @property
    def leader_epoch(self) -> int:
        return self._raft.epoch

    @property
    def high_watermark(self) -> int:
        return self._raft.high_watermark

    def voters(self, now_ms: int) -> list[QuorumReplica]:
        return [self._replica(voter.key, now_ms) for voter in self._raft.voters]

    def observers(self, now_ms: int) -> list[QuorumReplica]:
        """Replicas without a vote that have fetched lately: brokers above all."""
        progress = self._raft.progress
        if progress is None:
            return []
        progress.forget_silent_observers(now_ms)
        return [_shown(key, seen) for key, seen in progress.observers.items()]

    def endpoints(self) -> list[QuorumEndpoint]:
        return [QuorumEndpoint(voter.key.id, *endpoint) for voter in self._raft.voters for endpoint in voter.endpoints]

    def _replica(self, key: ReplicaKey, now_ms: int) -> QuorumReplica:
        """The leader is as far as its log, and never behind itself."""
        if key.id == self._raft.me.key.id:
            return QuorumReplica(key.id, key.directory_id, self._raft.log_end.offset, now_ms, now_ms)
        progress = self._raft.progress
        seen = progress.replicas.get(key.id) if progress is not None else None
        return _shown(key, seen) if seen is not None else QuorumReplica(key.id, key.directory_id)


def _shown(key: ReplicaKey, seen: ReplicaProgress) -> QuorumReplica:
    return QuorumReplica(key.id, key.directory_id, seen.end_offset, seen.last_fetch_ms, seen.last_caught_up_ms)
