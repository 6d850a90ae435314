"""DescribeCluster, held to what Apache Kafka 4.3.1 answered to the same requests."""

import pytest

from ottla.wire.errors import ErrorCode
from ottla.wire.messages import DescribeClusterRequest
from tests.unit.broker.brokers import TestNode


def node_with_two_brokers():
    node = TestNode()
    node.register_broker(2, "broker-2", 9092, fenced=True)
    node.register_broker(1, "broker-1", 9092)
    return node


def brokers(reply):
    return [(broker.broker_id, broker.host, broker.port, broker.is_fenced) for broker in reply.brokers]


@pytest.mark.parametrize("version", range(3))
def test_the_cluster_is_described_in_every_version(version):
    reply = node_with_two_brokers().send(DescribeClusterRequest(), version)
    assert (reply.error_code, reply.cluster_id, reply.controller_id) == (ErrorCode.NONE, "the-cluster", 1)
    assert brokers(reply) == [(1, "broker-1", 9092, False)]
    assert reply.cluster_authorized_operations == -(2**31)


def test_fenced_brokers_are_shown_on_request():
    reply = node_with_two_brokers().send(DescribeClusterRequest(include_fenced_brokers=True), 2)
    assert brokers(reply) == [(1, "broker-1", 9092, False), (2, "broker-2", 9092, True)]


def test_authorized_operations_are_told_to_who_asks():
    reply = TestNode().send(DescribeClusterRequest(include_cluster_authorized_operations=True), 0)
    assert reply.cluster_authorized_operations == 8096


@pytest.mark.parametrize(
    ("endpoint_type", "error"),
    [
        (0, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
        (2, ErrorCode.MISMATCHED_ENDPOINT_TYPE),
        (3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
    ],
)
def test_only_brokers_are_found_at_a_brokers_endpoint(endpoint_type, error):
    reply = node_with_two_brokers().send(DescribeClusterRequest(endpoint_type=endpoint_type), 2)
    assert (reply.error_code, reply.cluster_id, reply.brokers, reply.controller_id) == (error, "", [], -1)
    assert reply.error_message
