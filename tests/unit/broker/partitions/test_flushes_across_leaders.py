"""Records that have to be on the disk before they count, and what changes of leadership make of the wait."""

import pytest

from tests.unit.broker.brokers import TestNode, batch, produce_request

OTHER = 2


@pytest.fixture
def node() -> TestNode:
    """With a topic whose every record is flushed; what the disk is asked for waits."""
    node = TestNode()
    node.create_topic(flush_messages="1", replicas=(1, OTHER), isr=(1,))
    node.workers.hold()
    return node


def appended(node: TestNode, value: bytes) -> None:
    node.ask(produce_request(batch(value), acks=1), 12)


def test_a_new_epoch_counts_no_record_that_is_not_on_the_disk(node):
    appended(node, b"a")
    node.change_partition(leader=1)
    assert (node.partition().leader_epoch, node.partition().log.high_watermark) == (1, 0)
    assert node.partition().state.epoch_start_offset == 1, "where the log ends, whatever the disk has of it"
    node.workers.let_go()
    assert node.partition().log.high_watermark == 1


def test_a_flush_that_ends_after_a_truncation_counts_nothing(node):
    appended(node, b"a")
    appended(node, b"b")
    node.change_partition(leader=OTHER)
    node.partition().log.truncate_to(0)
    node.change_partition(leader=1, isr=[1])
    appended(node, b"c")
    node.workers.step()
    assert node.partition().log.high_watermark == 0, "what was synced is gone"
    node.workers.let_go()
    assert node.partition().log.high_watermark == 1


def test_a_follower_does_not_flush_again_and_again(node):
    appended(node, b"a")
    node.change_partition(leader=OTHER)
    node.workers.step()
    assert len(node.workers) == 0
    assert not node.partition().awaits_flush


def test_a_flush_that_began_before_the_records_that_wait_says_nothing_of_them(node):
    node.configure_topic(flush_messages="3")
    appended(node, b"a")
    node.broker.partitions.flushing.flush(node.partition())
    for value in (b"b", b"c", b"d"):
        appended(node, value)
    assert node.partition().log.high_watermark == 2
    node.workers.step()
    assert node.partition().log.high_watermark == 2
    node.workers.let_go()
    assert node.partition().log.high_watermark == 4
