"""The listeners of controllers (KIP-919), held to what Apache Kafka 4.3.1's answered to the same requests."""

import pytest

from ottla.apis.table import APIS, served_by_controllers
from ottla.base.ids import Uuid
from ottla.controller.controller_apis import find_handler
from ottla.runtime.channels import THIS_NODE
from ottla.runtime.request import ClientConnection, RefusedRequest
from ottla.wire.apis import ApiKey, all_apis, api
from ottla.wire.errors import ErrorCode
from ottla.wire.frame import request_type, response_type
from ottla.wire.messages import (
    AlterConfigsRequest,
    ApiVersionsRequest,
    AssignReplicasToDirsRequest,
    BrokerRegistrationChangeRecord,
    DescribeClusterRequest,
    DescribeDelegationTokenRequest,
    IncrementalAlterConfigsRequest,
    ListConfigResourcesRequest,
    MetadataRequest,
)
from tests.unit.broker.admin_node import DIRECTORY, AdminNode
from tests.unit.broker.brokers import NODE_ID, batch, produce_request

TOPIC, BROKER, LOGGER = 2, 4, 8
NO_TYPE = 3
ANY_ENDPOINT, BROKERS, CONTROLLERS = 0, 1, 2


@pytest.fixture
def node():
    node = AdminNode(controller_listener_names="CONTROLLER")
    node.client = ClientConnection(1, "CONTROLLER", "127.0.0.1")
    node.create_topics("orders")
    return node


def change(*resources):
    request = IncrementalAlterConfigsRequest
    return request(
        resources=[
            request.AlterConfigsResource(
                resource_type=type, resource_name=name, configs=[request.AlterableConfig(name=key, value=value)]
            )
            for type, name, key, value in resources
        ]
    )


def outcomes(reply):
    return {(of.resource_type, of.resource_name): ErrorCode(of.error_code).name for of in reply.responses}


@pytest.mark.parametrize("key", served_by_controllers(), ids=lambda key: key.name.lower())
def test_every_row_has_its_handler(key, node):
    for version in api(key).stable_versions:
        assert callable(find_handler(node.server, key, version))


# A whole quorum answers these: see tests/unit/runtime/metadata/test_quorum.py.
OF_RAFT = {ApiKey.FETCH, ApiKey.VOTE, ApiKey.BEGIN_QUORUM_EPOCH, ApiKey.END_QUORUM_EPOCH, ApiKey.FETCH_SNAPSHOT}
OF_VOTERS = {ApiKey.ADD_RAFT_VOTER, ApiKey.REMOVE_RAFT_VOTER, ApiKey.UPDATE_RAFT_VOTER}
ANSWERED = [row.key for row in APIS.values() if row.controller and not row.controller.takes_connection]


@pytest.mark.parametrize(
    "key", [key for key in ANSWERED if key not in OF_RAFT | OF_VOTERS], ids=lambda key: key.name.lower()
)
def test_every_version_is_answered_on_the_listener_and_through_a_channel(key, node):
    """Empty requests, most of which are refused: what counts is that there is a reply that can be sent."""
    for version in api(key).stable_versions:
        request = request_type(key)()
        if hasattr(request, "timeout_ms"):
            request.timeout_ms = 1000
        if key is ApiKey.DESCRIBE_ACLS:  # An empty one is of no known kind, and hung up on.
            request.resource_type_filter = request.operation = request.permission_type = 1
        assert isinstance(node.send(request, version), response_type(key))
        replies = []
        node.broker.controller.ask(request, version, THIS_NODE, replies.append, replies.append)
        assert [type(reply) for reply in replies] == [response_type(key)]


def test_what_kafkas_controllers_serve_is_served():
    of_controllers = {key for key, api in all_apis().items() if "controller" in api.listeners}
    assert set(served_by_controllers()) == of_controllers


@pytest.mark.parametrize("version", [1, 2, 3])
def test_tokens_are_shown_by_brokers_and_not_by_controllers(node, version):
    """As Apache Kafka's controllers answer."""
    reply = node.send(DescribeDelegationTokenRequest(owners=None), version)
    assert (reply.error_code, reply.tokens) == (ErrorCode.UNKNOWN_SERVER_ERROR, [])


def test_what_the_machine_decides_is_served():
    decided = {row.key for row in APIS.values() if row.decision is not None}
    assert decided
    assert decided <= set(ANSWERED)


def test_only_that_is_advertised(node):
    reply = node.send(ApiVersionsRequest(client_software_name="x", client_software_version="1"), 4)
    assert {api.api_key for api in reply.api_keys} == set(served_by_controllers())
    assert reply.supported_features


@pytest.mark.parametrize(
    ("request_", "version"),
    [(MetadataRequest(topics=None), 12), (produce_request(batch()), 12), (ListConfigResourcesRequest(), 1)],
    ids=["metadata", "produce", "list config resources"],
)
def test_what_is_for_brokers_is_refused(node, request_, version):
    with pytest.raises(RefusedRequest):
        node.send(request_, version)


def test_controllers_are_described_with_their_addresses_on_the_listener(node):
    reply = node.send(DescribeClusterRequest(endpoint_type=CONTROLLERS), 1)
    assert (reply.error_code, reply.endpoint_type, reply.cluster_id) == (ErrorCode.NONE, CONTROLLERS, "the-cluster")
    assert reply.controller_id == 2
    assert [(one.broker_id, one.host, one.port) for one in reply.brokers] == [(1, "one", 9093), (2, "two", 9093)]


@pytest.mark.parametrize(
    ("endpoint_type", "version", "error"),
    [
        (BROKERS, 1, ErrorCode.MISMATCHED_ENDPOINT_TYPE),
        (BROKERS, 0, ErrorCode.INVALID_REQUEST),  # a client that knows of no endpoint types
        (ANY_ENDPOINT, 1, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
        (3, 2, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
    ],
)
def test_brokers_are_not_described_here(node, endpoint_type, version, error):
    request = DescribeClusterRequest(endpoint_type=endpoint_type) if version else DescribeClusterRequest()
    reply = node.send(request, version)
    assert (reply.error_code, reply.brokers) == (error, [])
    assert reply.error_message


def test_settings_of_any_registered_broker_are_taken(node):
    node.register_broker(5, "five", 9092)
    node.log.controller.replay(*node_records(node, 5))
    threads = ("log.cleaner.threads", "2")
    reply = node.send(change((BROKER, "1", *threads), (BROKER, "5", *threads), (BROKER, "", *threads)), 1)
    assert set(outcomes(reply).values()) == {"NONE"}
    assert node.image.configs.of_broker(5) == {"log.cleaner.threads": "2"}


def node_records(node, broker_id):
    return [record for record in node.image.brokers.records(30) if record.broker_id == broker_id]


def test_each_resource_has_one_answer(node):
    reply = node.send(
        change(
            (BROKER, "9", "log.cleaner.threads", "2"),
            (BROKER, "x", "log.cleaner.threads", "2"),
            (LOGGER, "2", "root", "INFO"),
            (NO_TYPE, "y", "a", "b"),
            (TOPIC, "orders", "retention.ms", "5"),
            (TOPIC, "orders", "retention.ms", "6"),
            (TOPIC, "nobody", "retention.ms", "6"),
        ),
        1,
    )
    assert len(reply.responses) == 6
    assert outcomes(reply) == {
        (BROKER, "9"): "BROKER_ID_NOT_REGISTERED",
        (BROKER, "x"): "INVALID_REQUEST",
        (LOGGER, "2"): "INVALID_REQUEST",
        (NO_TYPE, "y"): "UNSUPPORTED_VERSION",
        (TOPIC, "orders"): "INVALID_REQUEST",
        (TOPIC, "nobody"): "UNKNOWN_TOPIC_OR_PARTITION",
    }


def test_settings_are_replaced_with_the_older_request(node):
    config = AlterConfigsRequest.AlterableConfig(name="log.cleaner.threads", value="3")
    resource = AlterConfigsRequest.AlterConfigsResource(resource_type=BROKER, resource_name="1", configs=[config])
    assert outcomes(node.send(AlterConfigsRequest(resources=[resource]), 2)) == {(BROKER, "1"): "NONE"}
    assert node.image.configs.of_broker(1) == {"log.cleaner.threads": "3"}


def test_a_lost_controller_is_told(node):
    node.log.is_away = True
    reply = node.send(change((BROKER, "1", "log.cleaner.threads", "2")), 1)
    assert outcomes(reply) == {(BROKER, "1"): "NOT_CONTROLLER"}


# Directories


def assign(node, directory, topic_id, broker_epoch=-1):
    request = AssignReplicasToDirsRequest
    partitions = [request.PartitionData(partition_index=index) for index in (0, 9)]
    topics = [request.TopicData(topic_id=topic_id, partitions=partitions)]
    directories = [request.DirectoryData(id=directory, topics=topics)]
    return node.send(request(broker_id=NODE_ID, broker_epoch=broker_epoch, directories=directories), 0)


def test_a_broker_tells_where_it_has_put_a_replica(node):
    other = Uuid(b"o" * 16)
    broker = node.image.brokers.by_id[NODE_ID]
    node.commit(
        BrokerRegistrationChangeRecord(broker_id=NODE_ID, broker_epoch=broker.epoch, log_dirs=[DIRECTORY, other])
    )
    topic = node.image.topics.by_name["orders"]
    reply = assign(node, other, topic.id, broker.epoch)
    (directory,) = reply.directories
    errors = [partition.error_code for partition in directory.topics[0].partitions]
    assert errors == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert node.image.topics.by_name["orders"].partitions[0].directory(NODE_ID) == other


def test_a_broker_of_another_life_is_not_heard(node):
    topic = node.image.topics.by_name["orders"]
    reply = assign(node, DIRECTORY, topic.id, node.image.brokers.by_id[NODE_ID].epoch + 1)
    assert reply.error_code == ErrorCode.STALE_BROKER_EPOCH
