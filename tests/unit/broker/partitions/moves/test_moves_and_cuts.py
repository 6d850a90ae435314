"""A replica that moves between directories is told by its leader to cut its log: nothing of what was cut comes back."""

import pytest

from ottla.broker.partitions.moves import replica_copy, replica_move, replica_moves
from ottla.broker.replication.followed import FollowedPartition
from ottla.log.partition_log import PartitionLog
from ottla.records.batch import assign
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import FetchResponse
from tests.unit.broker.brokers import TestNode, batch, values_in
from tests.unit.broker.moving_nodes import ENOUGH_MS, IDS, in_one, move, moving_node

SIZE = len(batch(b"old-0"))
TWO = IDS["/two"]


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> TestNode:
    """With nine records in /one, of which two fit into a part."""
    monkeypatch.setattr(replica_moves, "_PART_BYTES", 2 * SIZE)
    monkeypatch.setattr(replica_copy, "_LEAST_PART_BYTES", 2 * SIZE)
    monkeypatch.setattr(replica_copy, "LAST_PART_BYTES", SIZE)
    monkeypatch.setattr(replica_move, "LAST_PART_BYTES", SIZE)
    node = moving_node()
    in_one(node)
    for number in range(9):
        assert node.produce(batch(b"old-%d" % number)).error_code == ErrorCode.NONE
    return node


def future_of(node: TestNode) -> PartitionLog:
    return node.broker.partitions.logs.online["/two"].futures.logs[node.partition().name]


def deposed(node: TestNode) -> FollowedPartition:
    """Node 2 leads from now on."""
    node.change_partition(leader=2, isr=[2])
    return FollowedPartition(node.broker.partitions, node.broker.partition_events, node.partition(), 1000)


def cut(follower: FollowedPartition, offset: int) -> None:
    assert follower.truncate(FetchResponse.EpochEndOffset(epoch=0, end_offset=offset))


def grow(follower: FollowedPartition, first: int, count: int, value: bytes = b"new-%d") -> None:
    epoch = follower.partition.leader_epoch
    records = bytearray()
    for offset in range(first, first + count):
        one = batch(value % offset)
        assign(one, 0, offset, epoch)
        records += one
    data = FetchResponse.PartitionData(records=records, high_watermark=first + count, log_start_offset=0)
    assert follower.take(data)


def values(node: TestNode) -> list[bytes]:
    """What a consumer reads when this node leads again."""
    node.change_partition(leader=1, isr=[1])
    return values_in(node.fetch())  # type: ignore[return-value]


def old_and_new(olds: int, end: int) -> list[bytes]:
    return [b"old-%d" % offset for offset in range(olds)] + [b"new-%d" % offset for offset in range(olds, end)]


def finish(node: TestNode) -> None:
    node.workers.let_go()
    node.timers.advance(ENOUGH_MS)
    assert node.partition().directory == "/two"


def half_way(node: TestNode) -> None:
    assert move(node) == ErrorCode.NONE
    node.workers.hold()
    for _ in range(3):
        node.timers.advance(1)
        node.workers.step()
    assert 3 < future_of(node).log_end_offset < 9


@pytest.mark.parametrize("end", [7, 11], ids=["shorter", "longer"])
def test_a_log_is_cut_and_grows_again_while_the_controller_is_asked(node: TestNode, end: int) -> None:
    node.controller.hold()
    move(node)
    node.timers.advance(ENOUGH_MS)
    assert future_of(node).log_end_offset > 3
    follower = deposed(node)
    cut(follower, 3)
    grow(follower, 3, end - 3)
    node.controller.let_go()
    finish(node)
    assert values(node) == old_and_new(3, end)


def test_the_copy_is_cut_at_once_if_nothing_works_on_it(node: TestNode) -> None:
    node.controller.hold()
    move(node)
    node.timers.advance(ENOUGH_MS)
    cut(deposed(node), 3)
    assert future_of(node).log_end_offset == 3
    node.controller.let_go()
    finish(node)
    assert values(node) == old_and_new(3, 3)


def test_a_leader_that_tells_to_cut_where_the_log_ends_changes_nothing(node: TestNode) -> None:
    node.controller.hold()
    move(node)
    node.timers.advance(ENOUGH_MS)
    cut(deposed(node), 9)
    node.controller.let_go()
    finish(node)
    assert values(node) == old_and_new(9, 9)


@pytest.mark.parametrize("value", [b"new-%d", b"a longer new one: %d"], ids=["at the same place", "at another place"])
def test_a_log_is_cut_and_grows_again_while_a_part_of_it_is_copied(node: TestNode, value: bytes) -> None:
    half_way(node)
    node.timers.advance(1)
    assert len(node.workers) == 1, "a disk thread is about to read"
    follower = deposed(node)
    cut(follower, 3)
    grow(follower, 3, 8, value)
    finish(node)
    assert values(node) == old_and_new(3, 3) + [value % offset for offset in range(3, 11)]


def test_a_log_is_cut_after_what_has_been_copied(node: TestNode) -> None:
    half_way(node)
    copied = future_of(node).log_end_offset
    follower = deposed(node)
    cut(follower, 8)
    grow(follower, 8, 2)
    node.workers.step()
    assert future_of(node).log_end_offset >= copied, "nothing is copied twice"
    finish(node)
    assert values(node) == old_and_new(8, 10)


def test_a_log_is_cut_while_the_copy_is_made_durable(node: TestNode) -> None:
    node.controller.hold()
    move(node)
    node.workers.hold()
    while future_of(node).log_end_offset < 8:
        node.workers.step()
        node.timers.advance(1)
    assert len(node.workers) == 1
    follower = deposed(node)
    cut(follower, 3)
    grow(follower, 3, 8)
    node.workers.let_go()
    assert future_of(node).epochs.entries in ([(0, 0)], [(0, 0), (1, 3)]), "though the controller has not answered"
    node.controller.let_go()
    finish(node)
    assert values(node) == old_and_new(3, 11)


def test_a_log_is_cut_while_the_swap_waits(node: TestNode) -> None:
    move(node)
    node.partition().begin_job()
    node.timers.advance(ENOUGH_MS)
    assert node.partition().is_changing_log
    follower = deposed(node)
    cut(follower, 3)
    grow(follower, 3, 8)
    node.partition().end_job()
    finish(node)
    assert values(node) == old_and_new(3, 11)


def test_a_log_is_emptied_and_begins_earlier(node: TestNode) -> None:
    node.partition().log.advance_log_start_offset(5)
    node.controller.hold()
    move(node)
    node.timers.advance(ENOUGH_MS)
    assert (future_of(node).log_start_offset, future_of(node).log_end_offset) == (5, 9)
    follower = deposed(node)
    assert follower.start_within(2, 2)
    grow(follower, 2, 5)
    node.controller.let_go()
    finish(node)
    node.change_partition(leader=1, isr=[1])
    assert values_in(node.fetch(2)) == [b"new-%d" % offset for offset in range(2, 7)]


def test_a_log_is_emptied_before_its_copy_is_begun(node: TestNode) -> None:
    node.partition().log.advance_log_start_offset(5)
    node.workers.hold()
    move(node)
    follower = deposed(node)
    assert follower.start_within(2, 2)
    finish(node)
    assert node.partition().log.log_end_offset == 2


def test_a_copy_that_contradicts_the_log_never_takes_its_place(node: TestNode) -> None:
    """Whatever the reason: the replica stays where it is."""
    node.controller.hold()
    move(node)
    node.timers.advance(ENOUGH_MS)
    future_of(node).epochs.assign(7, 4)
    node.controller.let_go()
    node.timers.advance(ENOUGH_MS)
    assert node.partition().directory == "/one"
    assert values(node) == old_and_new(9, 9)


class TestInterrupted:
    """The node stops after the metadata was made to name /two, and before the swap."""

    @pytest.fixture
    def waiting(self, node: TestNode) -> TestNode:
        move(node)
        node.partition().begin_job()
        node.timers.advance(ENOUGH_MS)
        assert node.image.topics.by_name["orders"].partitions[0].directory(1) == TWO
        return node

    def stopped(self, node: TestNode) -> TestNode:
        node.broker.replica_moves.stop()
        node.partition().end_job()
        node.broker.partitions.logs.close(7)
        return moving_node(node.disk, node.image)

    def killed(self, node: TestNode) -> TestNode:
        return moving_node(node.disk.survivor_of_kill(), node.image)

    @pytest.mark.parametrize("how", ["stopped", "killed"])
    @pytest.mark.parametrize("end", [7, 9, 11])
    def test_the_log_was_cut_and_has_grown(self, waiting: TestNode, how: str, end: int) -> None:
        follower = deposed(waiting)
        cut(follower, 3)
        grow(follower, 3, end - 3)
        node = (
            self.stopped(waiting) if how == "stopped" else moving_node(waiting.disk.survivor_of_kill(), waiting.image)
        )
        assert values(node) == old_and_new(3, end)
        finish(node)
        assert values(node) == old_and_new(3, end)

    def test_the_log_was_cut_and_the_stop_was_clean(self, waiting: TestNode) -> None:
        cut(deposed(waiting), 3)
        node = self.stopped(waiting)
        finish(node)
        assert values(node) == old_and_new(3, 3)

    def test_a_swap_whose_renames_a_power_cut_has_undone_is_done_again(self, node: TestNode) -> None:
        """The log that was swapped in has been cut, and has grown, since; the old one is as it was."""
        move(node)
        finish(node)
        follower = deposed(node)
        cut(follower, 3)
        grow(follower, 3, 4)
        (old,) = (name for name in node.disk.list_dir("/one") if name.endswith("-delete"))
        node.disk.rename(f"/one/{old}", "/one/orders-0")
        node.disk.rename("/two/orders-0", f"/two/orders-0.{'0123456789abcdef' * 2}-future")
        node = self.killed(node)
        assert node.partition().directory == "/two"
        assert values(node) == old_and_new(3, 7)
