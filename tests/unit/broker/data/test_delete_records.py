"""DeleteRecords (KIP-107)."""

import pytest

from ottla.wire.errors import ErrorCode
from ottla.wire.messages import DeleteRecordsRequest
from tests.unit.broker.brokers import TestNode, batch, fetch_request, only, values_in

HIGH_WATERMARK = -1


def request(offset: int, topic: str = "orders", index: int = 0) -> DeleteRecordsRequest:
    partition = DeleteRecordsRequest.DeleteRecordsPartition(partition_index=index, offset=offset)
    topics = [DeleteRecordsRequest.DeleteRecordsTopic(name=topic, partitions=[partition])]
    return DeleteRecordsRequest(topics=topics, timeout_ms=1000)


def delete(node: TestNode, offset: int, topic: str = "orders", version: int = 2):
    answer = only(node.send(request(offset, topic), version))
    return answer.error_code, answer.low_watermark


@pytest.fixture
def node() -> TestNode:
    node = TestNode()
    node.create_topic()
    for value in (b"a", b"b", b"c"):
        node.produce(batch(value))
    return node


@pytest.mark.parametrize("version", [0, 1, 2])
def test_everything_before_an_offset_goes(node, version):
    assert delete(node, 2, version=version) == (0, 2)
    assert node.fetch(1).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert values_in(node.fetch(2)) == [b"c"]


def test_everything_that_is_replicated_goes(node):
    assert delete(node, HIGH_WATERMARK) == (0, 3)
    assert node.fetch(3).error_code == ErrorCode.NONE


def test_what_is_gone_already_stays_gone(node):
    delete(node, 2)
    assert delete(node, 1) == (0, 2)


@pytest.mark.parametrize("offset", [4, -2])
def test_an_offset_that_is_not_there(node, offset):
    assert delete(node, offset) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)


def test_only_topics_whose_policy_is_to_delete(node):
    node.configure_topic(cleanup_policy="compact")
    assert delete(node, 1) == (ErrorCode.POLICY_VIOLATION, -1)


def test_topics_of_the_system_and_of_others(node):
    node.create_topic("__consumer_offsets")
    node.create_topic("theirs", replicas=(1, 2), leader=2)
    assert delete(node, 0, "__consumer_offsets")[0] == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert delete(node, 0, "theirs")[0] == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert delete(node, 0, "nobody")[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def shared_topic(node: TestNode):
    """A topic with a follower that has everything and has deleted nothing."""
    node.register_broker(2, "b", 9092)
    node.create_topic("shared", replicas=(1, 2))
    node.produce(batch(), "shared", acks=1)
    follow(node, log_start_offset=0)


def follow(node: TestNode, log_start_offset: int) -> None:
    fetch = fetch_request(1, "shared", replica_id=2)
    fetch.topics[0].partitions[0].log_start_offset = log_start_offset
    node.send(fetch, 12)


def test_the_reply_waits_until_followers_have_deleted_too(node):
    shared_topic(node)
    reply = node.ask(request(1, "shared"), 2)
    assert not reply.is_here
    follow(node, log_start_offset=1)
    assert (only(reply.message).error_code, only(reply.message).low_watermark) == (0, 1)


def test_a_follower_that_does_not_delete_in_time(node):
    shared_topic(node)
    reply = node.ask(request(1, "shared"), 2)
    node.timers.advance(1000)
    assert only(reply.message).error_code == ErrorCode.REQUEST_TIMED_OUT


def test_the_new_start_survives_a_restart(node):
    from ottla.broker.partitions.background import Background

    delete(node, 2)
    Background(node.broker.partitions, node.broker.world).checkpoint()
    node.logs.close()
    again = TestNode(node.disk, node.image)
    assert again.partition().log.log_start_offset == 2
