"""How the metadata log gets to its followers: what counts, what is taken, and what has to be on a disk first."""

from collections.abc import Callable
from typing import Any

import pytest

from ottla.machines.raft.machine import Role
from ottla.records.builder import BatchBuilder
from ottla.records.control import ControlType, control_key
from ottla.runtime.metadata.storage.snapshots import read_snapshot
from ottla.runtime.metadata.storage.store import TOPIC_ID
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import FetchRequest, RemoveRaftVoterRequest
from tests.unit.runtime.metadata.quorum_of_replicas import (
    CLUSTER_ID,
    Quorum,
    Replica,
    directory_of,
    raise_version,
    settled,
)

OBSERVER = 9


def elected() -> Quorum:
    quorum = Quorum()
    quorum.run(5000)
    return quorum


def fetch(
    leader: Replica,
    follower_id: int,
    offset: int,
    *,
    epoch: int | None = None,
    high_watermark: int = 0,
    wait_ms: int = 0,
    listener: str = "",
) -> list[Any]:
    """The answers so far, now or later."""
    partition = FetchRequest.FetchPartition(
        partition=0,
        current_leader_epoch=leader.log.raft.epoch,
        fetch_offset=offset,
        last_fetched_epoch=leader.log.raft.epoch if epoch is None else epoch,
        replica_directory_id=directory_of(follower_id),
        high_watermark=high_watermark,
    )
    request = FetchRequest(
        cluster_id=CLUSTER_ID,
        replica_state=FetchRequest.ReplicaState(replica_id=follower_id),
        max_wait_ms=wait_ms,
        max_bytes=1 << 20,
        topics=[FetchRequest.FetchTopic(topic_id=TOPIC_ID, partitions=[partition])],
    )
    told: list[Any] = []
    assert leader.log.leader is not None
    leader.log.leader.fetch(request, 18, told.append, listener)
    return told


@pytest.mark.parametrize(("beyond", "epochs_back"), [(1, 0), (0, 1)], ids=["longer", "of another epoch"])
def test_a_fetch_is_checked_against_the_log_before_it_counts(beyond: int, epochs_back: int) -> None:
    """A log that is longer than the leader's, or has another epoch there, is not the leader's log."""
    quorum = elected()
    leader, follower = quorum.leader, quorum.followers()[0].node_id
    quorum.isolate(leader.node_id)
    leader.create("orders")
    end_offset, committed = leader.log.log_end_offset, leader.log.high_watermark
    epoch = leader.log.raft.epoch - epochs_back
    (reply,) = fetch(leader, follower, end_offset + beyond, epoch=epoch)
    (partition,) = reply.responses[0].partitions
    assert partition.diverging_epoch.end_offset >= 0
    assert not partition.records
    assert leader.log.high_watermark == committed
    fetch(leader, follower, end_offset)
    assert leader.log.high_watermark == end_offset, "the same log counts"


def test_a_fetch_that_waits_is_answered_when_more_is_committed() -> None:
    """KIP-1166: the replica that waits has all records, and hears from another's fetch that they are committed."""
    quorum = elected()
    leader, first = quorum.leader, quorum.followers()[0].node_id
    quorum.isolate(leader.node_id)
    leader.create("orders")
    end_offset, committed = leader.log.log_end_offset, leader.log.high_watermark
    told = fetch(leader, OBSERVER, end_offset, high_watermark=committed, wait_ms=10_000)
    assert told == []
    fetch(leader, first, end_offset)
    assert leader.log.high_watermark == end_offset
    (reply,) = told
    assert reply.responses[0].partitions[0].high_watermark == end_offset


def test_a_fetch_that_waits_is_answered_when_the_leader_resigns() -> None:
    quorum = elected()
    leader = quorum.leader
    end_offset = leader.log.log_end_offset
    told = fetch(leader, OBSERVER, end_offset, high_watermark=end_offset, wait_ms=10_000)
    assert told == []
    leader.log.resign()
    (reply,) = told
    assert reply.responses[0].partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def damaged(leader: Replica, follower_id: int, damage: Callable[[bytearray], None]) -> list[bytes]:
    """The first records that the leader sends to the follower are damaged on their way."""
    done: list[bytes] = []
    assert leader.log.leader is not None
    answer = leader.log.leader.fetch

    def sent(request: Any, version: int, then: Any) -> None:
        def give(reply: Any) -> None:
            data = reply.responses[0].partitions[0].records if reply.responses else None
            if data and not done and request.replica_state.replica_id == follower_id:
                harmed = bytearray(data)
                damage(harmed)
                done.append(bytes(harmed))
                reply.responses[0].partitions[0].records = bytes(harmed)
            then(reply)

        answer(request, version, give)

    leader.log.leader.fetch = sent  # type: ignore[method-assign]
    return done


def flip_a_bit(data: bytearray) -> None:
    data[-1] ^= 1


def come_too_late(data: bytearray) -> None:
    data[7] += 1  # the base offset, which the checksum does not cover


def be_of_a_later_epoch(data: bytearray) -> None:
    data[15] += 1  # the leader epoch, which it does not cover either


@pytest.mark.parametrize("damage", [flip_a_bit, come_too_late, be_of_a_later_epoch])
def test_a_follower_takes_only_what_can_follow(
    damage: Callable[[bytearray], None], caplog: pytest.LogCaptureFixture
) -> None:
    quorum = elected()
    leader, follower = quorum.leader, quorum.followers()[0]
    harmed = damaged(leader, follower.node_id, damage)
    quorum.run(1000)  # the fetch that waits at the leader is one of these now
    leader.create("orders")
    quorum.run(2000)
    assert len(harmed) == 1
    assert "cannot append metadata from leader" in caplog.text
    assert follower.topics == ["orders"], "it has asked again"
    logs = [
        data
        for replica in (leader, follower)
        for path, data in replica.disk.files().items()
        if path.endswith("00000000000000000000.log")
    ]
    assert logs[0] == logs[1]


def test_a_voter_flushes_what_it_has_before_it_asks_for_more() -> None:
    """To ask for an offset says that all before it would survive a power cut."""
    quorum = elected()
    leader = quorum.leader
    for follower in quorum.followers():
        follower.workers.hold()
    leader.create("orders")
    quorum.run(400)
    assert {replica.log.log_end_offset for replica in quorum.followers()} == {leader.log.log_end_offset}
    assert "orders" not in leader.events
    for follower in quorum.followers():
        follower.workers.let_go()
    quorum.run(100)
    assert "orders" in leader.events


def test_a_flush_that_ends_after_the_log_was_cut_says_nothing_of_what_came_since() -> None:
    quorum = elected()
    leader, follower = quorum.leader, quorum.followers()[0]
    begin = follower.log.log_end_offset
    leader.create("orders")
    quorum.run(1000)
    records = b"".join(bytes(one.responses[0].partitions[0].records) for one in fetch(leader, follower.node_id, begin))
    quorum.isolate(follower.node_id)
    log = follower.log
    log.committed_offset = begin  # as if it had not heard that they are committed
    log.raft._high_watermark = begin
    log.truncate(log.raft.epoch, begin)
    follower.workers.hold()
    log.append_as_follower(records)
    flushed: list[str] = []
    log.when_durable(lambda: flushed.append("first"))
    log.truncate(log.raft.epoch, begin)
    log.append_as_follower(records)
    log.when_durable(lambda: flushed.append("second"))
    follower.workers.step()
    assert "second" not in flushed, "what was synced is not what is there"
    follower.workers.let_go()
    assert "second" in flushed


def test_a_snapshot_has_the_voters_of_its_offset_and_not_later_ones() -> None:
    """Voters that are not committed may never have been."""
    quorum = settled()
    assert raise_version(quorum) == [ErrorCode.NONE]
    leader = quorum.leader
    quorum.isolate(leader.node_id)
    removed = quorum.followers()[0].node_id
    assert leader.log.voter_changes is not None
    leader.log.voter_changes.remove(
        RemoveRaftVoterRequest(cluster_id=CLUSTER_ID, voter_id=removed, voter_directory_id=directory_of(removed)),
        lambda _error, _words: None,
    )
    assert removed not in leader.log.raft.voters.ids
    leader.log._snapshotter._take()
    store = leader.log._store
    snapshot = read_snapshot(leader.disk, f"{store.directory}/{store.snapshots[-1].name}")
    assert snapshot.voters is not None
    assert snapshot.voters.ids == [1, 2, 3]


def test_the_leaders_watermark_says_nothing_of_a_log_that_had_to_be_cut() -> None:
    """What is left of it may be another history than the leader's, which the next fetch will tell."""
    quorum = elected()
    leader, (follower, other) = quorum.leader, quorum.followers()
    quorum.isolate(other.node_id)
    committed, fetch_as_ever = follower.log.high_watermark, leader.log.leader.fetch
    leader.create("first")
    cut_to = leader.log.log_end_offset
    leader.create("second")
    end_offset = leader.log.log_end_offset
    told: list[int] = []

    def fetch_of_another_history(request: Any, version: int, respond: Callable[[Any], None]) -> None:
        def changed(reply: Any) -> None:
            partition = reply.responses[0].partitions[0]
            partition.high_watermark = committed
            if request.topics[0].partitions[0].fetch_offset == end_offset:
                partition.high_watermark = end_offset
                partition.diverging_epoch.epoch = leader.log.raft.epoch
                partition.diverging_epoch.end_offset = cut_to
                told.append(cut_to)
            respond(reply)

        if not told:  # Later fetches have to wait: how far the follower is then is what the test looks at.
            fetch_as_ever(request, version, changed)

    leader.log.leader.fetch = fetch_of_another_history
    quorum.run(100)
    assert told
    assert follower.log.log_end_offset == cut_to
    assert (follower.log.high_watermark, follower.topics) == (committed, [])


def test_a_control_record_that_cannot_be_read_is_not_in_the_log() -> None:
    """A follower that has it would not know the voters by which it counts, and could not open its log again."""
    quorum = elected()
    leader, (follower, _) = quorum.leader, quorum.followers()
    end = follower.log.raft.log_end
    builder = BatchBuilder(control=True)
    builder.append(0, control_key(ControlType.KRAFT_VOTERS), b"\xff")
    leader.log._store.append(builder.build(), leader.log.raft.epoch)
    assert leader.log.leader is not None
    leader.log.leader.on_appended()
    quorum.run(1000)
    assert follower.log.raft.log_end == follower.log._store.log_end == end
    assert follower.log.raft.role is Role.FOLLOWER
    again = quorum.start(follower.node_id, quorum.kill(follower.node_id))
    quorum.run(10_000)
    assert again.log.raft.log_end == again.log._store.log_end
    assert again.log.raft.voters.ids == [1, 2, 3]
