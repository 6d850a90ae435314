"""Settings that change while a node runs (KIP-226)."""

from ottla.wire.messages import ConfigRecord
from tests.unit.broker.brokers import TestNode

BROKER = 4


def give(node, name, key, value):
    node.commit(ConfigRecord(resource_type=BROKER, resource_name=name, name=key, value=value))


def test_a_broker_goes_by_its_own_setting_then_by_all_brokers_then_by_the_file():
    node = TestNode(message_max_bytes="1000")
    give(node, "", "message.max.bytes", "2000")
    assert node.broker.config["message.max.bytes"] == 2000
    give(node, "1", "message.max.bytes", "3000")
    assert node.broker.config["message.max.bytes"] == 3000
    give(node, "1", "message.max.bytes", None)
    give(node, "", "message.max.bytes", None)
    assert node.broker.config["message.max.bytes"] == 1000


def test_settings_of_another_broker_are_not_ours():
    node = TestNode()
    give(node, "2", "message.max.bytes", "3000")
    assert node.broker.config["message.max.bytes"] == 1_048_588


def test_topics_follow_the_broker_they_are_on():
    node = TestNode()
    node.create_topic("orders")
    give(node, "", "message.max.bytes", "2000")
    assert node.broker.metadata.topic_settings("orders").rules.max_message_bytes == 2000


def test_watchers_are_told_which_keys_changed():
    node, told = TestNode(), []
    node.broker.node_settings.watch(lambda config, changed: told.append((config["max.connections"], changed)))
    give(node, "", "max.connections", "7")
    give(node, "", "max.connections", "7")
    assert told == [(7, frozenset({"max.connections"}))]


def test_what_was_given_before_the_start_counts_from_the_start():
    node = TestNode()
    give(node, "", "message.max.bytes", "2000")
    again = TestNode(image=node.image)
    assert again.broker.config["message.max.bytes"] == 2000


def test_what_cannot_be_used_is_passed_over(caplog):
    node = TestNode()
    for key, value in (("num.partitions", "9"), ("message.max.bytes", "many"), ("plugin.key", "x")):
        give(node, "", key, value)
    give(node, "", "listener.security.protocol.map", "A:PLAINTEXT")  # of one broker only
    assert node.broker.config.given.keys() == node.config.given.keys()
    assert "message.max.bytes" in caplog.text
