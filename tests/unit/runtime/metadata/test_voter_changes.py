"""Voters that are added, removed and updated (KIP-853): one change at a time, and what makes no sense is refused."""

from collections.abc import Callable

import pytest

from ottla.base.ids import ZERO_UUID
from ottla.machines.raft.machine import Role
from ottla.runtime.peers.node_connections import NodeAddress
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message
from ottla.wire.messages import AddRaftVoterRequest, RemoveRaftVoterRequest, UpdateRaftVoterRequest
from tests.unit.runtime.metadata.quorum_of_replicas import (
    CLUSTER_ID,
    Quorum,
    Replica,
    directory_of,
    raise_version,
    settled,
)

Request = Callable[[Quorum], Message]


def raised(voters: int = 3, observers: int = 0) -> Quorum:
    """A quorum whose voters are data."""
    quorum = settled(voters, observers)
    assert raise_version(quorum) == [ErrorCode.NONE]
    return quorum


def ask(replica: Replica, request: Message) -> list[ErrorCode]:
    """What the replica answers, now or later."""
    changes = replica.log.voter_changes
    assert changes is not None
    told: list[ErrorCode] = []
    match request:
        case AddRaftVoterRequest():
            changes.add(request, lambda error, _words: told.append(error))
        case RemoveRaftVoterRequest():
            changes.remove(request, lambda error, _words: told.append(error))
        case UpdateRaftVoterRequest():
            changes.update(request, lambda error, _words: told.append(error))
    return told


def add(node_id: int, *, host: int | None = None, cluster_id: str = CLUSTER_ID, waits: bool = True) -> Message:
    make = AddRaftVoterRequest
    at = f"host{node_id if host is None else host}"
    return make(
        cluster_id=cluster_id,
        timeout_ms=1000,
        voter_id=node_id,
        voter_directory_id=directory_of(node_id),
        listeners=[make.Listener(name="CONTROLLER", host=at, port=9093)] if host != 0 else [],
        ack_when_committed=waits,
    )


def remove(node_id: int, directory: int | None = None, cluster_id: str = CLUSTER_ID) -> Message:
    directory_id = directory_of(node_id if directory is None else directory)
    return RemoveRaftVoterRequest(cluster_id=cluster_id, voter_id=node_id, voter_directory_id=directory_id)


def update(
    quorum: Quorum, *, epochs_on: int = 0, directory: int | None = None, listeners: int = 1, newest: int = 1
) -> Message:
    """As the first follower sends it, which listens at another port now."""
    make, node_id = UpdateRaftVoterRequest, quorum.followers()[0].node_id
    return make(
        cluster_id=CLUSTER_ID,
        current_leader_epoch=quorum.leader.log.raft.epoch + epochs_on,
        voter_id=node_id,
        voter_directory_id=directory_of(node_id if directory is None else directory),
        listeners=[make.Listener(name="CONTROLLER", host=f"host{node_id}", port=19093)] * listeners,
        k_raft_version_feature=make.KRaftVersionFeature(min_supported_version=0, max_supported_version=newest),
    )


def voters_of(replica: Replica) -> list[int]:
    return replica.log.raft.voters.ids


@pytest.mark.slow
@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (lambda _: add(4, cluster_id="other"), ErrorCode.INCONSISTENT_CLUSTER_ID),
        (lambda _: add(2), ErrorCode.DUPLICATE_VOTER),
        (lambda _: add(4, host=0), ErrorCode.INVALID_REQUEST),
        (lambda _: add(9), ErrorCode.REQUEST_TIMED_OUT),
        (lambda _: add(9, host=4), ErrorCode.REQUEST_TIMED_OUT),
        (lambda _: remove(1, cluster_id="other"), ErrorCode.INCONSISTENT_CLUSTER_ID),
        (lambda _: remove(4), ErrorCode.VOTER_NOT_FOUND),
        (lambda _: remove(2, directory=9), ErrorCode.VOTER_NOT_FOUND),
        (lambda quorum: update(quorum, epochs_on=-1), ErrorCode.FENCED_LEADER_EPOCH),
        (lambda quorum: update(quorum, epochs_on=1), ErrorCode.UNKNOWN_LEADER_EPOCH),
        (lambda quorum: update(quorum, directory=9), ErrorCode.VOTER_NOT_FOUND),
        (lambda quorum: update(quorum, listeners=0), ErrorCode.INVALID_REQUEST),
        (lambda quorum: update(quorum, newest=0), ErrorCode.INVALID_REQUEST),
    ],
    ids=[
        "add to another cluster",
        "add a voter",
        "add one without an address",
        "add one that nobody reaches",
        "add one that has not fetched",
        "remove from another cluster",
        "remove an observer",
        "remove a voter by another directory",
        "update in an older epoch",
        "update in an epoch to come",
        "update from another directory",
        "update without an address",
        "update to versions that are too old",
    ],
)
def test_a_change_that_makes_no_sense_is_refused_and_nothing_is_written(request_: Request, error: ErrorCode) -> None:
    quorum = raised(observers=1)
    leader = quorum.leader
    end_offset = leader.log.log_end_offset
    told = ask(leader, request_(quorum))
    quorum.run(3000)
    assert told == [error]
    assert leader.log.log_end_offset == end_offset
    assert [voters_of(replica) for replica in quorum.replicas.values()] == [[1, 2, 3]] * 4


@pytest.mark.parametrize("request_", [lambda _: add(4), lambda _: remove(1), update])
def test_a_replica_that_does_not_lead_changes_nothing(request_: Request) -> None:
    quorum = raised(observers=1)
    assert ask(quorum.followers()[0], request_(quorum)) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


@pytest.mark.parametrize("request_", [add(4), remove(1)])
def test_static_voters_are_changed_by_their_setting_alone(request_: Message) -> None:
    quorum = settled(observers=1)
    assert ask(quorum.leader, request_) == [ErrorCode.UNSUPPORTED_VERSION]


def test_the_last_voter_stays() -> None:
    quorum = raised(voters=1)
    assert ask(quorum.leader, remove(1)) == [ErrorCode.INVALID_REQUEST]
    assert voters_of(quorum.leader) == [1]


def test_a_voter_is_removed_and_another_added_and_all_hear_of_it() -> None:
    quorum = raised(observers=1)
    removed = quorum.followers()[0].node_id
    gone = ask(quorum.leader, remove(removed))
    quorum.run(1000)
    added = ask(quorum.leader, add(4))
    quorum.run(1000)
    assert (gone, added) == ([ErrorCode.NONE], [ErrorCode.NONE])
    left = sorted({1, 2, 3, 4} - {removed})
    assert [voters_of(replica) for replica in quorum.replicas.values()] == [left] * 4


def test_one_change_at_a_time() -> None:
    quorum = raised()
    leader, (first, second) = quorum.leader, quorum.followers()
    quorum.isolate(leader.node_id)
    under_way = ask(leader, remove(first.node_id))
    assert ask(leader, remove(second.node_id)) == [ErrorCode.REQUEST_TIMED_OUT]
    assert under_way == []


def test_voters_that_were_not_committed_are_those_before_again_when_the_log_is_cut() -> None:
    quorum = raised()
    old = quorum.leader
    quorum.isolate(old.node_id)
    told = ask(old, remove(quorum.followers()[0].node_id))
    assert len(voters_of(old)) == 2
    quorum.run(10_000)
    assert told == [ErrorCode.NOT_CONTROLLER]
    quorum.cut.clear()
    quorum.run(10_000)
    assert quorum.leader is not old
    assert [voters_of(replica) for replica in quorum.replicas.values()] == [[1, 2, 3]] * 3


def test_a_leader_that_removes_itself_leads_until_that_is_committed() -> None:
    quorum = raised()
    old = quorum.leader
    told = ask(old, remove(old.node_id))
    assert old.log.raft.is_leader
    quorum.run(50)
    assert told == [ErrorCode.NONE]
    assert not old.log.raft.is_leader
    quorum.run(5000)
    assert old.node_id not in voters_of(quorum.leader)
    quorum.leader.create("orders")
    quorum.run(1000)
    assert old.log.raft.role is Role.FOLLOWER
    assert old.topics == ["orders"]


@pytest.mark.parametrize("waits", [True, False])
def test_who_is_added_may_wait_until_it_is_committed(waits: bool) -> None:
    """KIP-1186: a controller that asks for its own vote may be needed to commit it."""
    quorum = raised(voters=1, observers=1)
    leader = quorum.leader
    told = ask(leader, add(2, waits=waits))
    before_commit: list[ErrorCode] = []
    commit = leader.log.commit

    def seen(offset: int) -> None:
        before_commit.extend(told)
        commit(offset)

    leader.log.commit = seen  # type: ignore[method-assign]
    quorum.run(1000)
    assert before_commit[:1] == ([] if waits else [ErrorCode.NONE])
    assert told == [ErrorCode.NONE]
    assert voters_of(quorum.replicas[2]) == [1, 2]


def test_a_voter_that_updates_itself_is_told_at_once() -> None:
    """As Kafka's leaders do: a controller of Kafka's does not fetch while it waits for that answer."""
    quorum = raised()
    leader = quorum.leader
    request = update(quorum)
    quorum.isolate(leader.node_id)
    assert ask(leader, request) == [ErrorCode.NONE]
    known = leader.log.raft.voters.get(quorum.followers()[0].node_id)
    assert known is not None
    assert known.endpoints[0].port == 19093
    assert known.key.directory_id != ZERO_UUID


def test_a_voter_that_was_away_while_all_others_were_replaced_finds_the_quorum_by_its_bootstrap_servers() -> None:
    """By its own log it is a voter, and those whom it would ask for votes are gone: nobody of them tells it."""
    quorum = raised(observers=3)
    away = quorum.followers()[0].node_id
    disk = quorum.kill(away)
    others = [node_id for node_id in (1, 2, 3) if node_id != away]
    for gone, new in zip((away, *others), (4, 5, 6), strict=True):
        for request in (add(new), remove(gone)):
            told = ask(quorum.leader, request)
            quorum.run(4000)
            assert told == [ErrorCode.NONE]
    for node_id in others:
        quorum.kill(node_id)
    quorum.run(5000)
    replica = quorum.start(away, disk)
    assert replica.log._network is not None
    replica.log._network._bootstrap += [NodeAddress(f"host{node_id}", 9093) for node_id in (4, 5, 6)]
    quorum.run(30_000)
    assert voters_of(replica) == [4, 5, 6]
    assert replica.events == ["ready"]


@pytest.mark.parametrize("restarts", [True, False])
def test_a_leader_that_loses_the_lead_before_its_own_removal_is_committed_is_voted_for(restarts: bool) -> None:
    """The other one of two needs its vote and has a shorter log: neither would ever lead."""
    quorum = raised(voters=2)
    old = quorum.leader
    (other,) = quorum.followers()
    quorum.isolate(old.node_id)
    ask(old, remove(old.node_id))
    quorum.run(10_000)
    assert voters_of(old) == [other.node_id]
    quorum.cut.clear()
    if restarts:
        old = quorum.start(old.node_id, quorum.kill(old.node_id))
    quorum.run(20_000)
    assert quorum.leader is other
    assert voters_of(other) == [other.node_id]
    assert old.log.raft.role is Role.FOLLOWER
