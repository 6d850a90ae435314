"""Metadata logs that Apache Kafka wrote: what our image makes of them is what lies in their directories."""

import re
from collections.abc import Iterator

import pytest

from ottla.base.ids import Uuid, parse_uuid
from ottla.log.checkpoint import parse_partition_metadata
from ottla.machines.metadata.image.delta import MetadataDelta, delta_between
from ottla.machines.metadata.image.features import FEATURES, METADATA_VERSION, default_level
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.wire.record_values import decode_metadata_record, encode_metadata_record
from tests.unit.machines.metadata.golden_metadata import GOLDEN, image_of_log, image_of_snapshot, records_of

DIRECTORIES = ("clean", "killed", "recovered")


def partitions_on_disk(directory: str) -> Iterator[tuple[str, int, Uuid]]:
    for path in (GOLDEN / directory).iterdir():
        if (named := re.fullmatch(r"(.+)-(\d+)", path.name)) and named[1] != "__cluster_metadata":
            text = (path / "partition.metadata").read_bytes()
            yield named[1], int(named[2]), parse_partition_metadata(text, str(path))


@pytest.mark.parametrize("directory", DIRECTORIES)
def test_every_partition_on_disk_is_in_the_image(directory: str) -> None:
    image = image_of_log(directory)
    on_disk = set(partitions_on_disk(directory))
    in_image = {(topic.name, number, topic.id) for topic in image.topics.by_id.values() for number in topic.partitions}
    assert in_image == on_disk
    assert image.topics.partition_count == len(on_disk)


@pytest.mark.parametrize("directory", DIRECTORIES)
def test_the_one_broker_has_every_partition_in_its_directory(directory: str) -> None:
    image = image_of_log(directory)
    properties = dict(
        line.split("=", 1) for line in (GOLDEN / directory / "meta.properties").read_text().split() if "=" in line
    )
    for topic in image.topics.by_id.values():
        for partition in topic.partitions.values():
            assert partition.replicas == (1,)
            assert partition.directories == (parse_uuid(properties["directory.id"]),)
            if partition.leader == 1:
                assert partition.isr == (1,)
            else:  # stopped cleanly: out of the ISR, and eligible to lead as the one that has everything (KIP-966)
                assert (partition.leader, partition.isr, partition.eligible_leader_replicas) == (-1, (), (1,))


def test_settings_given_at_creation_are_found_by_topic() -> None:
    image = image_of_log("clean")
    assert image.configs.of_topic("compacted")["cleanup.policy"] == "compact"
    assert image.configs.of_topic("recompressed")["compression.type"] == "zstd"
    assert image.configs.of_topic("dropped") == {}, "a deleted topic's settings go with it"
    assert image.configs.of_cluster()["min.insync.replicas"] == "1"


def test_a_formatted_cluster_has_the_default_level_of_every_feature() -> None:
    image = image_of_log("clean")
    levels = {name: default_level(name, FEATURES[METADATA_VERSION].supported.highest) for name in FEATURES}
    del levels["kraft.version"]  # of the Raft layer, and 0 here
    assert image.features.levels == levels


def test_registered_nodes_support_what_we_say_4_3_supports() -> None:
    image = image_of_log("clean")
    ours = {name: feature.supported for name, feature in FEATURES.items()}
    assert dict(image.brokers.by_id[1].features) == ours
    assert dict(image.brokers.controllers[1].features) == ours


def test_kafkas_snapshot_and_its_log_give_the_same_image() -> None:
    (snapshot,) = (GOLDEN / "clean" / "__cluster_metadata-0").glob("*.checkpoint")
    end_offset = int(snapshot.name.split("-")[0])
    from_log, from_snapshot = image_of_log("clean", until=end_offset), image_of_snapshot(snapshot)
    assert not delta_between(from_log, from_snapshot)


def test_our_snapshot_has_the_records_of_kafkas() -> None:
    """The same bytes for every record; Kafka's order within a kind is that of a hash map."""
    (snapshot,) = (GOLDEN / "clean" / "__cluster_metadata-0").glob("*.checkpoint")
    image = image_of_log("clean", until=int(snapshot.name.split("-")[0]))
    ours = [encode_metadata_record(record.message, record.version) for record in image.snapshot_records()]
    theirs = [encode_metadata_record(record, version) for _, record, version in records_of(snapshot)]
    assert sorted(map(in_any_order, ours)) == sorted(map(in_any_order, theirs))
    assert [kind for kind, _ in kinds(ours)] == [kind for kind, _ in kinds(theirs)]


def in_any_order(data: bytes) -> bytes:
    """A registration lists features in the order of a hash map, too."""
    record, version = decode_metadata_record(data)
    if hasattr(record, "features"):
        record.features.sort(key=lambda feature: feature.name)
    return encode_metadata_record(record, version)


def kinds(records: list[bytes]) -> list[tuple[str, int]]:
    """Runs of the same kind; a topic and its partitions are one."""
    runs: list[tuple[str, int]] = []
    for data in records:
        name = type(decode_metadata_record(data)[0]).__name__.replace("PartitionRecord", "TopicRecord")
        if runs and runs[-1][0] == name:
            runs[-1] = name, runs[-1][1] + 1
        else:
            runs.append((name, 1))
    return runs


@pytest.mark.parametrize("directory", DIRECTORIES)
def test_the_deltas_of_all_batches_add_up_to_the_image(directory: str) -> None:
    image, delta = MetadataImage(), MetadataDelta()
    for segment in sorted((GOLDEN / directory / "__cluster_metadata-0").glob("*.log")):
        for _, record, _ in records_of(segment):
            image.replay(record, delta)
    whole = delta_between(MetadataImage(), image)
    assert delta.topics_created == whole.topics_created
    assert delta.partitions == whole.partitions
    assert delta.topics_deleted == {}, "what was made and deleted since leaves no trace"
    assert delta.brokers == whole.brokers == {1}
    assert delta.features == whole.features
    assert {change.topic.name for change in delta.partition_changes(image)} == set(image.topics.by_name)
