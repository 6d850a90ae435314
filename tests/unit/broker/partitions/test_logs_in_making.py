"""A partition is served when it is announced: requests wait for a disk thread that is held back."""

from errno import ENOSPC

import pytest
from brokers import NODE_ID, TestNode, batch, fetch_request, only, produce_request, topic_id_of, values_in

from ottla.wire.errors import ErrorCode
from ottla.wire.messages import (
    DeleteRecordsRequest,
    DescribeProducersRequest,
    ListOffsetsRequest,
    MetadataRequest,
    OffsetForLeaderEpochRequest,
)

LONG_MS = 5_000
ORDERS = topic_id_of("orders")


@pytest.fixture
def node() -> TestNode:
    """Has `orders`, whose only log is not made yet."""
    node = TestNode()
    node.register_broker(NODE_ID, "127.0.0.1", 9092)
    node.workers.hold()
    node.create_topic("orders")
    return node


def by_id(request):
    """The same request as newer clients send it."""
    for topic in getattr(request, "topic_data", None) or request.topics:
        topic.topic_id = ORDERS
    return request


REQUESTS = {
    "produce": (produce_request(batch()), 12),
    "produce by id": (by_id(produce_request(batch())), 13),
    "fetch": (fetch_request(), 12),
    "fetch by id": (by_id(fetch_request()), 13),
    "list offsets": (
        ListOffsetsRequest(
            topics=[
                ListOffsetsRequest.ListOffsetsTopic(
                    name="orders", partitions=[ListOffsetsRequest.ListOffsetsPartition(timestamp=-1)]
                )
            ]
        ),
        9,
    ),
    "offset for leader epoch": (
        OffsetForLeaderEpochRequest(
            topics=[
                OffsetForLeaderEpochRequest.OffsetForLeaderTopic(
                    topic="orders", partitions=[OffsetForLeaderEpochRequest.OffsetForLeaderPartition()]
                )
            ]
        ),
        4,
    ),
    "delete records": (
        DeleteRecordsRequest(
            topics=[
                DeleteRecordsRequest.DeleteRecordsTopic(
                    name="orders", partitions=[DeleteRecordsRequest.DeleteRecordsPartition()]
                )
            ],
            timeout_ms=LONG_MS,
        ),
        2,
    ),
    "describe producers": (
        DescribeProducersRequest(
            topics=[DescribeProducersRequest.TopicRequest(name="orders", partition_indexes=[0])],
        ),
        0,
    ),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_for_a_partition_that_is_announced_waits_for_its_log(node, name):
    (topic,) = node.send(MetadataRequest(topics=None), 12).topics
    assert topic.partitions[0].leader_id == NODE_ID
    reply = node.ask(*REQUESTS[name])
    assert not reply.is_here
    node.workers.let_go()
    assert only(reply.message).error_code == ErrorCode.NONE
    assert len(node.timers) == 0


def test_the_records_are_still_there_when_the_log_is(node):
    reply = node.ask(produce_request(batch(b"first")), 12)
    node.workers.let_go()
    assert only(reply.message).base_offset == 0
    assert values_in(node.fetch()) == [b"first"]


def test_requests_behind_it_do_not_overtake(node):
    node.ask(produce_request(batch()), 12)
    assert node.client.is_held
    node.workers.let_go()
    assert not node.client.is_held


def test_other_partitions_do_not_wait(node):
    node.workers.let_go()
    node.workers.hold()
    node.create_topic("others")
    assert node.produce(batch()).error_code == ErrorCode.NONE
    assert not node.client.is_held


def test_one_log_of_several_is_not_enough(node):
    request = produce_request(batch())
    request.topic_data += produce_request(batch(), "others").topic_data
    node.workers.step()
    node.create_topic("others")
    reply = node.ask(request, 12)
    assert not reply.is_here
    node.workers.let_go()
    errors = [one.partition_responses[0].error_code for one in reply.message.responses]
    assert errors == [ErrorCode.NONE, ErrorCode.NONE]


def test_a_disk_that_takes_too_long_is_no_reason_to_wait_for_ever(node):
    reply = node.ask(fetch_request(), 12)
    node.timers.advance(LONG_MS - 1)
    assert not reply.is_here
    node.timers.advance(1)
    assert only(reply.message).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert not node.client.is_held
    node.workers.let_go()
    assert node.fetch().error_code == ErrorCode.NONE


def test_a_producer_waits_no_longer_than_it_says(node):
    request = produce_request(batch())
    request.timeout_ms = 100
    reply = node.ask(request, 12)
    node.timers.advance(100)
    assert only(reply.message).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_topic_that_is_deleted_before_its_log_is_there_is_gone(node):
    reply = node.ask(produce_request(batch()), 12)
    node.delete_topic()
    node.timers.advance(0)
    assert only(reply.message).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    node.workers.let_go()
    assert node.produce(batch()).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_log_that_cannot_be_made_is_offline(node):
    reply = node.ask(produce_request(batch()), 12)
    node.disk.fail_from(node.disk.calls + 1, ENOSPC)
    node.workers.let_go()
    assert only(reply.message).error_code == ErrorCode.KAFKA_STORAGE_ERROR
