"""A partition is served when it is announced: requests wait for a disk thread that is held back."""

from errno import ENOSPC

import pytest

from ottla.wire import messages as m
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import (
    DeleteRecordsRequest,
    DescribeProducersRequest,
    ListOffsetsRequest,
    MetadataRequest,
    OffsetForLeaderEpochRequest,
)
from tests.unit.broker.brokers import (
    NODE_ID,
    TestNode,
    batch,
    fetch_request,
    only,
    produce_request,
    topic_id_of,
    values_in,
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
    assert node.client.is_paused
    node.workers.let_go()
    assert not node.client.is_paused


def test_other_partitions_do_not_wait(node):
    node.workers.let_go()
    node.workers.hold()
    node.create_topic("others")
    assert node.produce(batch()).error_code == ErrorCode.NONE
    assert not node.client.is_paused


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
    assert not node.client.is_paused
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


# Coordinators are announced with the partitions that they keep their state in

OF_COORDINATORS = {
    "join group": (m.JoinGroupRequest(group_id="g", session_timeout_ms=6000, protocol_type="consumer"), 5),
    "sync group": (m.SyncGroupRequest(group_id="g"), 3),
    "heartbeat": (m.HeartbeatRequest(group_id="g"), 4),
    "leave group": (m.LeaveGroupRequest(group_id="g"), 3),
    "offset commit": (m.OffsetCommitRequest(group_id="g"), 8),
    "offset fetch": (m.OffsetFetchRequest(group_id="g"), 7),
    "offset fetch of several": (
        m.OffsetFetchRequest(groups=[m.OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g")]),
        9,
    ),
    "offset delete": (m.OffsetDeleteRequest(group_id="g"), 0),
    "consumer group heartbeat": (m.ConsumerGroupHeartbeatRequest(group_id="g", member_id="x"), 1),
    "consumer group describe": (m.ConsumerGroupDescribeRequest(group_ids=["g"]), 1),
    "describe groups": (m.DescribeGroupsRequest(groups=["g"]), 5),
    "delete groups": (m.DeleteGroupsRequest(groups_names=["g"]), 2),
    "txn offset commit": (m.TxnOffsetCommitRequest(transactional_id="x", group_id="g"), 3),
    "init producer id": (m.InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1000), 4),
    "add partitions": (m.AddPartitionsToTxnRequest(v3_and_below_transactional_id="x"), 3),
    "add offsets": (m.AddOffsetsToTxnRequest(transactional_id="x", group_id="g"), 3),
    "end": (m.EndTxnRequest(transactional_id="x"), 3),
    "describe transactions": (m.DescribeTransactionsRequest(transactional_ids=["x"]), 0),
}


@pytest.mark.parametrize("name", OF_COORDINATORS)
def test_a_request_to_a_coordinator_that_is_announced_waits_for_its_log(name):
    node = TestNode()
    node.register_broker(NODE_ID, "127.0.0.1", 9092)
    node.controller.replies = [m.AllocateProducerIdsResponse(producer_id_len=1000)]
    node.workers.hold()
    for topic in ("__consumer_offsets", "__transaction_state"):
        node.create_topic(topic, partitions=2, cleanup_policy="compact")
    for type, key in enumerate("gx"):
        found = node.send(m.FindCoordinatorRequest(key_type=type, coordinator_keys=[key]), 4).coordinators
        assert [one.node_id for one in found] == [NODE_ID]
    reply = node.ask(*OF_COORDINATORS[name])
    assert not reply.is_here
    node.workers.let_go()
    assert f"error_code={ErrorCode.NOT_COORDINATOR:d}" not in repr(reply.message)
    assert reply.is_here


def test_a_request_without_a_key_does_not_wait(node):
    node.create_topic("__transaction_state", cleanup_policy="compact")
    node.controller.replies = [m.AllocateProducerIdsResponse(producer_id_len=1000)]
    assert node.send(m.InitProducerIdRequest(transactional_id=None), 4).error_code == ErrorCode.NONE
