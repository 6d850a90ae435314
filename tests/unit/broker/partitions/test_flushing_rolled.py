"""Segments that are full go to the disk, on a worker, and a crash has little to look at."""

import errno

import pytest

from ottla.base.ids import TopicPartition
from ottla.broker.partitions.background import Background
from ottla.log.checkpoint import read_offsets
from ottla.log.files import read_file, replace_file
from ottla.wire.errors import ErrorCode
from tests.unit.broker.brokers import TestNode, batch, values_in
from tests.unit.broker.moving_nodes import ENOUGH_MS, in_one, move, moving_node

VALUE = bytes(340_000)
SEGMENT = {"segment_bytes": str(1 << 20), "file_delete_delay_ms": "0"}
RECORDS = 12


@pytest.fixture
def node() -> TestNode:
    """With segments of three records; what goes to a worker is held from here on."""
    node = TestNode()
    node.create_topic(**SEGMENT)
    node.workers.hold()
    return node


def produce(node: TestNode, count: int = RECORDS) -> None:
    for _ in range(count):
        assert node.produce(batch(VALUE), acks=1).error_code == ErrorCode.NONE


def saved_recovery_points(node: TestNode, directory: str = "/data") -> dict[TopicPartition, int]:
    return read_offsets(node.disk, f"{directory}/recovery-point-offset-checkpoint")


def test_a_roll_makes_what_is_before_it_durable_and_the_checkpoint_says_so(node):
    background = Background(node.broker.partitions, node.broker.world)
    produce(node, 4)
    assert node.partition().log.recovery_point == 0, "a worker has it"
    node.workers.let_go()
    assert node.partition().log.recovery_point == 3
    background.checkpoint()
    assert saved_recovery_points(node) == {("orders", 0): 3}


def test_what_is_rolled_while_a_flush_is_under_way_is_flushed_after_it(node):
    produce(node)
    node.workers.step()
    assert node.partition().log.recovery_point == 3
    node.workers.let_go()
    assert node.partition().log.recovery_point == RECORDS - 3


def test_one_flipped_bit_in_the_oldest_segment_after_a_kill_does_not_cost_the_log(node):
    produce(node)
    node.workers.let_go()
    Background(node.broker.partitions, node.broker.world).checkpoint()
    killed = node.disk.survivor_of_kill()
    path = "/data/orders-0/00000000000000000000.log"
    content = bytearray(read_file(killed, path))
    content[70] ^= 1
    replace_file(killed, path, bytes(content))
    again = TestNode(killed, node.image)
    assert again.partition().log.log_end_offset == RECORDS
    assert len(values_in(again.fetch(3))) == 3


def test_flush_messages_and_rolls_go_together():
    node = TestNode()
    node.create_topic(flush_messages="2", **SEGMENT)
    produce(node)
    assert node.partition().log.recovery_point >= RECORDS - 1
    assert node.partition().log.high_watermark == RECORDS


def test_a_disk_that_fails_to_sync_takes_its_directory_away(node):
    produce(node, 4)
    node.disk.fail_next("sync file", errno.EIO)
    node.workers.let_go()
    assert node.logs.online == {}
    assert node.fetch(0).error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_want_of_descriptors_puts_it_off(node, monkeypatch):
    produce(node, 4)
    node.partition().log.segments[0].close()  # So that it has to be opened.
    with monkeypatch.context() as limited:
        limited.setattr(node.disk, "open", no_descriptors)
        node.workers.step()
    assert node.logs.online != {}
    assert node.partition().log.recovery_point == 0
    node.timers.advance(1000)
    node.workers.let_go()
    assert node.partition().log.recovery_point == 3


def test_a_full_disk_puts_it_off():
    node = TestNode()
    node.create_topic(**SEGMENT, index_interval_bytes="1")
    produce(node, 3)
    log = node.partition().log
    node.disk.fail_at(node.disk.calls + 1, errno.ENOSPC)  # the index, at the roll
    log.roll()
    node.disk.fail_at(node.disk.calls + 2, errno.ENOSPC)  # the index, at the flush that follows an append
    produce(node, 1)
    assert node.logs.online != {}
    assert log.recovery_point == 0
    node.timers.advance(1000)
    assert log.recovery_point == 3


def no_descriptors(path, *, create=False):
    raise OSError(errno.EMFILE, "too many open files", path)


def test_a_topic_that_is_deleted_meanwhile_goes_when_the_worker_is_done(node):
    produce(node, 4)
    node.delete_topic()
    assert node.disk.is_dir("/data/orders-0")
    node.workers.let_go()
    assert not node.disk.is_dir("/data/orders-0")
    node.timers.advance(0)
    assert node.logs.online["/data"].logs == {}


def test_a_directory_that_fails_meanwhile_is_not_asked_for_anything(node):
    produce(node, 4)
    node.broker.partitions.fail_directory("/data", OSError(errno.EIO, "dead"))
    node.workers.let_go()
    assert node.logs.online == {}


def test_retention_meanwhile_does_not_pull_the_files_away(node):
    produce(node, 7)
    node.configure_topic(retention_bytes="1")
    Background(node.broker.partitions, node.broker.world).apply_retention()
    node.timers.advance(0)
    log = node.partition().log
    assert log.log_start_offset == 6
    node.workers.let_go()
    node.timers.advance(1000)
    assert log.recovery_point == 6
    assert not any(name.endswith(".deleted") for name in node.disk.list_dir("/data/orders-0"))


def test_a_replica_that_moves_meanwhile_goes_on_with_a_log_that_is_flushed_too():
    node = moving_node()
    in_one(node, **SEGMENT)
    produce(node)
    assert move(node) == ErrorCode.NONE
    produce(node, 4)
    node.timers.advance(ENOUGH_MS)
    produce(node, 4)
    partition = node.partition()
    assert partition.directory == "/two"
    assert partition.log.recovery_point == partition.log.active.base_offset > RECORDS
