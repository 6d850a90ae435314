"""Other controllers that are not what a setting says: each is told of once, in a line that names the setting.

Two answers mean that no asking again helps. INCONSISTENT_CLUSTER_ID: the other controller is of another cluster.
INVALID_VOTER_KEY: it is another voter than the one that was asked, or has another directory. A person has to look, so
they are logged; the quorum goes on with those that are left.
"""

import logging
from collections.abc import Iterable
from typing import Any, Final

from ottla.runtime.peers.node_connection import NodeAddress
from ottla.wire.errors import ErrorCode

_log = logging.getLogger(__name__)
_SETTINGS: Final = "controller.quorum.bootstrap.servers or controller.quorum.voters"


class QuorumRefusals:
    """What one node has heard."""

    def __init__(self, cluster_id: str) -> None:
        self._cluster_id = cluster_id
        self._foreign: set[NodeAddress] = set()
        self._told: set[tuple[NodeAddress, ErrorCode]] = set()

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
        if (address, error) not in self._told:
            self._told.add((address, error))
            _log.error("the controller at %s:%s %s (%s); see %s", *address[:2], what, error.name, _SETTINGS)


def _error_of(response: Any) -> int:
    """Of the whole request, or of the one partition that it was about."""
    error = getattr(response, "error_code", ErrorCode.NONE)
    for topic in () if error else getattr(response, "topics", ()):
        for partition in topic.partitions:
            return int(partition.error_code)
    return int(error)
