"""Requests that the controller decides: they reach it whole, and its answer or its absence reaches the client."""

import pytest
from brokers import TestNode

from ottla.wire import messages as m
from ottla.wire.errors import ErrorCode

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


class Recorder:
    """Stands for a controller that is asked to decide."""

    def __getattr__(self, name):
        return lambda request, *rest, **more: (name, request)


@pytest.mark.parametrize("name", REQUESTS)
def test_the_controller_decides_and_its_answer_is_the_reply(name):
    request, version = REQUESTS[name]
    node = TestNode()
    node.controller.replies.append(response_to(request))
    reply = node.send(request, version)
    assert type(reply) is type(response_to(request))
    (decide,) = node.controller.decisions
    asked, passed_on = decide(Recorder(), 0)
    assert asked == name
    assert type(passed_on) is type(request)
    assert len(node.timers) == 0


@pytest.mark.parametrize("name", REQUESTS)
def test_a_controller_that_cannot_be_asked_is_the_reply(name):
    request, version = REQUESTS[name]
    node = TestNode()
    node.controller.replies.append(NOT_CONTROLLER)
    assert errors(name, node.send(request, version)) == [NOT_CONTROLLER]


@pytest.mark.parametrize("name", TIMED)
def test_a_request_waits_as_long_as_its_client_and_the_late_answer_is_dropped(name):
    request, version = REQUESTS[name]
    node = TestNode()
    node.controller.is_held = True
    node.controller.replies.append(response_to(request))
    reply = node.ask(request, version)
    node.timers.advance(99)
    assert not reply.is_here
    node.timers.advance(1)
    assert errors(name, reply.message) == [TIMED_OUT]
    node.controller.let_go()


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_a_request_whose_time_is_up_is_not_begun(timeout_ms):
    node = TestNode()
    request = m.CreateTopicsRequest(topics=[m.CreateTopicsRequest.CreatableTopic(name="a")], timeout_ms=timeout_ms)
    assert errors("create_topics", node.send(request, 7)) == [TIMED_OUT]
    assert node.controller.decisions == []


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


@pytest.mark.parametrize(("version", "error"), [(1, ErrorCode.INVALID_REQUEST), (3, ErrorCode.TOPIC_DELETION_DISABLED)])
def test_a_node_may_forbid_to_delete_topics(version, error):
    node = TestNode(delete_topic_enable="false")
    reply = node.send(m.DeleteTopicsRequest(topic_names=["a"], timeout_ms=100), version)
    assert errors("delete_topics", reply) == [error]
    assert node.controller.decisions == []


def test_an_election_of_no_known_type_is_an_invalid_request():
    request = m.ElectLeadersRequest(
        election_type=5,
        topic_partitions=[m.ElectLeadersRequest.TopicPartitions(topic="a", partitions=(0,))],
        timeout_ms=9,
    )
    reply = TestNode().send(request, 2)
    assert (reply.error_code, errors("elect_leaders", reply)) == (
        ErrorCode.INVALID_REQUEST,
        [ErrorCode.INVALID_REQUEST],
    )
