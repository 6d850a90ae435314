"""Elections in the log of a node: who leads the metadata quorum, and when nobody does."""

import logging
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from ottla.machines.raft.events import NOBODY
from ottla.machines.raft.machine import Raft, Role
from ottla.runtime.peers.node_connections import NodeAddress
from ottla.runtime.rate_limited_log import RateLimitedLog
from ottla.wire.errors import ErrorCode

_log = logging.getLogger(__name__)


class _Standing(NamedTuple):
    role: Role
    leader_id: int
    epoch: int


class QuorumLog:
    """Is called after every event that the machine was given."""

    def __init__(self, raft: Raft, now_s: Callable[[], float]) -> None:
        self._raft = raft
        self._logged = _Standing(raft.role, NOBODY, -1)
        self._limited = RateLimitedLog(_log, now_s)

    def look(self) -> None:
        raft, logged = self._raft, self._logged
        if raft.role is logged.role and raft.epoch == logged.epoch and raft.leader_id == logged.leader_id:
            return
        self._logged = _Standing(raft.role, raft.leader_id, raft.epoch)
        match raft.role:
            case Role.LEADER if logged.role is not Role.LEADER:
                self._limited.info("controller %s leads the metadata quorum in epoch %s", raft.me.key.id, raft.epoch)
            case Role.FOLLOWER if (raft.leader_id, raft.epoch) != (logged.leader_id, logged.epoch):
                self._limited.info(
                    "controller %s leads the metadata quorum in epoch %s; following it", raft.leader_id, raft.epoch
                )
            case Role.CANDIDATE:
                self._limited.info("controller %s stands for election in epoch %s", raft.me.key.id, raft.epoch)
            case Role.RESIGNED if logged.role is Role.LEADER:
                self._limited.info(
                    "controller %s no longer leads the metadata quorum, after epoch %s", raft.me.key.id, raft.epoch
                )
            case Role.UNATTACHED if logged.role in (Role.LEADER, Role.FOLLOWER) and raft.leader_id == NOBODY:
                self._limited.info("the metadata quorum has no leader in epoch %s", raft.epoch)


# Other controllers that are not what a setting says: each is reported once, in a line that names the setting.
#
# Two answers mean that no asking again helps. INCONSISTENT_CLUSTER_ID: the other controller is of another cluster.
# INVALID_VOTER_KEY: it is another voter than the one that was asked, or has another directory. A person has to look, so
# they are logged; the quorum continues with those that are left.

_SETTINGS: Final = "controller.quorum.bootstrap.servers or controller.quorum.voters"


class QuorumRefusals:
    """What one node has heard."""

    def __init__(self, cluster_id: str) -> None:
        self._cluster_id = cluster_id
        self._foreign: set[NodeAddress] = set()
        self._logged: set[tuple[NodeAddress, ErrorCode]] = set()

    def note(self, node_id: int, address: NodeAddress, response: Any) -> bool:
        """Looks at an answer of controller `node_id`; True if it is of another cluster."""
        error = _error_of(response)
        if error != ErrorCode.INCONSISTENT_CLUSTER_ID:
            self._foreign.discard(address)
            if error == ErrorCode.INVALID_VOTER_KEY:
                self._tell(address, ErrorCode.INVALID_VOTER_KEY, f"is not voter {node_id}, or has lost its directory")
            return False
        self._foreign.add(address)
        self._tell(address, ErrorCode.INCONSISTENT_CLUSTER_ID, self.of_another_cluster)
        return True

    @property
    def of_another_cluster(self) -> str:
        return f"is of another cluster than this node's log.dirs, whose cluster.id is {self._cluster_id}"

    def are_foreign(self, addresses: Iterable[NodeAddress]) -> bool:
        """Whether all of them are of another cluster, by what they answered last."""
        return set(addresses) <= self._foreign

    def _tell(self, address: NodeAddress, error: ErrorCode, what: str) -> None:
        if (address, error) not in self._logged:
            self._logged.add((address, error))
            _log.error("the controller at %s:%s %s (%s); see %s", *address[:2], what, error.name, _SETTINGS)


def _error_of(response: Any) -> int:
    """Of the whole request, or of the one partition that it was about."""
    error = getattr(response, "error_code", ErrorCode.NONE)
    for topic in () if error else getattr(response, "topics", ()):
        for partition in topic.partitions:
            return int(partition.error_code)
    return int(error)
