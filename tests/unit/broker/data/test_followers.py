"""What a leader takes from its followers' fetches: up to where they have the log, and from where."""

import pytest

from ottla.wire.errors import ErrorCode
from ottla.wire.messages import DeleteRecordsRequest
from tests.unit.broker.brokers import TestNode, batch, fetch_request, only, produce_request, values_in

FOLLOWER = 2


@pytest.fixture
def node() -> TestNode:
    """It leads a topic with one follower, and has three records, of which the follower has none."""
    node = TestNode()
    node.register_broker(FOLLOWER, "b", 9092)
    node.create_topic(replicas=(1, FOLLOWER), leader_epoch=4)
    for value in (b"a", b"b", b"c"):
        node.produce(batch(value), acks=1)
    return node


@pytest.mark.parametrize("offset", [4, 1 << 40])
def test_a_follower_that_asks_for_more_than_there_is_acknowledges_nothing(node, offset):
    waiting = node.ask(produce_request(batch(b"d")), 12)
    assert node.fetch(offset + 1, replica_id=FOLLOWER).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert node.partition().log.high_watermark == 0
    assert not waiting.is_here
    assert node.partition().state.followers[FOLLOWER].end_offset == -1


def test_a_follower_that_asks_for_what_is_deleted_acknowledges_nothing(node):
    node.fetch(3, replica_id=FOLLOWER)
    node.partition().log.advance_log_start_offset(2)
    node.produce(batch(b"d"), acks=1)
    assert node.fetch(1, replica_id=FOLLOWER).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert node.partition().state.followers[FOLLOWER].end_offset == 3


def test_a_follower_that_has_lost_its_log_has_what_it_says_now(node):
    node.fetch(3, replica_id=FOLLOWER)
    assert values_in(node.fetch(1, replica_id=FOLLOWER)) == [b"b", b"c"]
    waiting = node.ask(produce_request(batch(b"d")), 12)
    node.fetch(2, replica_id=FOLLOWER)
    assert node.partition().state.followers[FOLLOWER].end_offset == 2
    assert node.partition().log.high_watermark == 3, "which never goes back"
    assert not waiting.is_here


def test_a_fetch_that_waited_says_no_more_about_its_follower_when_it_is_answered(node):
    """It is of before the follower lost its log, and began again with another connection."""
    node.fetch(3, replica_id=FOLLOWER)
    waiting = node.ask(fetch_request(3, replica_id=FOLLOWER, max_wait_ms=500), 12)
    node.fetch(0, replica_id=FOLLOWER)
    node.timers.advance(500)
    assert waiting.is_here
    assert node.partition().state.followers[FOLLOWER].end_offset == 0


def test_a_follower_that_has_deleted_too_ends_a_wait_for_that(node):
    follow(node, log_start_offset=0)
    partition = DeleteRecordsRequest.DeleteRecordsPartition(partition_index=0, offset=2)
    topic = DeleteRecordsRequest.DeleteRecordsTopic(name="orders", partitions=[partition])
    reply = node.ask(DeleteRecordsRequest(topics=[topic], timeout_ms=1000), 2)
    assert not reply.is_here
    follow(node, log_start_offset=2)
    assert (only(reply.message).error_code, only(reply.message).low_watermark) == (ErrorCode.NONE, 2)


def follow(node: TestNode, log_start_offset: int) -> None:
    fetch = fetch_request(3, replica_id=FOLLOWER)
    fetch.topics[0].partitions[0].log_start_offset = log_start_offset
    node.send(fetch, 12)
