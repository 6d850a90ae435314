"""Requests that the controller decides: they reach it whole, and its answer or its absence reaches the client."""

import pytest

from ottla.runtime.channels import Caller
from ottla.runtime.request import ClientConnection
from ottla.wire import messages as m
from ottla.wire.errors import ErrorCode
from tests.unit.broker.admin_node import AdminNode
from tests.unit.broker.brokers import TestNode

TIMED_OUT, NOT_CONTROLLER = ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_CONTROLLER

REQUESTS = {
    "create_topics": (
        m.CreateTopicsRequest(topics=[m.CreateTopicsRequest.CreatableTopic(name="a")], timeout_ms=100),
        7,
    ),
    "delete_topics": (
        m.DeleteTopicsRequest(topics=[m.DeleteTopicsRequest.DeleteTopicState(name="a")], timeout_ms=100),
        6,
    ),
    "create_partitions": (
        m.CreatePartitionsRequest(
            topics=[m.CreatePartitionsRequest.CreatePartitionsTopic(name="a", count=2, assignments=None)],
            timeout_ms=100,
        ),
        3,
    ),
    "elect_leaders": (
        m.ElectLeadersRequest(
            topic_partitions=[m.ElectLeadersRequest.TopicPartitions(topic="a", partitions=(0,))], timeout_ms=100
        ),
        2,
    ),
    "alter_partition_reassignments": (m.AlterPartitionReassignmentsRequest(timeout_ms=100), 1),
    "list_partition_reassignments": (m.ListPartitionReassignmentsRequest(timeout_ms=100), 0),
    "update_features": (m.UpdateFeaturesRequest(timeout_ms=100), 2),
    "unregister_broker": (m.UnregisterBrokerRequest(broker_id=9), 0),
}
TIMED = sorted(REQUESTS.keys() - {"unregister_broker"})

ERRORS_OF = {
    "create_topics": lambda reply: [topic.error_code for topic in reply.topics],
    "delete_topics": lambda reply: [topic.error_code for topic in reply.responses],
    "create_partitions": lambda reply: [topic.error_code for topic in reply.results],
    "elect_leaders": lambda reply: [
        part.error_code for topic in reply.replica_election_results for part in topic.partition_result
    ],
}


def errors(name, reply):
    return ERRORS_OF.get(name, lambda reply: [reply.error_code])(reply)


def response_to(request):
    return getattr(m, type(request).__name__.replace("Request", "Response"))()


@pytest.mark.parametrize("name", REQUESTS)
def test_the_controller_is_asked_as_the_client_asked_and_its_answer_is_the_reply(name):
    request, version = REQUESTS[name]
    node = TestNode()
    node.client = ClientConnection(1, "PLAINTEXT", "10.1.2.3", principal="User:ann")
    node.controller.replies.append(response_to(request))
    assert node.send(request, version) == response_to(request)
    assert node.controller.asked == [request]
    assert node.controller.callers == [Caller("User:ann", "10.1.2.3")]


@pytest.mark.parametrize("name", REQUESTS)
def test_a_controller_that_cannot_be_asked_is_the_reply(name):
    request, version = REQUESTS[name]
    node = TestNode()
    node.controller.replies.append(NOT_CONTROLLER)
    assert errors(name, node.send(request, version)) == [NOT_CONTROLLER]


def test_every_version_of_a_forwarded_request_has_its_refusal():
    for name, (request, latest) in REQUESTS.items():
        for version in range(latest + 1):
            if version not in request._schema.versions:
                continue
            node = TestNode()
            node.controller.replies.append(NOT_CONTROLLER)
            if name == "delete_topics" and version < 6:
                asked = m.DeleteTopicsRequest(topic_names=["a"], timeout_ms=100)
            elif name == "create_topics" and version < 4:
                topic = m.CreateTopicsRequest.CreatableTopic(name="a", num_partitions=1, replication_factor=1)
                asked = m.CreateTopicsRequest(topics=[topic], timeout_ms=100)
            else:
                asked = request
            assert NOT_CONTROLLER in errors(name, node.send(asked, version)), (name, version)


# Answered by a controller in the same process, whose messages cross a wire all the same


@pytest.mark.parametrize("listener", ["PLAINTEXT", "CONTROLLER"])
@pytest.mark.parametrize("name", TIMED)
def test_a_request_waits_as_long_as_its_client_and_the_late_answer_is_dropped(name, listener):
    request, version = REQUESTS[name]
    node = AdminNode()
    node.client = ClientConnection(1, listener, "127.0.0.1")
    node.log.hold()
    reply = node.ask(request, version)
    node.timers.advance(99)
    assert not reply.is_here
    node.timers.advance(1)
    assert errors(name, reply.message) == [TIMED_OUT]
    node.log.let_go()


@pytest.mark.parametrize("name", TIMED)
def test_a_request_that_is_answered_waits_no_longer(name):
    request, version = REQUESTS[name]
    node = AdminNode()
    node.send(request, version)
    assert len(node.timers) == 0


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_a_request_whose_time_is_up_is_not_begun(timeout_ms):
    node = AdminNode()
    request = m.CreateTopicsRequest(topics=[m.CreateTopicsRequest.CreatableTopic(name="a")], timeout_ms=timeout_ms)
    assert errors("create_topics", node.send(request, 7)) == [TIMED_OUT]
    assert node.log.asked == 0


@pytest.mark.parametrize("listener", ["PLAINTEXT", "CONTROLLER"])
@pytest.mark.parametrize("name", REQUESTS)
def test_a_controller_that_is_not_the_active_one_is_the_reply(name, listener):
    request, version = REQUESTS[name]
    node = AdminNode()
    node.client = ClientConnection(1, listener, "127.0.0.1")
    node.log.is_away = True
    assert errors(name, node.send(request, version)) == [NOT_CONTROLLER]


@pytest.mark.parametrize(("version", "error"), [(1, ErrorCode.INVALID_REQUEST), (3, ErrorCode.TOPIC_DELETION_DISABLED)])
def test_a_controller_may_forbid_to_delete_topics(version, error):
    node = AdminNode(delete_topic_enable="false")
    node.create_topics("a")
    reply = node.send(m.DeleteTopicsRequest(topic_names=["a"], timeout_ms=100), version)
    assert errors("delete_topics", reply) == [error]
    assert "a" in node.image.topics.by_name


@pytest.mark.parametrize("version", [1, 2])
def test_an_election_of_no_known_type_is_an_invalid_request(version):
    request = m.ElectLeadersRequest(
        election_type=5,
        topic_partitions=[m.ElectLeadersRequest.TopicPartitions(topic="a", partitions=(0,))],
        timeout_ms=9,
    )
    reply = AdminNode().send(request, version)
    assert errors("elect_leaders", reply) == [ErrorCode.INVALID_REQUEST]
    assert reply.error_code == ErrorCode.INVALID_REQUEST
