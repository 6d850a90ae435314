"""Metadata, held to what Apache Kafka 4.3.1 answered to the same requests."""

import pytest

from ottla.runtime.channels import Caller
from ottla.runtime.request import ClientConnection
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import CreateTopicsRequest, CreateTopicsResponse, MetadataRequest, RegisterBrokerRecord
from tests.unit.broker.brokers import TestNode, topic_id_of

Asked = MetadataRequest.MetadataRequestTopic
UNKNOWN_ID = b"x" * 16


def names(*topics, **fields):
    return MetadataRequest(topics=[Asked(name=name) for name in topics], **fields)


def ids(*topic_ids):
    return MetadataRequest(topics=[Asked(name=None, topic_id=topic_id) for topic_id in topic_ids])


def node_with_topics(**settings):
    node = TestNode(**settings)
    endpoint = RegisterBrokerRecord.BrokerEndpoint(name="PLAINTEXT", host="broker-1", port=9092)
    node.commit(RegisterBrokerRecord(broker_id=1, end_points=[endpoint], fenced=False, rack="rack-1"))
    node.create_topic("a")
    node.create_topic("b", 3)
    return node


def errors(reply):
    return {topic.name: topic.error_code for topic in reply.topics}


def wanted_of_controller(node):
    return node.controller.asked


@pytest.mark.parametrize("version", range(14))
def test_a_topic_is_described_in_every_version(version):
    reply = node_with_topics().send(names("b"), version)
    (topic,) = reply.topics
    assert (topic.error_code, topic.name, topic.is_internal) == (ErrorCode.NONE, "b", False)
    assert [partition.partition_index for partition in topic.partitions] == [0, 1, 2]
    first = topic.partitions[0]
    assert (first.error_code, first.leader_id, first.replica_nodes, first.isr_nodes) == (0, 1, (1,), (1,))
    assert first.leader_epoch == (0 if version >= 7 else -1)
    assert topic.topic_id == (topic_id_of("b") if version >= 10 else bytes(16))
    assert [(broker.node_id, broker.host, broker.port, broker.rack) for broker in reply.brokers] == [
        (1, "broker-1", 9092, "rack-1" if version >= 1 else None)
    ]
    assert reply.cluster_id == ("the-cluster" if version >= 2 else None)
    assert reply.controller_id == (1 if version >= 1 else -1)


def test_all_topics_are_asked_for_with_null_and_in_version_0_with_nothing():
    node = node_with_topics()
    assert list(errors(node.send(MetadataRequest(topics=[]), 0))) == ["a", "b"]
    assert list(errors(node.send(MetadataRequest(topics=None), 1))) == ["a", "b"]
    assert node.send(MetadataRequest(topics=[]), 1).topics == []


def test_topics_are_found_by_id_and_unknown_ids_come_first():
    reply = node_with_topics().send(ids(topic_id_of("b"), UNKNOWN_ID), 12)
    assert [(topic.name, topic.topic_id, topic.error_code) for topic in reply.topics] == [
        (None, UNKNOWN_ID, ErrorCode.UNKNOWN_TOPIC_ID),
        ("b", topic_id_of("b"), ErrorCode.NONE),
    ]


def test_who_names_one_topic_by_id_names_all_of_them_so():
    request = MetadataRequest(topics=[Asked(name="a"), Asked(name="a", topic_id=topic_id_of("b"))])
    assert list(errors(node_with_topics().send(request, 12))) == ["b"]


@pytest.mark.parametrize(
    ("topic", "version", "error"),
    [
        (Asked(name=None), 10, ErrorCode.INVALID_REQUEST),
        (Asked(name="a", topic_id=UNKNOWN_ID), 11, ErrorCode.INVALID_REQUEST),
        (Asked(name=None), 12, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_a_topic_without_a_usable_name_spoils_the_whole_request(topic, version, error):
    reply = node_with_topics().send(MetadataRequest(topics=[topic, Asked(name="b")]), version)
    assert [(topic.name, topic.error_code, topic.partitions) for topic in reply.topics] == [
        (topic.name or "", error, []),
        ("b", error, []),
    ]
    assert (reply.brokers, reply.cluster_id, reply.controller_id) == ([], None, -1)


def test_a_topic_that_is_asked_for_twice_comes_once_and_missing_ones_come_last():
    reply = node_with_topics().send(names("nope", "a", "a", "b", allow_auto_topic_creation=False), 12)
    assert [(topic.name, topic.error_code) for topic in reply.topics] == [
        ("a", ErrorCode.NONE),
        ("b", ErrorCode.NONE),
        ("nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]


@pytest.mark.parametrize("name", ["", ".", "..", "bad name", "x" * 250, "caf\u00e9"])
def test_a_name_that_no_topic_can_have_is_invalid_and_never_created(name):
    node = node_with_topics()
    assert errors(node.send(names(name), 12)) == {name: ErrorCode.INVALID_TOPIC_EXCEPTION}
    assert node.controller.asked == []


def test_a_missing_topic_is_created_once_while_the_client_is_told_to_ask_again():
    node = node_with_topics(num_partitions="4")
    node.controller.is_held = True
    node.controller.replies.append(CreateTopicsResponse())
    for _ in range(2):
        assert errors(node.send(names("new", "new"), 12)) == {"new": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    (request,) = wanted_of_controller(node)
    assert [(topic.name, topic.num_partitions, topic.replication_factor) for topic in request.topics] == [("new", 4, 1)]
    node.controller.let_go()
    node.create_topic("new")
    assert errors(node.send(names("new"), 12)) == {"new": ErrorCode.NONE}


def test_a_topic_is_created_on_behalf_of_the_client_that_mentions_it():
    node = node_with_topics()
    node.client = ClientConnection(1, "PLAINTEXT", "10.1.2.3", principal="User:ann")
    node.controller.replies.append(CreateTopicsResponse())
    node.send(names("new"), 12)
    assert node.controller.callers == [Caller("User:ann", "10.1.2.3")]


def test_a_topic_whose_creation_failed_is_tried_again():
    node = node_with_topics()
    node.controller.replies += [ErrorCode.NOT_CONTROLLER, CreateTopicsResponse()]
    node.send(names("new"), 12)
    node.send(names("new"), 12)
    assert len(node.controller.asked) == 2


def test_nothing_is_created_against_the_will_of_the_client_or_the_node():
    node = node_with_topics()
    node.send(names("new", allow_auto_topic_creation=False), 12)
    assert node.controller.asked == []
    node = node_with_topics(auto_create_topics_enable="false")
    node.send(names("new"), 12)
    assert node.controller.asked == []


@pytest.mark.parametrize(
    ("name", "partitions", "configs"),
    [
        (
            "__transaction_state",
            50,
            {
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "min.insync.replicas": "2",
                "segment.bytes": "104857600",
                "unclean.leader.election.enable": "false",
            },
        ),
        (
            "__share_group_state",
            50,
            {
                "cleanup.policy": "delete",
                "compression.type": "producer",
                "min.insync.replicas": "2",
                "retention.ms": "-1",
                "segment.bytes": "104857600",
            },
        ),
        (
            "__consumer_offsets",
            50,
            {"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": "104857600"},
        ),
    ],
)
def test_internal_topics_are_created_as_their_coordinators_need_them(name, partitions, configs):
    node = node_with_topics()
    node.controller.replies.append(CreateTopicsResponse())
    (topic,) = node.send(names(name), 12).topics
    assert (topic.error_code, topic.is_internal) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, True)
    ((wanted,),) = [request.topics for request in wanted_of_controller(node)]
    assert isinstance(wanted, CreateTopicsRequest.CreatableTopic)
    assert (wanted.num_partitions, wanted.replication_factor) == (partitions, 3)
    assert {config.name: config.value for config in wanted.configs} == configs


def test_authorized_operations_are_told_to_who_asks():
    node = node_with_topics()
    reply = node.send(names("a"), 10)
    assert (reply.cluster_authorized_operations, reply.topics[0].topic_authorized_operations) == (-(2**31), -(2**31))
    asked = names("a", include_cluster_authorized_operations=True, include_topic_authorized_operations=True)
    reply = node.send(asked, 10)
    assert (reply.cluster_authorized_operations, reply.topics[0].topic_authorized_operations) == (8096, 3576)


def test_a_partition_without_a_leader_is_not_available_yet():
    node = node_with_topics()
    node.change_partition("a", 0, leader=-1)
    (partition,) = node.send(names("a"), 12).topics[0].partitions
    assert partition.error_code == ErrorCode.LEADER_NOT_AVAILABLE
    assert (partition.leader_id, partition.leader_epoch) == (-1, 1)


def test_a_leader_without_the_clients_listener_cannot_be_found():
    node = node_with_topics()
    inside = RegisterBrokerRecord.BrokerEndpoint(name="INSIDE", host="broker-2", port=9093)
    node.commit(RegisterBrokerRecord(broker_id=2, end_points=[inside], fenced=False))
    node.create_topic("c", replicas=(2,), leader=2)
    for version, error in ((5, ErrorCode.LEADER_NOT_AVAILABLE), (6, ErrorCode.LISTENER_NOT_FOUND)):
        (partition,) = node.send(names("c"), version).topics[0].partitions
        assert (partition.error_code, partition.leader_id, partition.offline_replicas) == (error, -1, (2,))
    node.client.listener = "INSIDE"
    reply = node.send(names("c"), 12)
    assert reply.topics[0].partitions[0].leader_id == 2
    assert [(broker.node_id, broker.host, broker.port) for broker in reply.brokers] == [(2, "broker-2", 9093)]
    assert reply.controller_id == 2


def test_a_fenced_broker_takes_its_replicas_offline():
    node = node_with_topics()
    node.register_broker(2, "broker-2", 9092, fenced=True)
    node.create_topic("c", replicas=(1, 2), isr=(1,))
    reply = node.send(names("c"), 12)
    assert [broker.node_id for broker in reply.brokers] == [1]
    (partition,) = reply.topics[0].partitions
    assert (partition.error_code, partition.replica_nodes, partition.offline_replicas) == (0, (1, 2), (2,))


def test_version_0_leaves_out_replicas_that_are_gone_and_says_so():
    node = node_with_topics()
    node.create_topic("c", replicas=(1, 2), isr=(1,))
    (partition,) = node.send(names("c"), 0).topics[0].partitions
    assert (partition.error_code, partition.replica_nodes) == (ErrorCode.REPLICA_NOT_AVAILABLE, (1,))


def test_a_replica_in_a_failed_directory_is_offline():
    node = TestNode()
    works, failed = b"w" * 16, b"f" * 16
    endpoint = RegisterBrokerRecord.BrokerEndpoint(name="PLAINTEXT", host="broker-1", port=9092)
    node.commit(RegisterBrokerRecord(broker_id=1, end_points=[endpoint], fenced=False, log_dirs=(works,)))
    node.create_topic("a")
    node.change_partition("a", 0, directories=(failed,))
    (partition,) = node.send(names("a"), 12).topics[0].partitions
    assert partition.offline_replicas == (1,)


def test_what_was_described_before_is_described_anew_when_it_changes():
    node = node_with_topics()
    asked = names("a", allow_auto_topic_creation=False)
    node.send(asked, 12)
    node.change_partition("a", 0, leader=1)
    assert node.send(asked, 12).topics[0].partitions[0].leader_epoch == 1
    node.delete_topic("a")
    assert errors(node.send(asked, 12)) == {"a": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    node.create_topic("a", 2)
    assert len(node.send(asked, 12).topics[0].partitions) == 2
    node.register_broker(1, "broker-1", 9092, fenced=True)
    assert node.send(asked, 12).topics[0].partitions[0].offline_replicas == (1,)
