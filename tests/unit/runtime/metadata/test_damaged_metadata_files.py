"""Files of `__cluster_metadata-0` that are lost or damaged at rest: named, made again where the log has what they had.

Apache Kafka 4.3.1 starts without a snapshot that the log makes up for, without `quorum-state` and without
`leader-epoch-checkpoint`. It ends over a damaged snapshot or `quorum-state`, and over leader epochs that are zeros. It
cuts a damaged log. Here as there, except that epochs are found again, and snapshots done without, wherever possible.
"""

from collections.abc import Callable

import pytest

from ottla.log.errors import CorruptFile
from ottla.log.files import read_file, replace_file
from ottla.log.leader_epochs import LeaderEpochs
from ottla.records.batch import complete_batches
from ottla.runtime.metadata.snapshotter import SnapshotConfig
from ottla.runtime.metadata.storage.snapshots import SnapshotId
from ottla.runtime.metadata.storage.store import StoreConfig
from ottla.testing.memory_disk import MemoryDisk
from tests.unit.runtime.metadata.metadata_logs import LOG_DIR, Node

DIRECTORY = f"{LOG_DIR}/__cluster_metadata-0"
QUORUM_STATE = f"{DIRECTORY}/quorum-state"
EPOCHS = f"{DIRECTORY}/leader-epoch-checkpoint"
TOPICS = [f"topic-{number:02}" for number in range(20)]
SMALL = StoreConfig(segment_bytes=2_000, retention_bytes=4_000)

Damage = Callable[[bytes], bytes]


def turned(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


DAMAGES: dict[str, Damage] = {
    "a bit": turned,
    "cut": lambda content: content[: len(content) // 2],
    "empty": lambda content: b"",
    "zeros": lambda content: bytes(len(content)),
}
EACH_DAMAGE = pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)


def disk_of_a_node(lives: int = 3, store_config: StoreConfig | None = None) -> MemoryDisk:
    """Of a node that has stopped, after some lives, each of which is an epoch."""
    disk = MemoryDisk()
    for life in range(lives):
        node = Node(disk, snapshots=SnapshotConfig(max_bytes=1_000), store_config=store_config)
        for name in TOPICS[life::lives]:
            node.create(name)
        node.stop()
    return disk


def snapshots(disk: MemoryDisk) -> list[str]:
    return [f"{DIRECTORY}/{name}" for name in disk.list_dir(DIRECTORY) if SnapshotId.of_name(name)]


def spoil(disk: MemoryDisk, path: str, damage: Damage) -> None:
    replace_file(disk, path, damage(read_file(disk, path)))


def test_nothing_is_said_of_a_sound_directory() -> None:
    node = Node(disk_of_a_node())
    assert node.store.warnings == []
    assert node.topics == TOPICS


@pytest.mark.parametrize("kept", [0, 1], ids=["all", "the newest"])
def test_snapshots_that_are_gone_are_made_up_for_by_the_log(kept: int) -> None:
    disk = disk_of_a_node()
    paths = snapshots(disk)
    assert len(paths) > 1
    for path in paths[kept and len(paths) - 1 :]:
        disk.remove(path)
    assert Node(disk).topics == TOPICS


@EACH_DAMAGE
def test_a_damaged_snapshot_is_named_and_set_aside_where_the_log_makes_up_for_it(damage: Damage) -> None:
    disk = disk_of_a_node()
    *_, newest = snapshots(disk)
    spoil(disk, newest, damage)
    node = Node(disk)
    assert node.topics == TOPICS
    (warning,) = node.store.warnings
    assert newest in warning, "which file it is"
    assert disk.exists(f"{newest}.damaged")
    assert not disk.exists(newest)
    node.stop()
    assert Node(disk).store.warnings == []


@EACH_DAMAGE
def test_all_snapshots_may_be_damaged_where_the_log_begins_at_0(damage: Damage) -> None:
    disk = disk_of_a_node()
    for path in snapshots(disk):
        spoil(disk, path, damage)
    assert Node(disk).topics == TOPICS


@EACH_DAMAGE
def test_a_damaged_snapshot_that_nothing_makes_up_for_is_refused_by_name_and_left_alone(damage: Damage) -> None:
    disk = disk_of_a_node(store_config=SMALL)
    paths = snapshots(disk)
    for path in paths:
        spoil(disk, path, damage)
    before = disk.files()
    with pytest.raises(CorruptFile, match=paths[0]):
        Node(disk, store_config=SMALL)
    assert {path: content for path, content in disk.files().items() if path in paths[:1]} == {
        paths[0]: before[paths[0]]
    }


@pytest.mark.parametrize("damage", [turned, *list(DAMAGES.values())[1:]], ids=["a bit", *list(DAMAGES)[1:]])
def test_a_damaged_quorum_state_is_refused_by_name(damage: Damage) -> None:
    disk = disk_of_a_node()
    spoil(disk, QUORUM_STATE, damage if damage is not turned else lambda content: content.replace(b'"', b"#", 1))
    with pytest.raises(CorruptFile, match=QUORUM_STATE):
        Node(disk)


def test_a_replica_without_its_quorum_state_goes_on_in_the_epoch_of_its_log_and_says_so() -> None:
    disk = disk_of_a_node(lives=3)
    disk.remove(QUORUM_STATE)
    node = Node(disk, started=False)
    assert node.log.raft.epoch == 3
    (warning,) = node.store.warnings
    assert QUORUM_STATE in warning
    node.log.start(lambda: None)
    assert node.topics == TOPICS


LAST = 47
"""The offset of the last record of such a node."""
WRONG_EPOCHS: dict[str, Damage] = {
    **DAMAGES,
    "epochs that never were": lambda content: b"0\n1\n9 0\n",
    "another start": lambda content: content.replace(b"\n3 ", b"\n3 1"),
    "an epoch too early": lambda content: content.replace(b"\n3\n", b"\n4\n").replace(b"\n3 ", b"\n3 4\n4 "),
    "an epoch that begins within a batch": lambda content: content.replace(b"\n3\n", b"\n4\n") + b"9 %d\n" % LAST,
}


@pytest.mark.parametrize("damage", [None, *WRONG_EPOCHS.values()], ids=["gone", *WRONG_EPOCHS])
def test_leader_epochs_that_are_lost_or_wrong_are_found_again_in_the_log(damage: Damage | None) -> None:
    disk = disk_of_a_node()
    right = LeaderEpochs(disk, DIRECTORY).entries
    assert [epoch for epoch, _ in right] == [1, 2, 3]
    assert Node(disk, started=False).log.log_end_offset == LAST + 1
    if damage is None:
        disk.remove(EPOCHS)
    else:
        spoil(disk, EPOCHS, damage)
    node = Node(disk, started=False)
    assert node.store.log.epochs.entries == right
    assert node.store.log_end.epoch == 3
    assert all(EPOCHS in warning for warning in node.store.warnings)


def test_a_damaged_log_is_named_and_ends_there_or_at_the_snapshot_after_it() -> None:
    disk = disk_of_a_node()
    *_, newest = snapshots(disk)
    known = SnapshotId.of_name(newest.rpartition("/")[2])
    assert known is not None
    path = f"{DIRECTORY}/{0:020}.log"
    spoil(disk, path, turned)
    node = Node(disk, started=False)
    assert node.store.log_end == (known.epoch, known.end_offset)
    assert path in node.store.warnings[0]


def with_epoch(content: bytes, place: int, epoch: int) -> bytes:
    """Of a batch, by its number: no checksum says that it is another one."""
    position, _ = list(complete_batches(content))[place]
    return content[: position + 12] + epoch.to_bytes(4, "big") + content[position + 16 :]


@pytest.mark.parametrize("place", [-1, -2, -5])
def test_a_batch_of_an_epoch_that_never_was_ends_the_log(place: int) -> None:
    """Else the replica would be elected, with what it has: a metadata log of a later epoch counts for more."""
    disk = disk_of_a_node()
    path = f"{DIRECTORY}/{0:020}.log"
    content = read_file(disk, path)
    _, header = list(complete_batches(content))[place]
    for number in range(place, 0):
        content = with_epoch(content, number, 131077)
    replace_file(disk, path, content)
    node = Node(disk, started=False)
    assert node.store.log_end.epoch == node.log.raft.epoch == 3
    assert header.base_offset <= node.store.log_end.offset <= LAST
    assert any("its epoch 131077 is later than 3" in warning for warning in node.store.warnings)


def test_a_log_that_is_empty_after_its_snapshot_has_the_epoch_of_that() -> None:
    disk = disk_of_a_node()
    node = Node(disk, started=False)
    *_, newest = node.store.snapshots
    node.store.log.truncate_fully(newest.end_offset)
    node.store.close()
    replace_file(disk, EPOCHS, b"0\n1\n9 1\n")
    again = Node(disk, started=False)
    assert again.store.log_end == (newest.epoch, newest.end_offset)
