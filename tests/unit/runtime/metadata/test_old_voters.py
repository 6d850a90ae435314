"""Voters that do not serve the version of Vote that has pre-votes (KIP-996): Apache Kafka before 4.0.

Apache Kafka 4.3 stands as soon as one voter does not serve it. Here such a voter counts as one that would grant its
vote: where those that can be asked hear their leader and are a majority, nobody stands.
"""

from ottla.machines.raft.machine import Role
from tests.unit.runtime.metadata.quorum_of_replicas import Quorum

BEFORE_PRE_VOTES = 1


def test_voters_that_know_no_pre_votes_elect_with_the_others() -> None:
    quorum = Quorum(newest_votes={2: BEFORE_PRE_VOTES, 3: BEFORE_PRE_VOTES})
    quorum.run(5000)
    first = quorum.leader.node_id
    quorum.kill(first)
    quorum.run(10_000)
    assert quorum.leader.node_id != first
    quorum.leader.create("orders")
    quorum.run(1000)
    assert [replica.topics for replica in quorum.replicas.values()] == [["orders"]] * 2


def test_a_lone_voter_elects_with_one_that_knows_no_pre_votes_alone() -> None:
    """The vote itself is asked for in the version that it serves, and counts as any other."""
    quorum = Quorum(voters=2, newest_votes={1: BEFORE_PRE_VOTES, 2: BEFORE_PRE_VOTES})
    quorum.run(10_000)
    epoch = quorum.leader.log.raft.epoch
    quorum.run(20_000)
    assert quorum.leader.log.raft.epoch == epoch, "who has a leader does not stand"


def test_one_that_knows_no_pre_votes_does_not_make_a_majority_of_those_that_refuse() -> None:
    quorum = Quorum(voters=5, newest_votes={5: BEFORE_PRE_VOTES})
    quorum.run(5000)
    leader = quorum.leader
    cut_off = next(replica for replica in quorum.followers() if replica.node_id != 5)
    epoch = leader.log.raft.epoch
    quorum.cut.add(frozenset((cut_off.node_id, leader.node_id)))
    for connection in list(leader.server.connections):
        if connection.session.client.client_host == f"host{cut_off.node_id}":
            connection.close()
    asked: list[Role] = []
    step = cut_off.log.raft.step

    def seen(event: object) -> object:
        effects = step(event)  # type: ignore[arg-type]
        asked.append(cut_off.log.raft.role)
        return effects

    cut_off.log.raft.step = seen  # type: ignore[method-assign,assignment]
    quorum.run(10_000)
    assert Role.PROSPECTIVE in asked
    assert Role.CANDIDATE not in asked
    assert leader.log.raft.epoch == epoch
    assert leader.log.is_active
