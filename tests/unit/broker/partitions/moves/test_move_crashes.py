"""A node that crashes at any call to the disk while a replica moves between its directories.

The history is played once to count the calls, and then again for each of them with a crash there. The node that starts
on what is left must have every record that was acknowledged, once and in order; it goes on with the move, or begins
another, and crashes again on the way. Metadata that was committed is never lost: the metadata log sees to it.
"""

from contextlib import suppress
from random import Random

import pytest

from ottla.broker.partitions.background import Background
from ottla.broker.partitions.moves import replica_copy, replica_move, replica_moves
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.testing.memory_disk import Crashed, MemoryDisk
from ottla.wire.errors import ErrorCode
from tests.unit.broker.brokers import TestNode, batch, produced, values_in
from tests.unit.broker.moving_nodes import ENOUGH_MS, FILE_DELETE_DELAY_MS, IDS, in_one, move, moving_node, names_in

SIZE = len(batch(b"0"))
LIVES = 2


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica_moves, "_PART_BYTES", 3 * SIZE)
    monkeypatch.setattr(replica_copy, "LAST_PART_BYTES", SIZE)
    monkeypatch.setattr(replica_move, "LAST_PART_BYTES", SIZE)


class Writer:
    """An idempotent producer of rising numbers that remembers what was acknowledged, and what may have been written."""

    def __init__(self) -> None:
        self.acknowledged = 0
        self.written = 0

    def write(self, node: TestNode) -> None:
        self.written = self.acknowledged + 1
        data = produced(9, self.acknowledged, b"%d" % self.acknowledged)
        assert node.produce(data).error_code == ErrorCode.NONE
        self.acknowledged += 1

    def check(self, node: TestNode) -> None:
        """All that was acknowledged is there; one more may be, whose answer was lost."""
        found: list[int] = []
        while some := values_in(node.fetch(len(found))):
            found += [int(value or b"") for value in some]
        assert found == list(range(len(found)))
        assert self.acknowledged <= len(found) <= self.written
        self.acknowledged = len(found)


def begin(node: TestNode, writer: Writer) -> None:
    in_one(node, flush_messages="1")
    for number in range(8):
        if number == 4:
            node.partition().log.roll()
        writer.write(node)


def resume(node: TestNode, writer: Writer) -> None:
    """Moves to the other directory, with records and checkpoints that are written on the way, and clears up."""
    path = {"/one": "/two", "/two": "/one"}[node.partition().directory]
    assert move(node, path) == ErrorCode.NONE
    background = Background(node.broker.partitions, node.broker.world)
    for step in range(12):
        writer.write(node)
        node.timers.advance(1)
        if step == 3:
            background.checkpoint()
    node.timers.advance(ENOUGH_MS)
    writer.write(node)
    background.checkpoint()
    node.timers.advance(FILE_DELETE_DELAY_MS)
    assert node.partition().directory == path


def restarted(disk: MemoryDisk, image: MetadataImage) -> TestNode:
    node = moving_node(disk, image)
    node.change_partition(leader=1)  # A node that comes back leads in a new epoch.
    return node


def check(node: TestNode, writer: Writer) -> None:
    """The node is whole, goes on with what was under way, and takes records."""
    writer.check(node)
    node.timers.advance(ENOUGH_MS)
    writer.write(node)
    writer.check(node)
    node.timers.advance(ENOUGH_MS + FILE_DELETE_DELAY_MS)
    here, there = (names_in(node, path) for path in IDS)
    assert sorted([*here, *there]) == ["orders-0"], "one log, and nothing left over"
    home = node.partition().directory
    assert names_in(node, home) == ["orders-0"]
    assert node.image.topics.by_name["orders"].partitions[0].directory(1) == IDS[home]
    assert node.partition().log.producers.get(9) is not None


def calls_of_a_move() -> range:
    node, writer = moving_node(MemoryDisk()), Writer()
    begin(node, writer)
    first = node.disk.calls + 1
    resume(node, writer)
    end = node.disk.calls + 1
    check(node, writer)
    return range(first, end)


def crash(call: int, random: Random, *, power_cut: bool) -> None:
    disk, writer = MemoryDisk(random), Writer()
    node = moving_node(disk)
    image = node.image
    begin(node, writer)
    disk.crash_at(call)
    with suppress(Crashed):
        resume(node, writer)
    for _ in range(LIVES):
        disk = disk.survivor(random) if power_cut else disk.survivor_of_kill()
        disk.crash_at(random.randrange(1, 180))
        with suppress(Crashed):
            node = restarted(disk, image)
            writer.check(node)
            resume(node, writer)
    disk = disk.survivor(random) if power_cut else disk.survivor_of_kill()
    check(restarted(disk, image), writer)


@pytest.mark.slow
def test_a_node_that_is_killed_in_the_middle_of_a_move_has_all_that_was_acknowledged() -> None:
    calls = calls_of_a_move()
    assert len(calls) > 50
    for call in calls[::2]:
        crash(call, Random(call), power_cut=False)


@pytest.mark.slow
def test_a_power_cut_at_any_call_of_a_move_loses_nothing_that_was_flushed() -> None:
    for call in calls_of_a_move():
        crash(call, Random(call), power_cut=True)


@pytest.mark.long
@pytest.mark.parametrize("power_cut", [False, True], ids=["kill", "power cut"])
@pytest.mark.parametrize("seed", range(100, 140))
def test_crashes_in_many_lives(seed: int, power_cut: bool) -> None:
    for call in calls_of_a_move():
        crash(call, Random(f"{call} {seed}"), power_cut=power_cut)
