"""OffsetForLeaderEpoch: where epochs ended."""

import pytest

from ottla.wire.errors import ErrorCode
from ottla.wire.messages import OffsetForLeaderEpochRequest
from tests.unit.broker.brokers import TestNode, batch, only


@pytest.fixture
def node() -> TestNode:
    """Epoch 0 wrote offset 0, epoch 2 offsets 1 and 2; now it is epoch 4."""
    node = TestNode()
    node.create_topic("orders", replicas=(1, 2), isr=(1,))
    node.produce(batch())
    for leader in (2, 1):
        node.change_partition(leader=leader)
    node.produce(batch(b"a", b"b"))
    for leader in (2, 1):
        node.change_partition(leader=leader)
    return node


def end_of(node: TestNode, epoch: int, *, topic: str = "orders", current: int = -1, version: int = 4):
    partition = OffsetForLeaderEpochRequest.OffsetForLeaderPartition(
        partition=0, leader_epoch=epoch, current_leader_epoch=current
    )
    topics = [OffsetForLeaderEpochRequest.OffsetForLeaderTopic(topic=topic, partitions=[partition])]
    answer = only(node.send(OffsetForLeaderEpochRequest(replica_id=-1, topics=topics), version))
    return answer.error_code, answer.leader_epoch, answer.end_offset


@pytest.mark.parametrize("version", [2, 3, 4])
def test_an_epoch_ends_where_the_next_one_began(node, version):
    assert end_of(node, 0, version=version) == (0, 0, 1)
    assert end_of(node, 2, version=version) == (0, 2, 3)


def test_the_current_epoch_ends_with_the_log(node):
    assert end_of(node, 4) == (0, 4, 3)


def test_an_epoch_that_wrote_nothing_here_is_answered_with_the_one_before(node):
    assert end_of(node, 1) == (0, 0, 1)
    assert end_of(node, 3) == (0, 2, 3)


def test_an_epoch_of_the_future_is_unknown(node):
    assert end_of(node, 9) == (0, -1, -1)


def test_who_is_behind_or_ahead_of_the_leader_is_told(node):
    assert end_of(node, 0, current=3)[0] == ErrorCode.FENCED_LEADER_EPOCH
    assert end_of(node, 0, current=5)[0] == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert end_of(node, 0, current=4)[0] == ErrorCode.NONE


def test_partitions_that_are_not_here(node):
    node.create_topic("theirs", replicas=(1, 2), leader=2)
    assert end_of(node, 0, topic="theirs")[0] == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert end_of(node, 0, topic="nobody") == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)
