"""`ottla cluster roll`: restarts nodes one at a time, each only when all is in sync, and stops when something is not.

The active controller comes last, so that its lead moves once. A node is restarted by this machine's own means, or by a
command for each node, which may go to another host. Whatever is out of sync when it begins, or stays so after a node
was restarted, ends it there, by name: the nodes after it are not touched.
"""

from collections.abc import Callable, Collection
from time import monotonic, sleep
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.base.errors import OttlaError
from ottla.cli.balance import sync_check

if TYPE_CHECKING:
    from ottla.client.blocking.admin import Admin

_LOOK_S: Final = 0.2
_AT_FIRST_S: Final = 10.0
"""How long what is out of sync at the beginning may stay so: a node may have been restarted a moment ago."""
_STEADY_LOOKS: Final = 2
"""A broker that was asked just before it noticed is believed when it says the same again."""


class RollStopped(OttlaError):
    """Something is not in sync. The nodes after it were not restarted."""


class Member(NamedTuple):
    """A node to restart."""

    id: int
    is_broker: bool
    host: str | None = None


def members(admin: "Admin") -> list[Member]:
    """Brokers that are registered, and controllers, as the cluster knows them."""
    cluster = admin.describe_cluster()
    found = {node.id: Member(node.id, True, node.host) for node in cluster.nodes}
    quorum = admin.describe_metadata_quorum()
    for voter in quorum.voters:
        endpoints = quorum.nodes.get(voter.replica_id, ())
        host = endpoints[0].host if endpoints else None
        found.setdefault(voter.replica_id, Member(voter.replica_id, False, host))
    return sorted(found.values())


def in_order(nodes: Collection[Member], active_controller: int | None) -> list[Member]:
    return sorted(nodes, key=lambda node: (node.id == active_controller, node.id))


def roll(
    admin: "Admin",
    nodes: Collection[Member],
    restart: Callable[[Member], None],
    timeout_s: float,
    say: Callable[[str], None],
) -> None:
    """Raises `RollStopped`, and whatever `restart` raises."""
    brokers = {node.id for node in members(admin) if node.is_broker} | {node.id for node in nodes if node.is_broker}
    wait_until_in_sync(admin, brokers, _AT_FIRST_S, "nothing was restarted")
    left = list(nodes)
    while left:
        # Asked anew each time: the lead may move without us.
        node = in_order(left, admin.describe_metadata_quorum().leader_id)[0]
        left.remove(node)
        began_s = monotonic()
        restart(node)
        rest = f"; not restarted: {', '.join(str(one.id) for one in sorted(left))}" if left else ""
        wait_until_in_sync(admin, brokers, timeout_s, f"node {node.id} was restarted{rest}", _Return(node.id))
        say(f"node {node.id} restarted, all in sync after {monotonic() - began_s:.1f} s")


class _Return:
    """Whether a node is back: it has fetched metadata since its restart, by the clock of the quorum's leader.

    A node that died counts as in sync until its session ends, and a second one would be restarted meanwhile.
    """

    def __init__(self, node: int) -> None:
        self._node = node
        self._leader: int | None = None
        self._restarted_ms = 0

    def problems(self, admin: "Admin") -> list[str]:
        quorum = admin.describe_metadata_quorum()
        replicas = (*quorum.voters, *quorum.observers)
        fetched_ms = {one.replica_id: one.last_fetch_timestamp_ms for one in replicas if one.last_fetch_timestamp_ms}
        if quorum.leader_id != self._leader:  # another clock
            self._leader = quorum.leader_id
            self._restarted_ms = max(fetched_ms.values(), default=0)
        is_back = self._node == quorum.leader_id or fetched_ms.get(self._node, 0) > self._restarted_ms
        # Older releases of Apache Kafka tell no times.
        return [] if is_back or not fetched_ms else [f"node {self._node} is not back"]


def wait_until_in_sync(
    admin: "Admin", brokers: Collection[int], timeout_s: float, so_far: str, restarted: _Return | None = None
) -> None:
    from ottla.client.errors import KafkaError

    deadline_s = monotonic() + timeout_s
    steady = 0
    while True:
        try:
            wrong = restarted.problems(admin) if restarted is not None else []
            wrong += sync_check.problems(admin, brokers=brokers)
        except KafkaError as problem:
            if not problem.retriable:
                raise
            wrong = [str(problem)]
        steady = 0 if wrong else steady + 1
        if steady >= _STEADY_LOOKS:
            return
        if wrong and monotonic() > deadline_s:
            raise RollStopped(f"stopped after {timeout_s:g} s: {'; '.join(wrong)} ({so_far})")
        sleep(_LOOK_S)
