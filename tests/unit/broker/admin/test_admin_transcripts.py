"""Admin requests from the client to the controller and back, and what the next client then sees.

Expected values are the replies of a single Apache Kafka 4.3.1 node to the same requests.
"""

import pytest

from ottla.wire import messages as m
from ottla.wire.errors import ErrorCode as E
from tests.unit.broker.admin_node import AdminNode

TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)

Creatable = m.CreateTopicsRequest.CreatableTopic


def create(node, *topics, version=7, **fields):
    reply = node.send(m.CreateTopicsRequest(topics=list(topics), timeout_ms=1000, **fields), version)
    return {topic.name: topic for topic in reply.topics}


def topic(name, partitions=1, replication_factor=1, assignments=(), **configs):
    return Creatable(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        assignments=[
            m.CreateTopicsRequest.CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
            for index, brokers in assignments
        ],
        configs=[
            m.CreateTopicsRequest.CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ],
    )


def described(node, name):
    """The partitions that a client sees, and the error."""
    asked = m.MetadataRequest(
        topics=[m.MetadataRequest.MetadataRequestTopic(name=name)], allow_auto_topic_creation=False
    )
    (found,) = node.send(asked, 12).topics
    return len(found.partitions), found.error_code


def setting(node, type_, name, key):
    """A value and its source, as DescribeConfigs tells them."""
    resource = m.DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=type_, resource_name=name, configuration_keys=[key]
    )
    (result,) = node.send(m.DescribeConfigsRequest(resources=[resource]), 4).results
    return [(config.value, config.config_source) for config in result.configs]


def alter(node, type_, name, *changes, **fields):
    resource = m.IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=type_,
        resource_name=name,
        configs=[
            m.IncrementalAlterConfigsRequest.AlterableConfig(name=key, config_operation=operation, value=value)
            for key, operation, value in changes
        ],
    )
    (result,) = node.send(m.IncrementalAlterConfigsRequest(resources=[resource], **fields), 1).responses
    return result.error_code


# Topics


def test_a_created_topic_is_seen_by_the_next_client_and_gone_when_it_is_deleted():
    node = AdminNode()
    created = create(node, topic("orders", 3, retention_ms="5000"))["orders"]
    assert (created.error_code, created.num_partitions, created.replication_factor) == (E.NONE, 3, 1)
    settings = {config.name: (config.value, config.config_source) for config in created.configs}
    assert len(settings) == 33
    assert (settings["retention.ms"], settings["segment.bytes"]) == (("5000", 1), ("1073741824", 5))
    assert described(node, "orders") == (3, E.NONE)
    assert setting(node, TOPIC, "orders", "retention.ms") == [("5000", 1)]
    by_id = m.DeleteTopicsRequest.DeleteTopicState(name=None, topic_id=created.topic_id)
    (deleted,) = node.send(m.DeleteTopicsRequest(topics=[by_id], timeout_ms=1000), 6).responses
    assert (deleted.name, deleted.topic_id, deleted.error_code) == ("orders", created.topic_id, E.NONE)
    assert described(node, "orders") == (0, E.UNKNOWN_TOPIC_OR_PARTITION)


def test_validating_a_topic_creates_none():
    node = AdminNode()
    assert create(node, topic("orders", 2), validate_only=True)["orders"].error_code == E.NONE
    assert described(node, "orders") == (0, E.UNKNOWN_TOPIC_OR_PARTITION)


def test_a_topic_gets_the_nodes_defaults_for_what_it_does_not_say():
    node = AdminNode(num_partitions="4")
    created = create(node, topic("orders", -1, -1))["orders"]
    assert (created.num_partitions, created.replication_factor) == (4, 1)


@pytest.mark.parametrize("version", range(2, 8))
def test_topics_are_created_in_every_version(version):
    node = AdminNode()
    assert create(node, topic("orders", 2), version=version)["orders"].error_code == E.NONE
    assert described(node, "orders") == (2, E.NONE)


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        (topic("known"), E.TOPIC_ALREADY_EXISTS),
        (topic("new", 0), E.INVALID_PARTITIONS),
        (topic("new", 1, 5), E.INVALID_REPLICATION_FACTOR),
        (topic("new", 2, 1, [(0, (1,))]), E.INVALID_REQUEST),
        (topic("new", no_such_key="1"), E.INVALID_CONFIG),
        (topic("new", retention_ms=None), E.INVALID_CONFIG),
        (topic("__cluster_metadata"), E.INVALID_REQUEST),
        (topic("bad name"), E.INVALID_TOPIC_EXCEPTION),
    ],
)
def test_a_topic_that_cannot_be_created_is_refused_and_the_others_are_made(wanted, error):
    node = AdminNode()
    node.create_topics("known")
    results = create(node, wanted, topic("other"))
    assert (results[wanted.name].error_code, results["other"].error_code) == (error, E.NONE)


def test_a_topic_that_is_named_twice_is_not_created():
    results = create(AdminNode(), topic("d"), topic("d"), topic("e"))
    assert {name: result.error_code for name, result in results.items()} == {"e": E.NONE, "d": E.INVALID_REQUEST}


def test_partitions_are_added_and_never_taken_away():
    node = AdminNode()
    node.create_topics("a")

    def grow(count, **fields):
        wanted = m.CreatePartitionsRequest.CreatePartitionsTopic(name="a", count=count, assignments=None)
        (result,) = node.send(m.CreatePartitionsRequest(topics=[wanted], timeout_ms=1000, **fields), 3).results
        return result.error_code

    assert grow(3, validate_only=True) == E.NONE
    assert described(node, "a") == (1, E.NONE)
    assert grow(2) == E.NONE
    assert described(node, "a") == (2, E.NONE)
    assert (grow(2), grow(1)) == (E.INVALID_PARTITIONS, E.INVALID_PARTITIONS)


def test_a_topic_that_a_client_asks_for_is_created_for_its_next_question():
    node = AdminNode(num_partitions="2")
    asked = m.MetadataRequest(topics=[m.MetadataRequest.MetadataRequestTopic(name="new")])
    assert [found.error_code for found in node.send(asked, 12).topics] == [E.UNKNOWN_TOPIC_OR_PARTITION]
    assert described(node, "new") == (2, E.NONE)


# Settings


def test_a_topics_settings_are_set_appended_subtracted_and_removed():
    node = AdminNode()
    node.create_topics("a")
    assert alter(node, TOPIC, "a", ("cleanup.policy", APPEND, "compact")) == E.NONE
    assert setting(node, TOPIC, "a", "cleanup.policy") == [("delete,compact", 1)]
    assert alter(node, TOPIC, "a", ("cleanup.policy", SUBTRACT, "delete")) == E.NONE
    assert setting(node, TOPIC, "a", "cleanup.policy") == [("compact", 1)]
    assert alter(node, TOPIC, "a", ("cleanup.policy", DELETE, None)) == E.NONE
    assert setting(node, TOPIC, "a", "cleanup.policy") == [("delete", 5)]


def test_settings_of_all_brokers_and_of_one_reach_the_node_and_its_topics_without_a_restart():
    node = AdminNode()
    node.create_topics("a")
    assert alter(node, BROKER, "", ("log.retention.ms", SET, "7000")) == E.NONE
    assert setting(node, TOPIC, "a", "retention.ms") == [("7000", 3)]
    assert alter(node, BROKER, "1", ("log.retention.ms", SET, "8000")) == E.NONE
    assert setting(node, TOPIC, "a", "retention.ms") == [("8000", 2)]
    assert node.broker.config["log.retention.ms"] == 8000
    assert alter(node, BROKER, "1", ("log.retention.ms", DELETE, None)) == E.NONE
    assert setting(node, BROKER, "1", "log.retention.ms") == [("7000", 3)]


def test_the_old_api_replaces_all_settings():
    node = AdminNode()
    create(node, topic("a", retention_ms="5000"))
    wanted = m.AlterConfigsRequest.AlterConfigsResource(
        resource_type=TOPIC,
        resource_name="a",
        configs=[m.AlterConfigsRequest.AlterableConfig(name="segment.ms", value="9")],
    )
    (result,) = node.send(m.AlterConfigsRequest(resources=[wanted]), 2).responses
    assert result.error_code == E.NONE
    assert setting(node, TOPIC, "a", "retention.ms") == [("604800000", 5)]
    assert setting(node, TOPIC, "a", "segment.ms") == [("9", 1)]


def test_groups_and_client_metrics_have_settings_too():
    node = AdminNode()
    assert alter(node, GROUP, "g", ("consumer.session.timeout.ms", SET, "50000")) == E.NONE
    assert setting(node, GROUP, "g", "consumer.session.timeout.ms") == [("50000", 8)]
    assert alter(node, CLIENT_METRICS, "cm", ("interval.ms", SET, "1000")) == E.NONE
    assert setting(node, CLIENT_METRICS, "cm", "interval.ms") == [("1000", 7)]
    listed = node.send(m.ListConfigResourcesRequest(resource_types=(GROUP, CLIENT_METRICS)), 1).config_resources
    assert [(each.resource_type, each.resource_name) for each in listed] == [(GROUP, "g"), (CLIENT_METRICS, "cm")]


@pytest.mark.parametrize(
    ("type_", "name", "change", "error"),
    [
        (TOPIC, "a", ("retention.ms", SET, "x"), E.INVALID_CONFIG),
        (TOPIC, "a", ("nope", SET, "x"), E.INVALID_CONFIG),
        (TOPIC, "nope", ("retention.ms", SET, "1"), E.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "", ("retention.ms", SET, "1"), E.INVALID_REQUEST),
        (TOPIC, "a", ("retention.ms", APPEND, "5"), E.INVALID_CONFIG),
        (TOPIC, "a", ("retention.ms", SET, None), E.INVALID_REQUEST),
        (TOPIC, "a", ("nope", DELETE, None), E.NONE),
        (BROKER, "", ("log.roll.hours", SET, "5"), E.INVALID_REQUEST),
        (BROKER, "1", ("plugin.key", SET, "5"), E.NONE),
        (BROKER, "", ("listener.security.protocol.map", SET, "A:PLAINTEXT"), E.INVALID_REQUEST),
        (BROKER, "1", ("log.cleaner.threads", SET, "abc"), E.INVALID_REQUEST),
        (BROKER, "1", ("log.cleaner.threads", APPEND, "5"), E.INVALID_CONFIG),
        (BROKER, "1", ("log.cleaner.threads", 9, "5"), E.INVALID_REQUEST),
        (BROKER, "1", ("log.cleanup.policy", APPEND, "compact"), E.NONE),
        (BROKER, "1", ("log.cleanup.policy", SET, "zz"), E.INVALID_REQUEST),
        (3, "1", ("a", SET, "2"), E.INVALID_REQUEST),
        (CLIENT_METRICS, "cm", ("interval.ms", SET, "1"), E.INVALID_REQUEST),
        (CLIENT_METRICS, "cm", ("zz", SET, "1"), E.INVALID_REQUEST),
        (CLIENT_METRICS, "", ("interval.ms", SET, "1000"), E.INVALID_REQUEST),
        (GROUP, "g", ("consumer.session.timeout.ms", SET, "1"), E.INVALID_CONFIG),
        (GROUP, "g", ("zz", SET, "1"), E.INVALID_CONFIG),
        (GROUP, "", ("consumer.session.timeout.ms", SET, "50000"), E.INVALID_REQUEST),
    ],
)
def test_a_change_of_settings_gets_kafkas_code(type_, name, change, error):
    node = AdminNode()
    node.create_topics("a")
    assert alter(node, type_, name, change) == error


# Quotas, features, leaders, replicas, brokers


def test_quotas_are_stored_and_shown():
    node = AdminNode()
    entity = [m.AlterClientQuotasRequest.EntityData(entity_type="user", entity_name="u")]
    op = m.AlterClientQuotasRequest.OpData(key="producer_byte_rate", value=1000.0)
    entry = m.AlterClientQuotasRequest.EntryData(entity=entity, ops=[op])
    (result,) = node.send(m.AlterClientQuotasRequest(entries=[entry]), 1).entries
    assert result.error_code == E.NONE
    (shown,) = node.send(m.DescribeClientQuotasRequest(), 1).entries
    assert [(value.key, value.value) for value in shown.values] == [("producer_byte_rate", 1000.0)]


@pytest.mark.parametrize(
    ("feature", "level", "upgrade_type", "error"),
    [
        ("group.version", 1, 1, E.NONE),
        ("zz", 1, 1, E.INVALID_UPDATE_VERSION),
        ("metadata.version", 99, 1, E.INVALID_UPDATE_VERSION),
        ("group.version", 0, 1, E.INVALID_UPDATE_VERSION),
        ("group.version", -1, 1, E.INVALID_UPDATE_VERSION),
        ("group.version", 1, 7, E.INVALID_UPDATE_VERSION),
        ("group.version", 0, 2, E.NONE),
    ],
)
def test_feature_levels_are_updated_and_advertised(feature, level, upgrade_type, error):
    node = AdminNode()
    update = m.UpdateFeaturesRequest.FeatureUpdateKey(
        feature=feature, max_version_level=level, upgrade_type=upgrade_type
    )
    reply = node.send(m.UpdateFeaturesRequest(timeout_ms=1000, feature_updates=[update]), 2)
    assert (reply.error_code, reply.results) == (error, [])
    finalized = {each.name: each.max_version_level for each in node.send(m.ApiVersionsRequest(), 0).finalized_features}
    assert finalized == {}, "version 0 has no features"
    asked = m.ApiVersionsRequest(client_software_name="c", client_software_version="1")
    finalized = {each.name: each.max_version_level for each in node.send(asked, 3).finalized_features}
    assert finalized.get("group.version", 0) == (level if error == E.NONE else 1)


def test_of_a_feature_that_is_named_twice_the_last_counts():
    """As in Kafka, whose controller makes a map of them; and a hundred thousand of one feature are one."""
    node = AdminNode()
    key = m.UpdateFeaturesRequest.FeatureUpdateKey
    updates = [
        key(feature="group.version", max_version_level=99, upgrade_type=1),
        key(feature="group.version", max_version_level=1, upgrade_type=1),
    ]
    reply = node.send(m.UpdateFeaturesRequest(timeout_ms=1000, feature_updates=updates), 1)
    assert (reply.error_code, [result.feature for result in reply.results]) == (E.NONE, ["group.version"])


def test_electing_the_leader_that_leads_is_not_needed():
    node = AdminNode()
    node.create_topics("a")
    asked = [
        m.ElectLeadersRequest.TopicPartitions(topic="a", partitions=(0, 7)),
        m.ElectLeadersRequest.TopicPartitions(topic="nope", partitions=(0,)),
    ]
    reply = node.send(m.ElectLeadersRequest(topic_partitions=asked, timeout_ms=1000), 2)
    outcome = [
        (each.topic, part.partition_id, part.error_code)
        for each in reply.replica_election_results
        for part in each.partition_result
    ]
    assert outcome == [
        ("a", 0, E.ELECTION_NOT_NEEDED),
        ("a", 7, E.UNKNOWN_TOPIC_OR_PARTITION),
        ("nope", 0, E.UNKNOWN_TOPIC_OR_PARTITION),
    ]


@pytest.mark.parametrize(
    ("replicas", "error"),
    [
        ((1,), E.NONE),
        ((2,), E.INVALID_REPLICA_ASSIGNMENT),
        ((), E.INVALID_REPLICA_ASSIGNMENT),
        ((1, 1), E.INVALID_REPLICA_ASSIGNMENT),
        (None, E.NO_REASSIGNMENT_IN_PROGRESS),
    ],
)
def test_replicas_can_only_be_where_a_broker_is(replicas, error):
    node = AdminNode()
    node.create_topics("a")
    partition = m.AlterPartitionReassignmentsRequest.ReassignablePartition(partition_index=0, replicas=replicas)
    moved = m.AlterPartitionReassignmentsRequest.ReassignableTopic(name="a", partitions=[partition])
    reply = node.send(m.AlterPartitionReassignmentsRequest(timeout_ms=1000, topics=[moved]), 1)
    assert reply.responses[0].partitions[0].error_code == error
    listed = node.send(m.ListPartitionReassignmentsRequest(timeout_ms=1000), 0)
    assert (listed.error_code, listed.topics) == (E.NONE, [])


def test_a_broker_that_nobody_knows_cannot_be_forgotten():
    reply = AdminNode().send(m.UnregisterBrokerRequest(broker_id=9), 0)
    assert reply.error_code == E.BROKER_ID_NOT_REGISTERED
