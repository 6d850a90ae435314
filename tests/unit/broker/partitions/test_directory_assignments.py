"""The controller is told where replicas are (KIP-858)."""

import pytest

from ottla.base.ids import Uuid
from ottla.machines.metadata.image.directory_ids import UNASSIGNED
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import AssignReplicasToDirsResponse
from tests.unit.broker.brokers import TestNode, topic_id_of

ONE, TWO = Uuid(b"1" * 16), Uuid(b"2" * 16)


def told(node: TestNode) -> list[dict[Uuid, dict[Uuid, list[int]]]]:
    """What each request said: partitions by topic by directory."""
    asked = node.controller.asked
    assert all((request.broker_id, request.broker_epoch) == (1, 7) for request in asked)
    return [
        {
            directory.id: {
                topic.topic_id: [one.partition_index for one in topic.partitions] for topic in directory.topics
            }
            for directory in request.directories
        }
        for request in asked
    ]


@pytest.fixture
def node() -> TestNode:
    node = TestNode(log_dirs=("/one", "/two"), directory_ids={"/one": ONE, "/two": TWO})
    node.broker.identity.broker_epoch = 7
    node.controller.replies = [AssignReplicasToDirsResponse()] * 3
    return node


def test_the_choice_among_several_directories_is_told_in_one_request(node):
    node.create_topic("orders", partitions=4, directories=(UNASSIGNED,))
    node.timers.advance(10)
    (request,) = told(node)
    assert {ONE: {topic_id_of("orders"): [0, 2]}, TWO: {topic_id_of("orders"): [1, 3]}} == request


def test_a_replica_goes_where_the_metadata_says_and_nothing_needs_telling(node):
    node.create_topic("orders", partitions=2, directories=(TWO,))
    node.timers.advance(1000)
    assert {node.partition(index=index).directory for index in range(2)} == {"/two"}
    assert told(node) == []


def test_what_the_controller_does_not_take_is_told_again(node):
    stale = AssignReplicasToDirsResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
    node.controller.replies = [ErrorCode.NOT_CONTROLLER, stale, AssignReplicasToDirsResponse()]
    node.create_topic("orders", directories=(UNASSIGNED,))
    node.timers.advance(2000)
    assert told(node) == [{ONE: {topic_id_of("orders"): [0]}}] * 3
    assert len(node.timers) == 0


def test_a_cluster_that_does_not_know_of_directories_is_not_asked_again(node):
    node.controller.replies = [AssignReplicasToDirsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)]
    node.create_topic("orders", directories=(UNASSIGNED,))
    node.timers.advance(2000)
    assert len(told(node)) == 1


def test_a_broker_tells_once_it_is_registered(node):
    node.broker.identity.broker_epoch = -1
    node.create_topic("orders", directories=(UNASSIGNED,))
    node.timers.advance(1000)
    assert node.controller.asked == []
    node.broker.identity.broker_epoch = 7
    node.timers.advance(1000)
    assert len(told(node)) == 1


def test_an_assignment_waits_for_the_one_before_it_which_may_be_asked_anew(node):
    """Of the next controller, that is, if the first one dies: it would then be the last that the cluster hears."""
    node.controller.is_held = True
    node.create_topic("orders", directories=(UNASSIGNED,))
    node.timers.advance(1000)
    node.broker.directory_assignments.assign(node.partition(), TWO, lambda: None)
    node.timers.advance(60_000)
    assert told(node) == [{ONE: {topic_id_of("orders"): [0]}}]
    node.controller.let_go()
    node.timers.advance(1000)
    assert told(node)[1:] == [{TWO: {topic_id_of("orders"): [0]}}]
