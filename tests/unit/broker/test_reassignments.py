"""ListPartitionReassignments, from the committed metadata."""

import pytest
from brokers import TestNode

from ottla.wire.errors import ErrorCode
from ottla.wire.messages import ListPartitionReassignmentsRequest as Request


def node_that_moves_a_partition():
    node = TestNode()
    node.create_topic("still")
    node.create_topic("moving", 2)
    node.change_partition("moving", 1, replicas=(1, 2), adding_replicas=(2,), removing_replicas=(1,))
    return node


@pytest.mark.parametrize(
    ("topics", "expected"),
    [
        (None, [("moving", 1, (1, 2), (2,), (1,))]),
        ([], []),
        ([("moving", (0, 1, 7)), ("nope", (0,))], [("moving", 1, (1, 2), (2,), (1,))]),
        ([("moving", (0,)), ("still", (0,))], []),
    ],
)
def test_partitions_that_move_are_listed_and_what_does_not_exist_is_left_out(topics, expected):
    asked = None
    if topics is not None:
        asked = [Request.ListPartitionReassignmentsTopics(name=name, partition_indexes=of) for name, of in topics]
    reply = node_that_moves_a_partition().send(Request(topics=asked, timeout_ms=100), 0)
    assert reply.error_code == ErrorCode.NONE
    assert [
        (topic.name, part.partition_index, part.replicas, part.adding_replicas, part.removing_replicas)
        for topic in reply.topics
        for part in topic.partitions
    ] == expected
