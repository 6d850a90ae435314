"""DescribeConfigs, held to all that Apache Kafka 4.3.1 answered on a node with the same settings."""

import json
import logging
from pathlib import Path

import pytest

from ottla.serving.config_entries import java_text
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import ConfigRecord, DescribeConfigsRequest
from tests.unit.broker.brokers import TestNode

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
KAFKA = json.loads(Path(__file__).with_name("kafka_described_configs.json").read_text())


def describe(node, *resources, version=4, synonyms=True, documentation=False):
    """Resources are (type, name) or (type, name, keys)."""
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsRequest.DescribeConfigsResource(
                resource_type=type_, resource_name=name, configuration_keys=keys[0] if keys else None
            )
            for type_, name, *keys in resources
        ],
        include_synonyms=synonyms,
        include_documentation=documentation,
    )
    return node.send(request, version).results


def entries(result):
    assert result.error_code == ErrorCode.NONE
    return sorted(
        (
            {
                "name": config.name,
                "value": config.value,
                "read_only": config.read_only,
                "source": config.config_source,
                "sensitive": config.is_sensitive,
                "type": config.config_type,
                "synonyms": [[synonym.name, synonym.value, synonym.source] for synonym in config.synonyms],
            }
            for config in result.configs
        ),
        key=lambda entry: entry["name"],
    )


def given(type_, name, **values):
    return [
        ConfigRecord(resource_type=type_, resource_name=name, name=key.replace("_", "."), value=value)
        for key, value in values.items()
    ]


def node_like_kafkas():
    """The settings of the node that the replies were taken from."""
    node = TestNode(
        listener_security_protocol_map="PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        group_initial_rebalance_delay_ms="0",
        num_partitions="1",
        offsets_topic_replication_factor="1",
        share_coordinator_state_topic_min_isr="1",
        share_coordinator_state_topic_replication_factor="1",
        transaction_state_log_min_isr="1",
        transaction_state_log_replication_factor="1",
    )
    node.create_topic("orders", retention_ms="5000")
    node.commit(
        *given(BROKER, "", min_insync_replicas="1", log_retention_ms="7000", log_roll_ms="700000"),
        *given(BROKER, "1", message_max_bytes="2000000", log_cleanup_policy="compact", log_roll_ms="800000"),
        *given(GROUP, "g", consumer_session_timeout_ms="50000"),
        *given(CLIENT_METRICS, "cm", interval_ms="1000"),
    )
    return node


@pytest.mark.parametrize(
    ("label", "resource"),
    [
        ("topic", (TOPIC, "orders")),
        ("broker", (BROKER, "1")),
        ("cluster", (BROKER, "")),
        ("group", (GROUP, "g")),
        ("client_metrics", (CLIENT_METRICS, "cm")),
    ],
)
def test_every_setting_is_described_as_kafka_does(label, resource):
    (result,) = describe(node_like_kafkas(), resource)
    expected = {entry["name"]: entry for entry in KAFKA[label]}
    described = {entry["name"]: entry for entry in entries(result) if entry["name"] in expected}
    assert described == expected


def test_no_setting_is_described_that_kafka_does_not_have():
    (result,) = describe(node_like_kafkas(), (BROKER, "1"))
    others = {config.name for config in result.configs} - {entry["name"] for entry in KAFKA["broker"]}
    assert others == {"log.dirs", "log.dir", "listeners", "advertised.listeners", "controller.quorum.voters"}


@pytest.mark.parametrize("version", range(1, 5))
def test_every_version_carries_values_and_newer_ones_types_and_documentation(version):
    (result,) = describe(
        node_like_kafkas(), (TOPIC, "orders", ["retention.ms"]), version=version, documentation=version > 2
    )
    (config,) = result.configs
    assert (config.name, config.value, config.config_source) == ("retention.ms", "5000", 1)
    assert config.config_type == (5 if version >= 3 else 0)
    assert bool(config.documentation) == (version >= 3)
    assert [synonym.name for synonym in config.synonyms] == ["retention.ms", "log.retention.ms", "log.retention.hours"]


def test_synonyms_and_documentation_are_for_who_asks():
    (result,) = describe(node_like_kafkas(), (TOPIC, "orders"), synonyms=False)
    assert all(config.synonyms == [] and config.documentation is None for config in result.configs)


def test_keys_pick_settings_and_an_empty_list_of_keys_picks_all():
    some, everything = describe(
        node_like_kafkas(), (TOPIC, "orders", ["retention.ms", "no.such.key"]), (TOPIC, "orders", [])
    )
    assert [config.name for config in some.configs] == ["retention.ms"]
    assert len(everything.configs) == 33


def test_a_weaker_name_in_the_file_gives_the_value_but_is_no_synonym():
    """As in Kafka: of `log.retention.ms` nothing is said until it is given itself."""
    node = TestNode(log_retention_hours="1")
    node.create_topic("orders")
    topic, broker = describe(node, (TOPIC, "orders", ["retention.ms"]), (BROKER, "1", ["log.retention.hours"]))
    (entry,) = entries(topic)
    assert (entry["value"], entry["source"], entry["synonyms"]) == ("3600000", 5, [])
    (entry,) = entries(broker)
    assert entry["synonyms"] == [["log.retention.hours", "1", 4], ["log.retention.hours", "168", 5]]


def test_settings_of_one_listener_stand_before_those_of_all():
    node = TestNode()
    node.commit(
        ConfigRecord(resource_type=BROKER, resource_name="1", name="listener.name.inside.max.connections", value="9")
    )
    (result,) = describe(node, (BROKER, "1", ["listener.name.inside.max.connections"]))
    (entry,) = entries(result)
    assert (entry["value"], entry["read_only"], entry["type"]) == ("9", True, 3)
    assert entry["synonyms"] == [
        ["listener.name.inside.max.connections", "9", 2],
        ["max.connections", "2147483647", 5],
    ]


def test_secrets_and_unknown_settings_are_never_shown():
    node = TestNode(ssl_key_password="hush")
    node.commit(ConfigRecord(resource_type=BROKER, resource_name="1", name="plugin.key", value="hush"))
    (result,) = describe(node, (BROKER, "1", ["ssl.key.password", "plugin.key"]))
    for entry in entries(result):
        assert (entry["value"], entry["sensitive"]) == (None, True)
        assert [value for _, value, _ in entry["synonyms"]] == [None]


@pytest.mark.parametrize(
    ("resource", "error"),
    [
        ((TOPIC, "nope"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ((TOPIC, ""), ErrorCode.INVALID_TOPIC_EXCEPTION),
        ((TOPIC, "bad name"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        ((BROKER, "2"), ErrorCode.INVALID_REQUEST),
        ((BROKER, "x"), ErrorCode.INVALID_REQUEST),
        ((LOGGER, ""), ErrorCode.INVALID_REQUEST),
        ((LOGGER, "3"), ErrorCode.INVALID_REQUEST),
        ((CLIENT_METRICS, ""), ErrorCode.INVALID_REQUEST),
        ((GROUP, ""), ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_cannot_be_described_is_refused_and_the_rest_goes_on(resource, error):
    refused, described = describe(node_like_kafkas(), resource, (TOPIC, "orders"))
    assert (refused.error_code, refused.resource_type, refused.resource_name) == (error, *resource)
    assert refused.configs == []
    assert described.error_code == ErrorCode.NONE


def test_an_unknown_type_of_resource_spoils_the_whole_request():
    results = describe(node_like_kafkas(), (3, "1"), (TOPIC, "orders"))
    assert [result.error_code for result in results] == [ErrorCode.INVALID_REQUEST] * 2


def test_a_group_that_nobody_knows_has_the_settings_of_its_brokers():
    node = TestNode(group_consumer_session_timeout_ms="46000")
    (result,) = describe(node, (GROUP, "g", ["consumer.session.timeout.ms"]))
    (entry,) = entries(result)
    assert (entry["value"], entry["source"]) == ("46000", 4)


def test_loggers_are_described_with_their_levels(monkeypatch):
    monkeypatch.setattr(logging.root, "level", logging.ERROR)
    (result,) = describe(TestNode(), (LOGGER, "1", ["root"]))
    (entry,) = entries(result)
    assert (entry["value"], entry["source"], entry["read_only"], entry["type"]) == ("ERROR", 6, False, 0)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.5, "0.5"), (1.7976931348623157e308, "1.7976931348623157E308"), (1e-05, "1.0E-5"), (True, "true"), (None, None)],
)
def test_numbers_are_written_as_java_writes_them(value, text):
    assert java_text(value) == text


def test_settings_of_the_authorizer_are_told_if_they_are_given_and_without_their_values():
    """Kafka does not know them, and so takes them for secrets of a plug-in."""
    node = TestNode(super_users="User:admin")
    [told] = [one for one in entries(describe(node, (BROKER, "1"))[0]) if one["name"] == "super.users"]
    assert told == {
        "name": "super.users",
        "value": None,
        "read_only": True,
        "source": 4,
        "sensitive": True,
        "type": 0,
        "synonyms": [["super.users", None, 4]],
    }
    names = {one["name"] for one in entries(describe(TestNode(), (BROKER, "1"))[0])}
    assert not names & {"super.users", "allow.everyone.if.no.acl.found"}
