"""What DescribeQuorum tells of a quorum of several: how far each replica is, and when it was heard of (KIP-836).

Apache Kafka 4.3.1 told the same of three nodes of its own: the leader is of this moment, a follower of its last fetch,
and a voter that a new leader has not heard of is -1 throughout.
"""

import pytest

from ottla.runtime.metadata.quorum.quorum_view import QuorumReplica, RaftQuorum
from tests.unit.runtime.metadata.quorum_of_replicas import Quorum

LONGEST_FETCH_MS = 500


def shown(quorum: Quorum) -> dict[int, QuorumReplica]:
    view, now_ms = RaftQuorum(quorum.leader.log.raft), quorum.clock.now_ms()
    return {replica.replica_id: replica for replica in (*view.voters(now_ms), *view.observers(now_ms))}


def elected(**sizes: int) -> Quorum:
    quorum = Quorum(**sizes)
    quorum.run(5000)
    return quorum


def test_voters_and_observers_that_keep_up_have_all_and_were_caught_up_at_their_last_fetch() -> None:
    quorum = elected(observers=1)
    now_ms, end_offset = quorum.clock.now_ms(), quorum.leader.log.log_end_offset
    replicas = shown(quorum)
    assert sorted(replicas) == [1, 2, 3, 4]
    assert {replica.log_end_offset for replica in replicas.values()} == {end_offset}
    leader = replicas.pop(quorum.leader.node_id)
    assert (leader.last_fetch_ms, leader.last_caught_up_ms) == (now_ms, now_ms)
    for replica in replicas.values():
        assert now_ms - LONGEST_FETCH_MS <= replica.last_fetch_ms == replica.last_caught_up_ms <= now_ms
    assert [replica.replica_id for replica in RaftQuorum(quorum.leader.log.raft).observers(now_ms)] == [4]


def test_a_follower_that_is_gone_was_heard_of_when_it_last_fetched() -> None:
    quorum = elected()
    gone = quorum.followers()[0].node_id
    before = shown(quorum)[gone]
    quorum.kill(gone)
    quorum.leader.create("orders")
    quorum.run(1000)
    assert shown(quorum)[gone] == before
    assert before.log_end_offset < quorum.leader.log.log_end_offset


def test_a_new_leader_knows_nothing_of_a_voter_that_it_has_not_heard_of() -> None:
    quorum = elected()
    gone = quorum.leader.node_id
    quorum.kill(gone)
    quorum.run(5000)
    assert shown(quorum)[gone] == QuorumReplica(gone)


@pytest.mark.slow
def test_an_observer_that_fetches_no_more_is_forgotten_after_five_minutes() -> None:
    quorum = elected(observers=1)
    quorum.kill(4)
    quorum.run(60_000)
    assert 4 in shown(quorum)
    quorum.run(300_000)
    assert 4 not in shown(quorum)
