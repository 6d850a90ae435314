"""Snapshots of the metadata: when they are written, what is in them, and what they make dispensable."""

import errno
from random import Random

import pytest

from ottla.log.errors import CorruptFile
from ottla.log.files import read_file, replace_file
from ottla.machines.decision import Decision, VersionedRecord
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.machines.raft.voters import DYNAMIC_VOTERS, VoterSet
from ottla.runtime.metadata.snapshotter import SnapshotConfig
from ottla.runtime.metadata.storage.snapshots import (
    SnapshotId,
    read_snapshot,
    snapshot_batches,
    write_batches,
)
from ottla.runtime.metadata.storage.store import StoreConfig
from ottla.testing.memory_disk import Crashed, MemoryDisk
from ottla.wire.messages import BeginTransactionRecord, EndTransactionRecord
from tests.unit.runtime.metadata.metadata_logs import LOG_DIR, ME, Node, topic_records

DIRECTORY = f"{LOG_DIR}/__cluster_metadata-0"
EVERY_BATCH = SnapshotConfig(max_bytes=1)
SMALL = StoreConfig(segment_bytes=2_000, retention_bytes=4_000)


def checkpoints(node: Node) -> list[str]:
    return [name for name in node.disk.list_dir(DIRECTORY) if "checkpoint" in name and "leader" not in name]


def segments(node: Node) -> list[str]:
    return [name for name in node.disk.list_dir(DIRECTORY) if name.endswith(".log")]


def test_a_name_has_the_end_offset_and_the_epoch() -> None:
    assert SnapshotId(141, 1).name == "00000000000000000141-0000000001.checkpoint"
    assert SnapshotId.of_name("00000000000000000141-0000000001.checkpoint") == SnapshotId(141, 1)


@pytest.mark.parametrize(
    "name",
    [
        "00000000000000000141-0000000001.checkpoint.part",
        "00000000000000000141-0000000001.checkpoint.deleted",
        "leader-epoch-checkpoint",
        "00000000000000000141.log",
        "0000000000000000014x-0000000001.checkpoint",
    ],
)
def test_other_files_are_no_snapshots(name: str) -> None:
    assert SnapshotId.of_name(name) is None


def test_a_snapshot_reads_back_with_its_voters() -> None:
    disk = MemoryDisk()
    disk.make_dirs("/data")
    records = [*topic_records("orders"), *topic_records("payments")]
    batches = snapshot_batches(
        records, 5, epoch=3, last_contained_log_timestamp=4, kraft_version=DYNAMIC_VOTERS, voters=VoterSet([ME])
    )
    write_batches(disk, "/data/snapshot", batches)
    snapshot = read_snapshot(disk, "/data/snapshot")
    assert list(snapshot.records) == [record.message for record in records]
    assert (snapshot.last_contained_log_timestamp, snapshot.kraft_version) == (4, 1)
    assert snapshot.voters == VoterSet([ME])


@pytest.mark.parametrize("damage", ["cut", "flipped", "longer", "empty"])
def test_a_damaged_snapshot_is_told_from_a_whole_one(damage: str) -> None:
    disk = MemoryDisk()
    disk.make_dirs("/data")
    write_batches(disk, "/data/snapshot", snapshot_batches(topic_records("orders"), 5))
    content = read_file(disk, "/data/snapshot")
    footer = 75
    broken = {
        "cut": content[:-footer],
        "flipped": content[:120] + bytes([content[120] ^ 1]) + content[121:],
        "longer": content + content[-footer:],
        "empty": b"",
    }[damage]
    replace_file(disk, "/data/snapshot", broken)
    with pytest.raises(CorruptFile, match="/data/snapshot"):
        read_snapshot(disk, "/data/snapshot")


def test_a_snapshot_is_written_after_so_many_bytes_of_records() -> None:
    node = Node(snapshots=SnapshotConfig(max_bytes=1_000))
    assert checkpoints(node) == []
    for number in range(6):
        node.create(f"topic-{number}")
    (name,) = checkpoints(node)
    snapshot_id = SnapshotId.of_name(name)
    assert snapshot_id is not None
    image = MetadataImage()
    for record in read_snapshot(node.disk, f"{DIRECTORY}/{name}").records:
        image.replay(record)
    for batch in node.store.read(snapshot_id.end_offset, node.log.log_end_offset):
        for record in batch.records:
            image.replay(record)
    assert sorted(image.topics.by_name) == node.topics


def test_a_snapshot_is_written_after_some_time_if_there_is_anything_new() -> None:
    node = Node(snapshots=SnapshotConfig(max_interval_ms=60_000))
    node.create("orders")
    node.clock.advance(59_999)
    node.log.maintain()
    assert checkpoints(node) == []
    node.clock.advance(1)
    node.log.maintain()
    assert checkpoints(node) == [SnapshotId(node.log.log_end_offset, 1).name]
    node.clock.advance(60_000)
    node.log.maintain()
    assert len(checkpoints(node)) == 1


def test_a_restart_begins_with_the_newest_snapshot() -> None:
    node = Node(snapshots=EVERY_BATCH)
    node.create("orders")
    node.create("payments")
    node.stop()
    again = Node(node.disk, started=False)
    assert again.topics == ["orders", "payments"]
    assert again.log.committed_offset == node.log.log_end_offset
    again.log.start(lambda: None)
    again.create("returns")
    assert again.restarted().topics == ["orders", "payments", "returns"]


def test_old_snapshots_and_the_log_before_them_go_when_they_are_too_large() -> None:
    node = Node(snapshots=SnapshotConfig(max_bytes=1_000), store_config=SMALL)
    for number in range(60):
        node.create(f"topic-{number:02}")
    assert node.store.log.log_start_offset > 0
    assert segments(node)[0] != f"{0:020}.log"
    assert SnapshotId.of_name(checkpoints(node)[0]) == node.store.snapshots[0]
    again = node.restarted(store_config=SMALL)
    assert len(again.topics) == 60
    again.create("one more")
    assert len(again.restarted(store_config=SMALL).topics) == 61


def test_old_snapshots_go_when_they_are_too_old_but_the_newest_never() -> None:
    config = StoreConfig(retention_ms=1_000)
    node = Node(snapshots=EVERY_BATCH, store_config=config)
    node.create("orders")
    node.create("payments")
    assert len(checkpoints(node)) > 1
    node.clock.advance(1_001)
    node.log.maintain()
    assert checkpoints(node) == [node.store.snapshots[-1].name]


def test_a_snapshot_that_was_not_finished_is_removed_at_the_next_start() -> None:
    node = Node()
    node.create("orders")
    node.stop()
    replace_file(node.disk, f"{DIRECTORY}/{SnapshotId(99, 9).name}.part", b"half")
    again = Node(node.disk)
    assert again.topics == ["orders"]
    assert checkpoints(again) == []


def test_a_log_that_lost_its_beginning_and_has_no_snapshot_is_refused() -> None:
    node = Node(snapshots=SnapshotConfig(max_bytes=1_000), store_config=SMALL)
    for number in range(60):
        node.create(f"topic-{number:02}")
    node.stop()
    for name in checkpoints(node):
        node.disk.remove(f"{DIRECTORY}/{name}")
    with pytest.raises(CorruptFile, match="no snapshot says what was before"):
        Node(node.disk)


def test_a_disk_that_fails_under_a_snapshot_ends_the_log() -> None:
    disk = MemoryDisk()
    node = Node(disk, snapshots=SnapshotConfig(max_interval_ms=1))
    node.create("orders")
    node.clock.advance(1)
    disk.fail_from(disk.calls + 1, errno.ENOSPC)
    node.log.maintain()
    assert len(node.problems) == 1


@pytest.mark.parametrize("error", [errno.EMFILE, errno.ENFILE, errno.ENOMEM])
def test_a_node_without_descriptors_or_memory_takes_its_snapshot_later(error: int) -> None:
    disk = MemoryDisk()
    node = Node(disk, snapshots=SnapshotConfig(max_interval_ms=1))
    node.create("orders")
    node.clock.advance(1)
    disk.fail_from(disk.calls + 1, error)
    node.log.maintain()
    assert not node.problems
    disk.repair()
    node.create("payments")
    node.clock.advance(1)
    node.log.maintain()
    assert len(checkpoints(node)) == 1


def test_a_node_without_descriptors_removes_old_snapshots_later() -> None:
    disk = MemoryDisk()
    node = Node(disk, snapshots=EVERY_BATCH, store_config=StoreConfig(segment_bytes=2_000, retention_bytes=-1))
    for number in range(40):
        node.create(f"topic-{number:02}")
    before = checkpoints(node)
    node.log._store.config = SMALL
    disk.fail_from(disk.calls + 1, errno.EMFILE)
    node.log.maintain()
    assert not node.problems
    disk.repair()
    node.log.maintain()
    assert not node.problems
    assert len(checkpoints(node)) < len(before)


def test_a_snapshot_says_nothing_of_what_comes_while_it_is_written() -> None:
    node = Node(snapshots=SnapshotConfig(max_interval_ms=1))
    node.create("orders")
    node.clock.advance(1)
    node.workers.hold()
    node.log.maintain()
    for record in topic_records("payments"):  # as if it were committed before the worker has begun
        node.log.image.replay(record.message)
    node.workers.let_go()
    (name,) = checkpoints(node)
    image = MetadataImage()
    image.replay_all(read_snapshot(node.disk, f"{DIRECTORY}/{name}").records)
    assert list(image.topics.by_name) == ["orders"]


def test_no_snapshot_is_written_in_the_middle_of_a_transaction() -> None:
    """Half of it would be all of it, to who loads it (KIP-868)."""
    node = Node(snapshots=EVERY_BATCH)
    before = list(node.store.snapshots)
    begin, end = BeginTransactionRecord(name="long"), EndTransactionRecord()
    for records in ([VersionedRecord(begin, 0)], topic_records("orders")):
        node.log.submit(lambda _c, _t, records=records: Decision("done", records), node.events.append, node.refused)
        node.log.maintain()
        assert node.store.snapshots == before
    node.log.submit(lambda _c, _t: Decision("done", [VersionedRecord(end, 0)]), node.events.append, node.refused)
    node.log.maintain()
    assert node.store.snapshots != before


def test_a_stop_waits_for_a_snapshot_under_way() -> None:
    node = Node(snapshots=SnapshotConfig(max_interval_ms=1))
    node.create("orders")
    node.clock.advance(1)
    node.workers.hold()
    node.log.maintain()
    node.stop()
    assert node.events[-1] != "stopped"
    node.workers.step()
    node.workers.step()
    assert node.events[-1] == "stopped"
    assert len(checkpoints(node)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_every_crash_keeps_every_topic_that_was_acknowledged(seed: int) -> None:
    """Crashes at every disk call of a run with rolls, snapshots and deletions, and loses what was not synced."""
    random = Random(seed)
    call = 0
    while True:
        call += random.randrange(1, 12)
        disk = MemoryDisk(random)
        acknowledged: list[object] = []
        disk.crash_at(call)
        try:
            node = Node(disk, snapshots=SnapshotConfig(max_bytes=700), store_config=SMALL)
            node.events = acknowledged
            for number in range(40):
                node.create(f"topic-{number:02}")
        except Crashed:
            survivor = disk.survivor(random)
            again = Node(survivor, snapshots=SnapshotConfig(max_bytes=700), store_config=SMALL)
            assert not again.problems, (seed, call)
            assert set(acknowledged) - {"ready"} <= set(again.topics), (seed, call)
            again.create("after")
            assert "after" in again.topics
            continue
        assert call > disk.calls
        return
