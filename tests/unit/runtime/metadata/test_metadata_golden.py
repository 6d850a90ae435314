"""Metadata that Apache Kafka 4.3.1 wrote, opened by us."""

import shutil
from pathlib import Path

import pytest

from ottla.log.disk import OsDisk
from ottla.log.errors import CorruptFile
from ottla.log.file_names import parse_partition_dir
from ottla.machines.raft.events import QuorumState
from ottla.machines.raft.voters import DYNAMIC_VOTERS, STATIC_VOTERS
from ottla.runtime.metadata import metadata_log
from ottla.runtime.metadata.storage import store
from ottla.runtime.metadata.storage.quorum_state_file import format_quorum_state, parse_quorum_state
from tests.unit.runtime.metadata.metadata_logs import ME, Node

GOLDEN = Path(__file__).parents[3] / "golden" / "kafka-4.3.1"


def opened(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    """A node of ours on a directory of Kafka's."""

    class OnDisk(store.MetadataStore):
        def __init__(self, disk: object, _log_dir: str, *rest: object) -> None:
            super().__init__(OsDisk(), str(directory), *rest)  # type: ignore[arg-type]

    monkeypatch.setattr("tests.unit.runtime.metadata.metadata_logs.MetadataStore", OnDisk)
    return Node()


@pytest.mark.parametrize("name", ["clean", "killed", "recovered"])
def test_every_topic_of_a_directory_is_in_its_metadata(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(GOLDEN / name / "__cluster_metadata-0", tmp_path / "__cluster_metadata-0")
    node = opened(tmp_path, monkeypatch)
    assert node.problems == []
    assert node.events == ["ready"]
    found = (parse_partition_dir(path.name) for path in (GOLDEN / name).iterdir() if path.is_dir())
    partitions = {partition for partition, mark in filter(None, found) if not mark}
    on_disk = {partition.topic for partition in partitions} - {"__cluster_metadata"}
    assert on_disk <= set(node.topics)
    assert all(
        partition.partition in node.log.image.topics.by_name[partition.topic].partitions
        for partition in partitions
        if partition.topic in on_disk
    )
    epoch = parse_quorum_state((GOLDEN / name / "__cluster_metadata-0" / "quorum-state").read_bytes(), name).epoch
    assert node.log.raft.epoch == epoch + 1
    node.create("one-more")
    node.stop()
    assert opened(tmp_path, monkeypatch).topics == sorted([*node.topics])


def test_a_directory_formatted_for_dynamic_voters_is_led_by_its_voter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(GOLDEN / "standalone" / "__cluster_metadata-0", tmp_path / "__cluster_metadata-0")
    formatted = store.MetadataStore(OsDisk(), str(tmp_path), Node().clock)
    assert formatted.kraft_version == DYNAMIC_VOTERS
    assert formatted.voters is not None
    (voter,) = formatted.voters
    assert voter.key.id == ME.key.id
    assert formatted.voter_changes == [], "no leader has written them"
    with pytest.raises(metadata_log.StorageError, match="none of them is this node, 1, with this directory"):
        opened(tmp_path, monkeypatch)  # our directory's id is another


@pytest.mark.parametrize("name", ["clean", "killed", "recovered"])
def test_the_quorum_state_is_written_as_kafka_writes_it(name: str) -> None:
    theirs = (GOLDEN / name / "__cluster_metadata-0" / "quorum-state").read_bytes()
    state = parse_quorum_state(theirs, name)
    assert state.leader_id == 1
    assert format_quorum_state(state, STATIC_VOTERS, [1]) == theirs


def test_the_quorum_state_of_dynamic_voters_is_written_as_kafka_writes_it() -> None:
    """From a run of Kafka on a directory formatted with --standalone."""
    theirs = b'{"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'
    assert parse_quorum_state(theirs, "quorum-state") == QuorumState(epoch=1, leader_id=1)
    assert format_quorum_state(QuorumState(epoch=1, leader_id=1), DYNAMIC_VOTERS, [1]) == theirs


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b'{"leaderEpoch":1,"data_version":2}', b"\xff"])
def test_a_quorum_state_that_is_none_is_named(content: bytes) -> None:
    with pytest.raises(CorruptFile, match="/data/quorum-state"):
        parse_quorum_state(content, "/data/quorum-state")
