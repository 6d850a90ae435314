"""FetchSnapshot (KIP-630), and how much of the log or of a snapshot a replica asks for at a time."""

from typing import Any

import pytest

from ottla.records.batch import complete_batches
from ottla.runtime.metadata.quorum.quorum_network import QuorumConfig
from ottla.runtime.metadata.snapshotter import SnapshotConfig
from ottla.runtime.metadata.storage.snapshots import SnapshotId
from ottla.runtime.metadata.storage.store import StoreConfig
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import FetchSnapshotRequest
from tests.unit.runtime.metadata.quorum_of_replicas import CLUSTER_ID, Quorum, Replica

PART_BYTES = 100
OBSERVER = 9


def outgrown(**options: Any) -> Quorum:
    """An elected quorum whose log begins with a snapshot."""
    quorum = Quorum(snapshots=SnapshotConfig(max_bytes=1), store_config=StoreConfig(retention_bytes=1), **options)
    quorum.run(5000)
    for number in range(5):
        quorum.leader.create(f"topic-{number}")
        quorum.run(600)
        quorum.leader.log.maintain()
    assert quorum.leader.log._store.log.log_start_offset > 0
    return quorum


def newest_of(replica: Replica) -> SnapshotId:
    return replica.log._store.snapshots[-1]


def ask(
    replica: Replica,
    snapshot: SnapshotId,
    position: int = 0,
    *,
    epochs_on: int = 0,
    cluster_id: str = CLUSTER_ID,
    topic: str = "__cluster_metadata",
    replica_id: int = OBSERVER,
) -> Any:
    make = FetchSnapshotRequest
    asked = make.PartitionSnapshot(
        partition=0,
        current_leader_epoch=replica.log.raft.epoch + epochs_on,
        snapshot_id=make.SnapshotId(end_offset=snapshot.end_offset, epoch=snapshot.epoch),
        position=position,
    )
    topics = [make.TopicSnapshot(name=topic, partitions=[asked])]
    told: list[Any] = []
    assert replica.log.leader is not None
    request = make(cluster_id=cluster_id, replica_id=replica_id, max_bytes=PART_BYTES, topics=topics)
    replica.log.leader.fetch_snapshot(request, 1, told.append)
    (reply,) = told
    return reply


def test_the_parts_together_are_the_snapshot() -> None:
    leader = outgrown().leader
    snapshot = newest_of(leader)
    whole, size = b"", PART_BYTES
    while len(whole) < size:
        (part,) = ask(leader, snapshot, len(whole)).topics[0].partitions
        assert (part.error_code, part.position) == (ErrorCode.NONE, len(whole))
        assert 0 < len(part.unaligned_records) <= PART_BYTES
        whole, size = whole + part.unaligned_records, part.size
    files = leader.disk.files()
    assert whole == files[f"{leader.log._store.directory}/{snapshot.name}"]


def test_what_there_is_nothing_of_is_refused() -> None:
    quorum = outgrown()
    leader = quorum.leader
    snapshot = newest_of(leader)
    size = ask(leader, snapshot).topics[0].partitions[0].size
    other = SnapshotId(snapshot.end_offset + 1, snapshot.epoch)
    replies = [
        ask(leader, other),
        ask(leader, snapshot, size),
        ask(leader, snapshot, -1),
        ask(leader, snapshot, epochs_on=-1),
        ask(leader, snapshot, epochs_on=1),
        ask(quorum.followers()[0], snapshot),
    ]
    parts = [reply.topics[0].partitions[0] for reply in replies]
    assert [ErrorCode(part.error_code) for part in parts] == [
        ErrorCode.SNAPSHOT_NOT_FOUND,
        ErrorCode.POSITION_OUT_OF_RANGE,
        ErrorCode.POSITION_OUT_OF_RANGE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ]
    assert {part.current_leader.leader_id for part in parts} == {leader.node_id}
    assert ask(leader, snapshot, cluster_id="other").error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
    assert ask(leader, snapshot, topic="orders").error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("is_voter", [True, False])
def test_a_leader_whose_voter_fetches_a_snapshot_hears_of_it(is_voter: bool) -> None:
    """One that receives a large one fetches nothing else for long: the leader must not take itself for cut off."""
    quorum = outgrown()
    leader, voter = quorum.leader, quorum.followers()[0]
    quorum.isolate(leader.node_id)
    for _ in range(4):
        quorum.run(2000)
        ask(leader, newest_of(leader), replica_id=voter.node_id if is_voter else OBSERVER)
    assert leader.log.raft.is_leader == is_voter


def answers_to(quorum: Quorum, late: int, method: str) -> list[Any]:
    """A voter comes with an empty disk; what the leader answers it."""
    quorum.kill(late)
    leader, told = quorum.leader, list[Any]()
    answer = getattr(leader.log.leader, method)

    def heard(request: Any, version: int, then: Any) -> None:
        answer(request, version, lambda reply: (told.append(reply), then(reply)))

    setattr(leader.log.leader, method, heard)
    quorum.start(late)
    quorum.run(8000)
    assert quorum.replicas[late].topics == leader.topics
    return told


@pytest.mark.parametrize("most_bytes", [PART_BYTES, 1 << 20])
def test_a_replica_asks_for_as_much_of_a_snapshot_as_is_set(most_bytes: int) -> None:
    """`controller.quorum.fetch.snapshot.max.bytes`."""
    quorum = outgrown(network_config=QuorumConfig(fetch_snapshot_max_bytes=most_bytes))
    late = quorum.followers()[0].node_id
    parts = [reply.topics[0].partitions[0] for reply in answers_to(quorum, late, "fetch_snapshot")]
    assert max(len(part.unaligned_records) for part in parts) <= most_bytes
    assert len(parts) == -(-parts[0].size // most_bytes)


@pytest.mark.parametrize("most_bytes", [1, 1 << 20])
def test_a_replica_asks_for_as_much_of_the_log_as_is_set(most_bytes: int) -> None:
    """`controller.quorum.fetch.max.bytes`: a whole batch always comes."""
    quorum = Quorum(network_config=QuorumConfig(fetch_max_bytes=most_bytes))
    quorum.run(5000)
    for number in range(5):
        quorum.leader.create(f"topic-{number}")
        quorum.run(100)
    answers = answers_to(quorum, quorum.followers()[0].node_id, "fetch")
    records = [reply.responses[0].partitions[0].records for reply in answers if reply.responses]
    batches = max(len(list(complete_batches(data))) for data in records if data)
    assert (batches == 1) == (most_bytes == 1)


@pytest.mark.slow
def test_a_replica_outlives_a_damaged_snapshot_of_its_leader_and_takes_the_next(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The disk of the leader is damaged, and not that of whoever follows it."""
    quorum = outgrown()
    leader, late = quorum.leader, quorum.followers()[0].node_id
    snapshot = newest_of(leader)
    leader.disk.rot(f"{leader.log._store.directory}/{snapshot.name}", 150, 3)
    quorum.kill(late)
    fresh = quorum.start(late)
    quorum.run(5000)
    assert (fresh.problems, fresh.topics) == ([], [])
    assert any(snapshot.name in one.message and "damaged" in one.message for one in caplog.records)
    leader.create("one more")
    quorum.run(600)
    leader.log.maintain()
    assert newest_of(leader) != snapshot
    quorum.run(5000)
    assert fresh.topics == leader.topics
