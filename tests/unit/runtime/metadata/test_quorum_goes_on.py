"""Replicas of the metadata log go on after a handler has raised: they fetch, vote and commit all the same.

The rows are as in `test_loops_go_on`: a handler that raises once, in a quorum that has something to do for it.
"""

import pytest

from ottla.machines.decision import Decision
from ottla.runtime.metadata.metadata_decisions import MetadataDecisions
from ottla.runtime.metadata.quorum.quorum_driver import QuorumDriver
from ottla.runtime.metadata.quorum.quorum_network import QuorumNetwork
from ottla.runtime.metadata.quorum.voter_place import VoterPlace
from ottla.runtime.metadata.replication.metadata_follower import MetadataFollower
from ottla.runtime.metadata.replication.metadata_leader import MetadataLeader
from tests.unit.runtime.metadata.metadata_logs import topic_records
from tests.unit.runtime.metadata.quorum_of_replicas import Quorum, keep_place
from tests.unit.runtime.raising_once import faults_in, raise_once

OF_FOLLOWERS = [
    (MetadataFollower, "_on_response"),
    (MetadataFollower, "_partition_of"),
    (MetadataFollower, "_send"),
    (MetadataFollower, "_fetch"),
    (QuorumNetwork, "fetch"),
    (QuorumNetwork, "learn"),
    (MetadataLeader, "on_committed"),
]
OF_ELECTIONS = [
    *OF_FOLLOWERS,
    (MetadataFollower, "follow"),
    (QuorumNetwork, "ask_leader"),
    (QuorumDriver, "_ask_for_vote"),
    (QuorumDriver, "_tell"),
    (VoterPlace, "_update"),
    (MetadataDecisions, "give_replies"),
]


def names(rows: list[tuple[type, str]]) -> list[str]:
    return [f"{owner.__name__}.{method}" for owner, method in rows]


@pytest.mark.slow
@pytest.mark.parametrize(("owner", "method"), OF_FOLLOWERS, ids=names(OF_FOLLOWERS))
@pytest.mark.parametrize("voters", [1, 3])
def test_replicas_follow_after_a_handler_has_raised(monkeypatch, owner, method, voters):
    """Observers, above all: no election would have them follow anew."""
    quorum = Quorum(voters, observers=1)
    quorum.run(8000)
    epoch = quorum.leader.log.raft.epoch
    calls = raise_once(monkeypatch, owner, method)
    quorum.leader.create("orders")
    faults_in(lambda: quorum.run(1000))
    quorum.leader.create("clicks")
    faults_in(lambda: quorum.run(4000))
    assert len(calls) > 1
    assert quorum.leader.log.raft.epoch == epoch
    assert [replica.topics for replica in quorum.replicas.values()] == [["clicks", "orders"]] * (voters + 1)


@pytest.mark.slow
@pytest.mark.parametrize(("owner", "method"), OF_ELECTIONS, ids=names(OF_ELECTIONS))
@pytest.mark.parametrize("when", ["first", "next"])
def test_a_leader_is_elected_although_a_handler_has_raised(monkeypatch, owner, method, when):
    quorum = Quorum(3, observers=1)
    for replica in quorum.replicas.values():
        keep_place(replica, joins=False)
    if when == "next":
        quorum.run(8000)
    calls = raise_once(monkeypatch, owner, method)
    if when == "next":
        quorum.leader.log.resign()
    faults_in(lambda: quorum.run(8000))
    quorum.leader.create("orders")
    faults_in(lambda: quorum.run(4000))
    assert len(calls) > 1
    assert [replica.topics for replica in quorum.replicas.values()] == [["orders"]] * 4


def test_a_reply_that_raises_keeps_no_other_from_being_given():
    quorum = Quorum(3)
    quorum.run(4000)
    leader, given = quorum.leader, []

    def give(name):
        def then(_reply):
            given.append(name)
            if name == "first":
                raise ZeroDivisionError

        return then

    for name in ("first", "second"):
        records = topic_records(name)
        leader.log.submit(lambda _c, _t, records=records: Decision(None, records), give(name), given.append)
    with pytest.raises(ZeroDivisionError):
        quorum.run(1000)
    quorum.run(1000)
    assert given == ["first", "second"]


def test_a_replica_that_cannot_do_what_the_quorum_orders_for_its_log_is_no_part_of_it_any_more(monkeypatch):
    """It would go on leading."""
    quorum = Quorum(3)
    quorum.run(4000)
    old = quorum.leader
    monkeypatch.setattr(old.log, "stop_leading", lambda: 1 // 0)
    old.log.resign()
    with pytest.raises(AssertionError, match="by zero"):
        quorum.run(4000)
    quorum.kill(old.node_id)
    quorum.run(4000)
    assert quorum.leader is not old
