"""`Partitions` is the partitions: its callers get the world and the events of partitions by name (decision 10)."""

from ottla.broker.partitions.partition_events import PartitionEvents
from ottla.runtime.world import World
from tests.unit.broker.brokers import TestNode


def test_partitions_hand_out_neither_the_world_nor_callbacks():
    node = TestNode()
    ports = [node.broker.world, *node.broker.world]
    handed_out = {
        name: value
        for name, value in vars(node.broker.partitions).items()
        if not name.startswith("_")
        and (isinstance(value, (World, PartitionEvents)) or callable(value) or any(value is port for port in ports))
    }
    assert handed_out == {}


def test_a_directory_that_fails_is_told_to_moves_before_its_partitions_are_offline_and_to_the_node_after():
    node = TestNode(log_dirs=("/data", "/spare"))
    node.create_topic()
    directory = node.partition().directory
    told = []
    partitions, events = node.broker.partitions, node.broker.partition_events
    events.on_directory_failing = lambda failing: told.append(("failing", failing, len(partitions)))
    events.on_leadership = lambda partition: told.append(("leadership", partition.name, len(partitions)))
    events.on_directory_failed = lambda failed, _problem: told.append(("failed", failed, len(partitions)))
    partitions.fail_directory(directory, OSError(5, "it is broken"))
    assert [what for what, *_ in told] == ["failing", "leadership", "failed"]
    assert [count for *_, count in told] == [1, 0, 0]
