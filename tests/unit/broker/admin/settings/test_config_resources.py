"""ListConfigResources, held to what Apache Kafka 4.3.1 answered to the same requests."""

import pytest

from ottla.wire.errors import ErrorCode
from ottla.wire.messages import ConfigRecord, ListConfigResourcesRequest
from tests.unit.broker.brokers import TestNode

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32


def resources(node, *types, version=1):
    reply = node.send(ListConfigResourcesRequest(resource_types=types), version)
    assert reply.error_code == ErrorCode.NONE
    return [(resource.resource_type, resource.resource_name) for resource in reply.config_resources]


def node_with_resources():
    node = TestNode()
    node.register_broker(1, "broker-1", 9092)
    node.create_topic("a")
    node.commit(
        ConfigRecord(resource_type=GROUP, resource_name="g", name="consumer.session.timeout.ms", value="50000"),
        ConfigRecord(resource_type=CLIENT_METRICS, resource_name="cm", name="interval.ms", value="1000"),
        ConfigRecord(resource_type=BROKER, resource_name="", name="log.retention.ms", value="7"),
    )
    return node


def test_no_types_are_all_types():
    assert resources(node_with_resources()) == [
        (GROUP, "g"),
        (CLIENT_METRICS, "cm"),
        (LOGGER, "1"),
        (BROKER, "1"),
        (TOPIC, "a"),
    ]


def test_resources_are_listed_by_type():
    assert resources(node_with_resources(), TOPIC) == [(TOPIC, "a")]
    assert resources(node_with_resources(), BROKER, GROUP, BROKER) == [(BROKER, "1"), (GROUP, "g")]


def test_version_0_lists_client_metrics():
    assert resources(node_with_resources(), version=0) == [(CLIENT_METRICS, "cm")]


@pytest.mark.parametrize("types", [(3,), (TOPIC, 99), (0,)])
def test_an_unknown_type_is_not_supported(types):
    reply = node_with_resources().send(ListConfigResourcesRequest(resource_types=types), 1)
    assert (reply.error_code, reply.config_resources) == (ErrorCode.UNSUPPORTED_VERSION, [])
