"""Partitions that a client makes or removes, held to its limit (KIP-599)."""

import pytest

from ottla.machines.metadata.image.quotas_image import quota_record
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest
from tests.unit.broker.admin_node import AdminNode

CreatableTopic = CreateTopicsRequest.CreatableTopic
REFUSED = ErrorCode.THROTTLING_QUOTA_EXCEEDED
STRICT, PERMISSIVE = 7, 5
# A bucket of 11 windows of a second: it holds 22 partitions, and 2 come back in each second.
PER_SECOND = 2.0


@pytest.fixture
def node() -> AdminNode:
    node = AdminNode()
    node.commit(quota_record(frozenset({("user", "ANONYMOUS")}), "controller_mutation_rate", PER_SECOND))
    return node


def create(node: AdminNode, version: int, **partitions: int):
    topics = [
        CreatableTopic(name=name, num_partitions=count, replication_factor=1) for name, count in partitions.items()
    ]
    return node.send(CreateTopicsRequest(topics=topics, timeout_ms=1000), version)


def outcomes(reply) -> list[int]:
    return [topic.error_code for topic in reply.topics]


def test_a_strict_client_may_overdraw_its_bucket_once_and_is_refused_then(node: AdminNode) -> None:
    reply = create(node, STRICT, a=20, b=10, c=1)
    assert outcomes(reply) == [ErrorCode.NONE, ErrorCode.NONE, REFUSED]
    assert reply.topics[2].error_message == "The throttling quota has been exceeded."
    assert reply.throttle_time_ms == 4000
    assert set(node.image.topics.by_name) == {"a", "b"}
    node.timers.advance(3999)
    assert outcomes(create(node, STRICT, c=1)) == [REFUSED]
    node.timers.advance(1)
    reply = create(node, STRICT, c=1)
    assert (outcomes(reply), reply.throttle_time_ms) == ([ErrorCode.NONE], 0)


def test_a_permissive_client_is_never_refused_and_waits(node: AdminNode) -> None:
    reply = create(node, PERMISSIVE, a=20, b=10, c=1)
    assert outcomes(reply) == [ErrorCode.NONE] * 3
    assert reply.throttle_time_ms == 4500


def test_a_strict_client_within_its_bucket_does_not_wait(node: AdminNode) -> None:
    assert create(node, STRICT, a=30).throttle_time_ms == 0


def test_partitions_that_are_removed_or_added_count_too(node: AdminNode) -> None:
    create(node, STRICT, a=20, b=1)
    grow = CreatePartitionsRequest.CreatePartitionsTopic
    reply = node.send(CreatePartitionsRequest(topics=[grow(name="b", count=4, assignments=None)], timeout_ms=1000), 3)
    assert reply.results[0].error_code == ErrorCode.NONE
    topics = [DeleteTopicsRequest.DeleteTopicState(name=name) for name in ("a", "b")]
    reply = node.send(DeleteTopicsRequest(topics=topics, timeout_ms=1000), 6)
    assert {topic.error_code for topic in reply.responses} == {REFUSED}
    assert reply.throttle_time_ms == 1000
    assert set(node.image.topics.by_name) == {"a", "b"}
    reply = node.send(DeleteTopicsRequest(topic_names=["a"], timeout_ms=1000), 4)
    assert reply.responses[0].error_code == ErrorCode.NONE
    assert reply.throttle_time_ms == 11_000


def test_what_is_refused_for_another_reason_does_not_count(node: AdminNode) -> None:
    create(node, STRICT, a=20)
    for _ in range(5):
        assert outcomes(create(node, STRICT, a=20)) == [ErrorCode.TOPIC_ALREADY_EXISTS]
    assert outcomes(create(node, STRICT, b=2)) == [ErrorCode.NONE]


def test_a_limit_is_of_the_client_that_asked(node: AdminNode) -> None:
    node.client.principal = "User:other"
    for name in "abc":
        assert outcomes(create(node, STRICT, **{name: 20})) == [ErrorCode.NONE]
    node.commit(quota_record(frozenset({("client-id", "tool")}), "controller_mutation_rate", PER_SECOND))
    topics = [CreatableTopic(name="d", num_partitions=30, replication_factor=1)]
    node.send(CreateTopicsRequest(topics=topics, timeout_ms=1000), STRICT, "tool")
    topics = [CreatableTopic(name="e", num_partitions=1, replication_factor=1)]
    reply = node.send(CreateTopicsRequest(topics=topics, timeout_ms=1000), STRICT, "tool")
    assert outcomes(reply) == [REFUSED]
    assert outcomes(create(node, STRICT, f=1)) == [ErrorCode.NONE]
