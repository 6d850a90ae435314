"""`ottla cluster roll` and a node that has not come back: the quorum's leader says when each node has fetched."""

from typing import Any, cast

import pytest

from ottla.cli.balance import sync_check
from ottla.cli.local_cluster import rolling
from ottla.cli.local_cluster.rolling import Member, RollStopped
from ottla.client.admin.quorum_voters import QuorumInfo, QuorumReplica

NODES = [Member(1, True), Member(2, True), Member(3, True)]


class Quorum:
    """Nodes that fetch each time somebody looks, as long as they run; nobody notices that one does not."""

    def __init__(self, leader: int = 1, *, tells_times: bool = True) -> None:
        self.leader = leader
        self.now_ms = 1000
        self.running = {1, 2, 3}
        self.fetched_ms = dict.fromkeys(self.running, 1000)
        self._tells_times = tells_times

    def describe_metadata_quorum(self) -> QuorumInfo:
        self.now_ms += 100
        self.fetched_ms |= dict.fromkeys(self.running, self.now_ms - 50)
        times = {node: (time if self._tells_times else None) for node, time in self.fetched_ms.items()}
        voters = tuple(QuorumReplica(node, None, 10, time, time) for node, time in times.items() if node < 3)
        observers = tuple(QuorumReplica(node, None, 10, time, time) for node, time in times.items() if node == 3)
        return QuorumInfo(self.leader, 1, 10, voters, observers, {})


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rolling, "_LOOK_S", 0.001)
    monkeypatch.setattr(rolling, "members", lambda admin: NODES)
    monkeypatch.setattr(sync_check, "problems", lambda admin, brokers: [])


def roll(quorum: Quorum, restart: Any) -> list[str]:
    said: list[str] = []
    rolling.roll(cast(Any, quorum), NODES, restart, 0.05, said.append)
    return said


@pytest.mark.parametrize("lost", [2, 3])
def test_a_node_that_does_not_come_back_stops_the_roll_before_anybody_notices_its_death(lost: int) -> None:
    quorum = Quorum()
    restarted: list[int] = []

    def restart(node: Member) -> None:
        restarted.append(node.id)
        if node.id == lost:
            quorum.running.remove(lost)

    with pytest.raises(RollStopped, match=f"node {lost} is not back"):
        roll(quorum, restart)
    assert restarted[-1] == lost


@pytest.mark.parametrize("tells_times", [True, False])
def test_nodes_that_come_back_are_restarted_one_after_the_other(tells_times: bool) -> None:
    quorum = Quorum(tells_times=tells_times)
    said = roll(quorum, lambda node: None)
    assert [line.split()[1] for line in said] == ["2", "3", "1"]


def test_the_times_of_a_new_leader_are_held_against_its_own_clock() -> None:
    quorum = Quorum()

    def restart(node: Member) -> None:
        if node.id == 1:
            quorum.leader, quorum.now_ms = 2, 500
            quorum.fetched_ms = {1: 0, 2: 500, 3: 500}

    assert len(roll(quorum, restart)) == len(NODES)
