"""The log of groups that Apache Kafka 4.3.1 wrote, loaded by our machine: the groups and offsets that Kafka knew."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.base.ids import parse_uuid
from ottla.broker.coordination.loading import replay_batch
from ottla.machines.group.classic.group import ClassicGroup
from ottla.machines.group.consumer.group import ConsumerGroup
from ottla.machines.group.group_coordinator import GroupCoordinator
from ottla.machines.group.membership import NewIds
from ottla.machines.group.settings import GroupSettings
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.records.batch import complete_batches
from ottla.wire.messages import OffsetFetchRequest
from ottla.wire.record_values import CoordinatorTopic

GOLDEN = Path(__file__).resolve().parents[3] / "golden" / "kafka-4.3.1"
PLAIN = "CVuwvOOZSWO9mnZZje_qUA"


def no_group_is_broken(subject: str | None, problem: Exception) -> None:
    raise problem


def steps(directory: str) -> Iterator[GroupCoordinator]:
    """The machine after each batch of the log."""
    machine = GroupCoordinator(GroupSettings(), MetadataImage(), NewIds(lambda: "an id", lambda: "an id"))
    for segment in sorted((GOLDEN / directory / "__consumer_offsets-0").glob("*.log")):
        data = segment.read_bytes()
        for position, header in complete_batches(data):
            replay_batch(machine, CoordinatorTopic.CONSUMER_OFFSETS, data, position, header, no_group_is_broken)
            yield machine


def loaded(directory: str) -> GroupCoordinator:
    *_, machine = steps(directory)
    machine.on_loaded(0)
    return machine


def committed(machine: GroupCoordinator, group_id: str) -> dict[tuple[str, int], tuple[int, str]]:
    asked = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group_id, topics=None)
    fetched = machine.fetch_offsets(asked, require_stable=True)
    return {
        (topic.name, part.partition_index): (part.committed_offset, part.metadata or "")
        for topic in fetched.topics
        for part in topic.partitions
    }


@pytest.mark.parametrize("directory", ["clean", "killed", "recovered"])
def test_the_groups_of_kafka_are_there(directory: str) -> None:
    machine = loaded(directory)
    assert "group-deleted" not in machine.groups
    group = machine.groups["group-classic"]
    assert isinstance(group, ClassicGroup)
    assert (group.TYPE, group.state_name, group.protocol_type, group.generation) == ("classic", "Empty", "consumer", 2)


@pytest.mark.parametrize("directory", ["clean", "killed", "recovered"])
def test_the_offsets_of_kafka_are_there(directory: str) -> None:
    machine = loaded(directory)
    expected = {("plain", 0): (3, "some metadata"), ("plain", 1): (34, "")}
    assert committed(machine, "group-classic") == committed(machine, "group-consumer") == expected
    assert committed(machine, "group-txn") == {("plain", 1): (7, "")}, "the second transaction was aborted"
    assert committed(machine, "group-deleted") == {}


def test_offsets_know_the_topic_that_they_are_of() -> None:
    offset = loaded("clean").offsets.get("group-classic", "plain", 0)
    assert offset is not None
    assert offset.topic_id == parse_uuid(PLAIN)


def test_the_history_of_a_group_can_be_followed() -> None:
    """Its states as its batches went by: made, stable with one member, empty."""
    seen: list[tuple[str, int, int]] = []
    for machine in steps("clean"):
        group = machine.groups["group-classic"]
        assert isinstance(group, ClassicGroup)
        state = group.state_name, group.generation, len(group.members)
        if not seen or seen[-1] != state:
            seen.append(state)
    assert seen == [("Empty", 0, 0), ("Stable", 1, 1), ("Empty", 2, 0)]


def test_the_history_of_a_consumer_group_can_be_followed() -> None:
    seen: list[tuple[str, int, int]] = []
    for machine in steps("clean"):
        group = machine.groups.get("group-consumer")
        if group is not None:
            assert isinstance(group, ConsumerGroup)
            state = group.state_name, group.epoch, group.assignment_epoch
            if not seen or seen[-1] != state:
                seen.append(state)
    assert seen == [("Stable", 2, 2), ("Empty", 3, 2)]


def test_the_regular_expressions_of_a_group_are_known() -> None:
    seen = [
        {regex: sorted(resolved.topics) for regex, resolved in group.regexes.items()}
        for machine in steps("clean")
        if isinstance(group := machine.groups.get("group-regex"), ConsumerGroup)
    ]
    assert {"pl.*n": ["plain"]} in seen
    assert seen[-1] == {}
