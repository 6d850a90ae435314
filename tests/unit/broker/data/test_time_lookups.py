"""Lookups by time are a worker's: what goes on meanwhile, and what becomes of them."""

import errno

import pytest

from ottla.broker.partitions.background import Background
from ottla.records.header import Compression
from ottla.wire.errors import ErrorCode
from tests.unit.broker.brokers import TestNode, batch, only
from tests.unit.broker.data.test_list_offsets import EARLIEST, LATEST, MAX_TIMESTAMP, request
from tests.unit.broker.moving_nodes import ENOUGH_MS, in_one, move, moving_node

NEXT_LEADER = 2


@pytest.fixture
def node() -> TestNode:
    """Records of the times 100, 200 and 300 at offsets 0, 1 and 2, in a segment each. Workers are held."""
    node = TestNode()
    node.create_topic(replicas=(1, NEXT_LEADER), isr=(1,), file_delete_delay_ms="0")
    for timestamp in (100, 200, 300):
        node.produce(batch(timestamp=timestamp, compression=Compression.ZSTD))
        node.partition().log.roll()
    node.workers.let_go()
    node.workers.hold()
    return node


def ask(node: TestNode, timestamp: int):
    return node.ask(request(timestamp), 11)


def found(reply):
    answer = only(reply.message)
    return answer.error_code, answer.timestamp, answer.offset


def test_the_worker_looks_while_the_connection_waits_and_others_are_answered(node):
    reply = ask(node, 200)
    assert not reply.is_here
    assert node.client.is_paused
    node.produce(batch(timestamp=400), acks=1)
    assert node.fetch(0).high_watermark == 4
    node.workers.step()
    assert found(reply) == (0, 200, 1)
    assert not node.client.is_paused


@pytest.mark.parametrize("timestamp", [LATEST, EARLIEST])
def test_what_the_log_knows_is_told_at_once(node, timestamp):
    assert ask(node, timestamp).is_here


def test_what_is_appended_meanwhile_is_not_looked_at(node):
    latest, later = ask(node, MAX_TIMESTAMP), ask(node, 301)
    node.produce(batch(timestamp=400), acks=1)
    node.workers.step()
    assert found(latest) == (0, 300, 2)
    assert found(later) == (0, -1, -1)


def test_files_that_retention_takes_out_of_the_log_stay_until_it_is_over(node):
    reply = ask(node, 100)
    node.configure_topic(retention_bytes="1")
    Background(node.broker.partitions, node.broker.world).apply_retention()
    node.timers.advance(0)
    assert node.partition().log.log_start_offset == 3
    node.workers.step()
    assert found(reply) == (0, 100, 0), "as of when it was asked"
    node.workers.let_go()
    node.timers.advance(1000)
    assert not any(name.endswith(".deleted") for name in node.disk.list_dir("/data/orders-0"))


def test_a_partition_that_another_node_leads_meanwhile_is_that_ones_to_tell(node):
    reply = ask(node, 100)
    node.change_partition(leader=NEXT_LEADER, isr=(1, NEXT_LEADER))
    node.workers.step()
    assert found(reply)[0] == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_topic_that_is_deleted_meanwhile_is_unknown_and_goes_after_it(node):
    reply = ask(node, 100)
    node.delete_topic()
    assert node.disk.is_dir("/data/orders-0")
    node.workers.let_go()
    assert found(reply)[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert not node.disk.is_dir("/data/orders-0")


def test_a_disk_that_fails_takes_its_directory_away(node):
    reply = ask(node, 100)
    node.disk.fail_read_at(node.disk.reads + 1, errno.EIO)
    node.workers.let_go()
    assert found(reply)[0] == ErrorCode.KAFKA_STORAGE_ERROR
    assert node.logs.online == {}


def test_a_batch_that_is_damaged_is_told_to_its_client_alone(node):
    reply = ask(node, 100)
    segment = node.partition().log.segments[0]
    segment.file.write_at(70, b"\0\0\0\0")
    node.workers.let_go()
    assert found(reply)[0] == ErrorCode.CORRUPT_MESSAGE
    assert node.logs.online != {}


def test_a_move_that_is_about_to_end_is_not_kept_waiting():
    node = moving_node()
    in_one(node)
    node.produce(batch(timestamp=100))
    node.partition().begin_job()
    assert move(node) == ErrorCode.NONE
    node.timers.advance(ENOUGH_MS)
    assert node.partition().is_changing_log
    assert found(node.ask(request(100), 11))[0] == ErrorCode.OFFSET_NOT_AVAILABLE
    node.partition().end_job()
    assert node.partition().directory == "/two"
    assert found(node.ask(request(100), 11)) == (0, 100, 0)
