"""Replicas whose files cannot be opened at a start: nothing older is served in their place, nothing else suffers."""

import pytest

from ottla.broker.partitions.moves import replica_copy, replica_move
from ottla.log.files import read_file, replace_file, write_file
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import PartitionChangeRecord
from tests.unit.broker.brokers import TestNode, batch, topic_id_of, values_in
from tests.unit.broker.moving_nodes import ENOUGH_MS, IDS, in_one, move, moving_node, names_in

NAME = ("orders", 0)


@pytest.fixture(autouse=True)
def nothing_is_left_for_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (replica_copy, replica_move):
        monkeypatch.setattr(module, "LAST_PART_BYTES", 0)


def written(*values: bytes) -> TestNode:
    node = moving_node()
    in_one(node)
    write(node, *values)
    return node


def write(node: TestNode, *values: bytes) -> None:
    for value in values:
        assert node.produce(batch(value)).error_code == ErrorCode.NONE


def damage(node: TestNode, path: str) -> None:
    write_file(node.disk, f"{path}/orders-0/whatever.log.swap", b"nobody knows what of")


def killed(node: TestNode) -> TestNode:
    return moving_node(node.disk.survivor_of_kill(), node.image)


def test_a_copy_that_lacks_the_end_does_not_take_the_place_of_a_damaged_log() -> None:
    node = written(b"a")
    move(node)
    node.partition().begin_job()  # So that the swap waits: the metadata names the new directory by now.
    node.timers.advance(ENOUGH_MS)
    write(node, b"b")
    damage(node, "/one")
    node = killed(node)
    assert (node.partition(), node.broker.partitions.offline) == (None, {NAME})
    node.disk.remove("/one/orders-0/whatever.log.swap")
    node = killed(node)
    assert values_in(node.fetch()) == [b"a", b"b"]
    node.timers.advance(ENOUGH_MS)
    assert (node.partition().directory, values_in(node.fetch())) == ("/two", [b"a", b"b"])


def test_what_was_to_go_after_a_move_is_not_served_for_what_is_damaged() -> None:
    node = written(b"a")
    move(node)
    node.timers.advance(ENOUGH_MS)
    (old,) = (name for name in node.disk.list_dir("/one") if name.endswith("-delete"))
    node.disk.rename(f"/one/{old}", "/one/orders-0")  # As if a power cut had undone that.
    write(node, b"b")
    damage(node, "/two")
    node = killed(node)
    assert (node.partition(), node.broker.partitions.offline) == (None, {NAME})


def test_a_damaged_log_that_was_to_go_after_a_move_takes_nothing_offline() -> None:
    node = written(b"a")
    move(node)
    node.timers.advance(ENOUGH_MS)
    (old,) = (name for name in node.disk.list_dir("/one") if name.endswith("-delete"))
    node.disk.rename(f"/one/{old}", "/one/orders-0")
    write(node, b"b")
    damage(node, "/one")
    node = killed(node)
    assert (node.broker.partitions.offline, values_in(node.fetch())) == (set(), [b"a", b"b"])
    assert move(node, "/one") == ErrorCode.NONE
    node.timers.advance(ENOUGH_MS)
    assert (node.partition().directory, values_in(node.fetch())) == ("/one", [b"a", b"b"])
    assert any(name.endswith("-stray") for name in names_in(node, "/one")), "for a person to look at"


def test_a_replica_that_comes_back_is_made_although_what_was_left_of_it_is_damaged() -> None:
    node = written(b"a")
    damage(node, "/one")
    node.image.replay(
        PartitionChangeRecord(
            topic_id=topic_id_of("orders"), partition_id=0, replicas=[2], directories=[IDS["/one"]], leader=2
        )
    )
    node = killed(node)
    assert node.broker.partitions.offline == set()
    node.change_partition(replicas=[1], directories=[IDS["/one"]], leader=1)
    assert node.produce(batch(b"b")).error_code == ErrorCode.NONE


def test_a_damaged_log_of_a_topic_that_had_the_name_before_keeps_no_partition_from_being_made() -> None:
    node = written(b"a")
    damage(node, "/one")
    write_file(node.disk, "/one/orders-0/partition.metadata", b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ")
    node = killed(node)
    assert node.produce(batch(b"b")).error_code == ErrorCode.NONE
    node = killed(node)
    assert (node.broker.partitions.offline, values_in(node.fetch())) == (set(), [b"b"])


@pytest.mark.parametrize("is_named", [True, False], ids=["the metadata names it", "the metadata names the other"])
@pytest.mark.parametrize("is_clean", [True, False], ids=["after a clean stop", "after a crash"])
def test_a_copy_that_has_what_a_damaged_log_has_lost_is_not_cut(is_named: bool, is_clean: bool) -> None:
    node = written(b"a", b"b", b"c")
    if not is_named:
        node.controller.hold()  # type: ignore[attr-defined]
    move(node)
    node.partition().begin_job()  # So that the swap waits.
    node.timers.advance(ENOUGH_MS)
    node.broker.replica_moves.stop()
    node.broker.partitions.logs.close(7)
    replace_file(node.disk, "/one/orders-0/00000000000000000000.index", b"")
    node.disk.rot("/one/orders-0/00000000000000000000.log", len(batch(b"a")) + 16, bit=5)
    if not is_clean:
        node.disk.remove("/one/.kafka_cleanshutdown")
    node = moving_node(node.disk, node.image)
    if is_named:
        assert (node.partition().directory, values_in(node.fetch())) == ("/two", [b"a", b"b", b"c"])
    else:
        assert values_in(node.fetch()) == [b"a"]
        (aside,) = (name for name in node.disk.list_dir("/two") if name.endswith("-stray"))
        log = read_file(node.disk, f"/two/{aside}/00000000000000000000.log")
        assert len(log) == 3 * len(batch(b"a")), "for a person to look at"
