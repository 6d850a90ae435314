"""What a node is told to be, and what it says to settings that do not fit together."""

import pytest

from ottla.config.parse import ConfigError
from ottla.node.config import read_config

COMBINED = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "1@127.0.0.1:9093",
    "log.dirs": "/data/a,/data/b",
}


def config(**changes: str | None):
    properties = COMBINED | {key.replace("_", "."): value for key, value in changes.items()}
    return read_config({key: value for key, value in properties.items() if value is not None})


def test_a_combined_node():
    node = config()
    assert (node.node_id, node.is_broker, node.is_controller) == (1, True, True)
    assert [(listener.name, listener.for_controllers) for listener in node.listeners] == [
        ("PLAINTEXT", False),
        ("CONTROLLER", True),
    ]
    assert node.inter_broker_listener == "PLAINTEXT"
    assert (node.log_dirs, node.metadata_log_dir) == (("/data/a", "/data/b"), "/data/a")


def test_directories_have_older_names_and_metadata_may_have_one_of_its_own():
    node = config(log_dirs=None, log_dir="/old", metadata_log_dir="/meta")
    assert (node.log_dirs, node.metadata_log_dir) == (("/old",), "/meta")


def test_a_quorum_may_be_found_by_its_servers():
    assert config(controller_quorum_voters=None, controller_quorum_bootstrap_servers="127.0.0.1:9093").node_id == 1


def test_a_node_may_be_a_controller_alone():
    node = config(process_roles="controller", listeners="CONTROLLER://127.0.0.1:9093")
    assert (node.is_broker, node.inter_broker_listener) == (False, "")


@pytest.mark.parametrize("name", ["INTERNAL", "internal"])
def test_brokers_reach_each_other_by_the_listener_that_is_named(name):
    node = config(
        listeners="PLAINTEXT://:9092,INTERNAL://:9094,CONTROLLER://:9093",
        listener_security_protocol_map="PLAINTEXT:PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
        inter_broker_listener_name=name,
    )
    assert node.inter_broker_listener == "INTERNAL"


def test_what_nobody_knows_is_warned_of():
    assert [warned.key for warned in config(nobody_knows="1").warnings] == ["nobody.knows"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"broker_id": "2"}, "broker.id=2: it must be the same as node.id (1), or left out"),
        ({"controller_listener_names": None}, "controller.listener.names is missing"),
        (
            {"listeners": "PLAINTEXT://:9092"},
            "listeners=PLAINTEXT://:9092: it must be complete: a controller listens on CONTROLLER",
        ),
        (
            {"listeners": "CONTROLLER://:9093"},
            "listeners=CONTROLLER://:9093: it must be more than the controllers' (CONTROLLER) for a broker",
        ),
        (
            {"controller_quorum_voters": None},
            "controller.quorum.voters=: it must be given, or controller.quorum.bootstrap.servers",
        ),
        (
            {"controller_quorum_voters": "1@a:9093,1@b:9093"},
            "controller.quorum.voters=1@a:9093,1@b:9093: it must be a list in which no id is twice",
        ),
        (
            {"controller_quorum_voters": "2@a:9093"},
            "node.id=1: it must be among controller.quorum.voters=2@a:9093, as a controller",
        ),
        (
            {"controller_quorum_voters": "a@b:9093"},
            "controller.quorum.voters=a@b:9093: it must be a list of id@host:port",
        ),
        ({"controller_quorum_voters": "1@b"}, "controller.quorum.voters=1@b: it must be a list of id@host:port"),
        (
            {"process_roles": "broker", "listeners": "PLAINTEXT://:9092"},
            "process.roles=broker: it must be with controller: node 1 is in controller.quorum.voters",
        ),
        (
            {"inter_broker_listener_name": "OTHER"},
            "inter.broker.listener.name=OTHER: it must be one of the listeners PLAINTEXT",
        ),
        (
            {"advertised_listeners": "OTHER://host:1"},
            "advertised.listeners=OTHER://host:1: it must be for one of the listeners CONTROLLER, PLAINTEXT",
        ),
        (
            {"advertised_listeners": "PLAINTEXT://0.0.0.0:1"},
            "advertised.listeners=PLAINTEXT://0.0.0.0:1: it must be an address that others can connect to",
        ),
        (
            {"group_consumer_heartbeat_interval_ms": "1000"},
            "group.consumer.heartbeat.interval.ms=1000: "
            "it must be at least group.consumer.min.heartbeat.interval.ms (5000)",
        ),
        (
            {"group_share_session_timeout_ms": "70000"},
            "group.share.session.timeout.ms=70000: it must be no more than group.share.max.session.timeout.ms (60000)",
        ),
        (
            {"group_consumer_max_session_timeout_ms": "46000", "group_consumer_min_session_timeout_ms": "45001"},
            "group.consumer.session.timeout.ms=45000: "
            "it must be at least group.consumer.min.session.timeout.ms (45001)",
        ),
        (
            {"group_consumer_min_session_timeout_ms": "1000", "group_consumer_session_timeout_ms": "5000"},
            "group.consumer.heartbeat.interval.ms=5000: it must be less than group.consumer.session.timeout.ms (5000)",
        ),
        ({"node_id": None}, "node.id is missing"),
        ({"process_roles": "king"}, "process.roles=king: it must be "),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_what_does_not_fit_is_told_in_a_line(changes, message):
    with pytest.raises(ConfigError) as refused:
        config(**changes)
    assert str(refused.value).startswith(message)
    assert "\n" not in str(refused.value)


def test_all_settings_that_are_wrong_by_themselves_are_told_at_once():
    with pytest.raises(ConfigError) as refused:
        config(node_id="x", broker_heartbeat_interval_ms="y")
    assert {problem.key for problem in refused.value.problems} == {"node.id", "broker.heartbeat.interval.ms"}
