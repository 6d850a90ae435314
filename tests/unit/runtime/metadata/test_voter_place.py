"""Static voters become data (kraft.version 0 to 1), and controllers become voters by themselves (KIP-853, KIP-1186)."""

import pytest

from ottla.base.ids import uuid_text
from ottla.machines.raft.voters import STATIC_VOTERS, Endpoint
from ottla.runtime.metadata.snapshotter import SnapshotConfig
from ottla.runtime.metadata.storage.store import StoreConfig
from ottla.wire.errors import ErrorCode
from tests.unit.runtime.metadata.quorum_of_replicas import (
    RAISED,
    Quorum,
    directory_of,
    keep_place,
    raise_version,
    settled,
)


def problem(quorum: Quorum) -> str | None:
    assert quorum.leader.log.voter_changes is not None
    return quorum.leader.log.voter_changes.upgrade_problem(RAISED)


def voters_of(quorum: Quorum) -> list[dict[int, bytes]]:
    """By replica: the voters that it knows, with their directories."""
    return [
        {voter.key.id: bytes(voter.key.directory_id) for voter in replica.log.raft.voters}
        for replica in quorum.replicas.values()
    ]


def test_static_voters_become_data_with_their_directories() -> None:
    quorum = settled()
    assert problem(quorum) is None
    assert raise_version(quorum) == [ErrorCode.NONE]
    assert {replica.log.raft.kraft_version for replica in quorum.replicas.values()} == {RAISED}
    assert voters_of(quorum) == [{id: bytes(directory_of(id)) for id in (1, 2, 3)}] * 3
    assert quorum.leader.log.controller is not None
    assert quorum.leader.log.controller.kraft_version == RAISED


def test_a_voter_that_has_not_told_its_directory_is_in_the_way() -> None:
    quorum = Quorum(3)
    quorum.run(8000)
    silent = min(replica.node_id for replica in quorum.followers())
    assert problem(quorum) == f"Voter {silent} has not reported its directory to this controller yet."
    assert raise_version(quorum) == [ErrorCode.NOT_CONTROLLER]
    assert {replica.log.raft.kraft_version for replica in quorum.replicas.values()} == {0}


def test_the_next_leader_is_told_too() -> None:
    quorum = settled()
    quorum.leader.log.resign()
    quorum.run(8000)
    assert problem(quorum) is None


def test_what_voters_told_a_leader_counts_in_its_epoch_alone() -> None:
    """It may be a voter with another disk by then."""
    quorum = settled()
    assert problem(quorum) is None
    quorum.leader.log.raft.epoch += 1
    assert problem(quorum) is not None


def test_a_raised_version_outlives_its_leader_and_a_restart() -> None:
    quorum = settled()
    raise_version(quorum)
    dead = quorum.leader.node_id
    disk = quorum.kill(dead)
    quorum.run(3000)
    back = quorum.start(dead, disk)
    quorum.run(3000)
    assert back.log.raft.kraft_version == quorum.leader.log.raft.kraft_version == RAISED
    assert back.log.raft.is_voter


def test_a_controller_joins_by_itself() -> None:
    quorum = settled(observers=1)
    raise_version(quorum)
    assert [list(voters) for voters in voters_of(quorum)] == [[1, 2, 3]] * 4
    keep_place(quorum.replicas[4], joins=True)
    quorum.run(8000)
    assert [list(voters) for voters in voters_of(quorum)] == [[1, 2, 3, 4]] * 4
    assert quorum.replicas[4].log.raft.is_voter


def test_a_controller_that_is_not_to_join_observes() -> None:
    quorum = settled(observers=1)
    raise_version(quorum)
    quorum.run(8000)
    assert not quorum.replicas[4].log.raft.is_voter


def test_a_controller_with_another_disk_takes_the_place_of_the_voter_it_was() -> None:
    quorum = settled()
    raise_version(quorum)
    lost = quorum.followers()[0].node_id
    quorum.kill(lost)
    again = quorum.start(lost, directory=directory_of(9))
    keep_place(again, joins=True)
    quorum.run(15_000)
    assert quorum.leader.log.raft.voters.has(again.log.raft.me.key)
    assert len(quorum.leader.log.raft.voters) == 3


def test_a_controller_with_another_disk_says_that_the_vote_is_not_its_own(caplog: pytest.LogCaptureFixture) -> None:
    quorum = settled()
    raise_version(quorum)
    lost = quorum.followers()[0].node_id
    quorum.kill(lost)
    keep_place(quorum.start(lost, directory=directory_of(9)), joins=False)
    quorum.run(15_000)
    (told,) = [record.getMessage() for record in caplog.records if "has no vote" in record.getMessage()]
    assert f"voter {lost} has directory.id={uuid_text(directory_of(lost))}" in told
    assert f"this node's log.dirs have {uuid_text(directory_of(9))}" in told


def test_a_voter_that_listens_elsewhere_says_so() -> None:
    quorum = settled()
    raise_version(quorum)
    follower = quorum.followers()[0]
    raft = follower.log.raft
    more = (*raft.me.endpoints, Endpoint("OTHER", "elsewhere", 9094))
    raft.me = raft.me._replace(endpoints=more)
    quorum.run(5000)
    known = quorum.leader.log.raft.voters.get(follower.node_id)
    assert known is not None
    assert known.endpoints == more


def test_a_snapshot_takes_back_the_voters_of_a_version_that_was_not_committed() -> None:
    """Else one whose setting names ids would go by directories, and refuse a voter that comes with another disk."""
    quorum = Quorum(
        snapshots=SnapshotConfig(max_bytes=1), store_config=StoreConfig(retention_bytes=1, segment_bytes=8 << 20)
    )
    for replica in quorum.replicas.values():
        keep_place(replica, joins=False)
    quorum.run(8000)
    old = quorum.leader
    quorum.isolate(old.node_id)
    assert old.log.voter_changes is not None
    old.log.voter_changes.upgrade(RAISED, lambda _error, _message: None)
    assert old.log.raft.kraft_version == RAISED
    quorum.run(8000)
    for number in range(5):
        quorum.leader.create(f"topic-{number}")
        quorum.run(100)
        quorum.leader.log.maintain()
    assert quorum.leader.log._store.log.log_start_offset > old.log.log_end_offset
    quorum.cut.clear()
    quorum.run(8000)
    assert old.topics == quorum.leader.topics
    assert (old.log.raft.kraft_version, old.log.raft.voters) == (STATIC_VOTERS, quorum.voters)
