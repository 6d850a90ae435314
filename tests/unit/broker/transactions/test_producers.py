"""Producer ids are given out, and partitions tell whom they remember."""

import pytest

from ottla.wire.errors import ErrorCode
from ottla.wire.messages import (
    AllocateProducerIdsResponse,
    DescribeProducersRequest,
    InitProducerIdRequest,
)
from tests.unit.broker.brokers import NOW_MS, TestNode, produced


def init(transactional_id: str | None = None, producer_id: int = -1, producer_epoch: int = -1) -> InitProducerIdRequest:
    return InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=60_000,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )


def block(start: int, size: int = 1000) -> AllocateProducerIdsResponse:
    return AllocateProducerIdsResponse(producer_id_start=start, producer_id_len=size)


@pytest.fixture
def node() -> TestNode:
    return TestNode()


@pytest.mark.parametrize("version", range(6))
def test_an_idempotent_producer_gets_an_id_of_its_own(node, version):
    node.controller.replies = [block(4000)]
    replies = [node.send(init(), version) for _ in range(2)]
    assert [(reply.error_code, reply.producer_id, reply.producer_epoch) for reply in replies] == [
        (0, 4000, 0),
        (0, 4001, 0),
    ]
    assert len(node.controller.asked) == 1


def test_a_used_up_block_is_followed_by_another(node):
    node.controller.replies = [block(0, 2), block(2000, 2)]
    assert [node.send(init(), 5).producer_id for _ in range(4)] == [0, 1, 2000, 2001]


def test_requests_that_find_no_block_wait_for_one(node):
    node.controller.is_held = True
    node.controller.replies = [block(0, 2), block(10, 2)]
    replies = [node.ask(init(), 5) for _ in range(3)]
    assert not any(reply.is_here for reply in replies)
    node.controller.let_go()
    assert [reply.message.producer_id for reply in replies] == [0, 1, 10]


@pytest.mark.parametrize(
    "answer", [ErrorCode.NOT_CONTROLLER, AllocateProducerIdsResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)]
)
def test_without_a_controller_a_client_is_to_try_again(node, answer):
    node.controller.replies = [answer, block(7)]
    reply = node.send(init(), 5)
    assert (reply.error_code, reply.producer_id) == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, -1)
    assert node.send(init(), 5).producer_id == 7


@pytest.mark.parametrize("request_", [init(producer_id=5), init(producer_epoch=5), init(transactional_id="")])
def test_requests_that_make_no_sense(node, request_):
    assert node.send(request_, 5).error_code == ErrorCode.INVALID_REQUEST


def test_a_transactional_producer_is_sent_to_its_coordinator(node):
    assert node.send(init("mine"), 5).error_code == ErrorCode.NOT_COORDINATOR


# DescribeProducers


def describe(node: TestNode, topic: str, *indexes: int):
    topics = [DescribeProducersRequest.TopicRequest(name=topic, partition_indexes=indexes or (0,))]
    (answer,) = node.send(DescribeProducersRequest(topics=topics), 0).topics[0].partitions
    return answer


def test_the_producers_of_a_partition(node):
    node.create_topic()
    node.produce(produced(7, 3, b"a", b"b", epoch=2))
    node.partition().append_as_leader(produced(8, 0, transactional=True))
    first, second = describe(node, "orders").active_producers
    assert (first.producer_id, first.producer_epoch, first.last_sequence) == (7, 2, 4)
    assert (first.last_timestamp, first.coordinator_epoch, first.current_txn_start_offset) == (NOW_MS, -1, -1)
    assert (second.producer_id, second.current_txn_start_offset) == (8, 2)


@pytest.mark.parametrize(
    ("topic", "error"),
    [("nobody", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), ("no such name!", ErrorCode.INVALID_TOPIC_EXCEPTION)],
)
def test_topics_that_do_not_exist(node, topic, error):
    assert describe(node, topic).error_code == error
