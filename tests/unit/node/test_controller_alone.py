"""A node that is a controller alone (`process.roles=controller`): it answers on its listener, and needs no broker."""

import pytest

from ottla.apis.table import served_by_controllers
from ottla.wire import messages as m
from ottla.wire.errors import ErrorCode
from tests.unit.node.whole_nodes import ALONE, COMBINED, PORT, WholeNode

CONTROLLERS = 2
BROKER = 4


def create(name: str) -> m.CreateTopicsRequest:
    topics = [m.CreateTopicsRequest.CreatableTopic(name=name, num_partitions=1, replication_factor=1)]
    return m.CreateTopicsRequest(topics=topics, timeout_ms=1000)


def change(name: str, value: str, broker: str = "") -> m.IncrementalAlterConfigsRequest:
    request = m.IncrementalAlterConfigsRequest
    config = request.AlterableConfig(name=name, value=value)
    return request(
        resources=[request.AlterConfigsResource(resource_type=BROKER, resource_name=broker, configs=[config])]
    )


@pytest.fixture
def alone() -> WholeNode:
    return WholeNode(ALONE)


def test_it_advertises_what_controllers_serve(alone: WholeNode) -> None:
    reply = alone.ask(m.ApiVersionsRequest(client_software_name="x", client_software_version="1"), 4)
    assert {api.api_key for api in reply.api_keys} == set(served_by_controllers())
    assert {feature.name for feature in reply.finalized_features} >= {"metadata.version"}


def test_it_leads_a_quorum_of_one(alone: WholeNode) -> None:
    topic = m.DescribeQuorumRequest.TopicData(
        topic_name="__cluster_metadata", partitions=[m.DescribeQuorumRequest.PartitionData(partition_index=0)]
    )
    (partition,) = alone.ask(m.DescribeQuorumRequest(topics=[topic]), 2).topics[0].partitions
    assert (partition.error_code, partition.leader_id) == (ErrorCode.NONE, 1)
    assert [voter.replica_id for voter in partition.current_voters] == [1]


def test_it_describes_itself(alone: WholeNode) -> None:
    reply = alone.ask(m.DescribeClusterRequest(endpoint_type=CONTROLLERS), 2)
    assert (reply.error_code, reply.controller_id) == (ErrorCode.NONE, 1)
    assert [one.broker_id for one in reply.brokers] == [1]


def test_without_brokers_it_has_no_place_for_replicas(alone: WholeNode) -> None:
    (topic,) = alone.ask(create("orders"), 7).topics
    assert topic.error_code == ErrorCode.INVALID_REPLICATION_FACTOR


def test_a_broker_of_another_process_makes_a_place(alone: WholeNode) -> None:
    cluster_id = alone.ask(m.DescribeClusterRequest(endpoint_type=CONTROLLERS), 2).cluster_id
    registration = m.BrokerRegistrationRequest(
        broker_id=5,
        cluster_id=cluster_id,
        incarnation_id=b"i" * 16,
        listeners=[m.BrokerRegistrationRequest.Listener(name="PLAINTEXT", host="there", port=9092)],
        features=[
            m.BrokerRegistrationRequest.Feature(name=name, min_supported_version=0, max_supported_version=level)
            for name, level in (
                ("metadata.version", 30),
                ("kraft.version", 1),
                ("transaction.version", 2),
                ("group.version", 1),
                ("eligible.leader.replicas.version", 1),
            )
        ],
        log_dirs=[b"d" * 16],
    )
    registered = alone.ask(registration, 4)
    assert registered.error_code == ErrorCode.NONE
    beat = m.BrokerHeartbeatRequest(
        broker_id=5, broker_epoch=registered.broker_epoch, current_metadata_offset=1 << 40, want_fence=False
    )
    assert not alone.ask(beat, 1).is_fenced
    (topic,) = alone.ask(create("orders"), 7).topics
    assert topic.error_code == ErrorCode.NONE


def test_what_it_decided_is_there_after_a_restart(alone: WholeNode) -> None:
    alone.ask(change("log.cleaner.threads", "2"), 1)
    alone.stop()
    again = WholeNode(ALONE, alone.disk)
    resource = m.DescribeConfigsRequest.DescribeConfigsResource(resource_type=BROKER, resource_name="")
    (result,) = again.ask(m.DescribeConfigsRequest(resources=[resource]), 4).results
    assert [(config.name, config.value) for config in result.configs if config.name.startswith("log")] == [
        ("log.cleaner.threads", "2")
    ]


def test_settings_that_are_given_at_run_time_count(alone: WholeNode) -> None:
    alone.ask(change("max.connections.per.ip", "1"), 1)
    first, second = alone.connect(), alone.connect()
    alone.network.run()
    assert (first.is_closed, second.is_closed) == (False, True)


def test_it_makes_no_logs_and_has_its_own_metrics(alone: WholeNode) -> None:
    page = "".join(alone.node.metrics_page())
    assert "kafka_controller_kafkacontroller_activecontrollercount 1" in page
    assert "kafka_server_brokertopicmetrics" not in page
    alone.stop()
    assert not alone.ended
    assert [name for name in alone.disk.list_dir("/data") if alone.disk.is_dir(f"/data/{name}")] == [
        "__cluster_metadata-0"
    ]


def test_a_combined_node_answers_on_both() -> None:
    node = WholeNode(COMBINED)
    (topic,) = node.ask(create("orders"), 7, PORT).topics
    assert topic.error_code == ErrorCode.NONE
    (again,) = node.ask(create("orders"), 7).topics
    assert again.error_code == ErrorCode.TOPIC_ALREADY_EXISTS
    node.stop()
