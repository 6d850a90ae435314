"""The administration that each client knows."""

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from tests.clients.eventually import eventually
from tests.clients.records import Placed, Record, Refused


@pytest.fixture
def admin(client: ModuleType, bootstrap: str) -> Iterator[Any]:
    made = client.Admin(bootstrap)
    yield made
    made.close()


def test_a_topic_from_creation_to_deletion(client: ModuleType, admin: Any, bootstrap: str) -> None:
    topic = f"life-of-a-topic-{client.NAME}"
    admin.create(topic, 2, {"retention.ms": "123456789"})
    eventually(lambda: topic in admin.topics(), True)
    eventually(lambda: admin.partitions(topic), 2)

    admin.grow(topic, 5)
    eventually(lambda: admin.partitions(topic), 5)
    client.write(bootstrap, topic, [Record(b"to the new one")], partition=4)
    assert client.read(bootstrap, topic, 1, partition=4) == [Placed(0, Record(b"to the new one"))]

    admin.delete(topic)
    eventually(lambda: topic in admin.topics(), False)


def test_a_topic_can_be_made_again_and_is_empty(client: ModuleType, admin: Any, bootstrap: str) -> None:
    topic = f"again-{client.NAME}"
    for _ in range(2):
        admin.create(topic, 1, {})
        eventually(lambda: topic in admin.topics(), True)
        client.write(bootstrap, topic, [Record(b"one"), Record(b"two")])
        assert client.bounds(bootstrap, topic) == (0, 2)
        admin.delete(topic)
        eventually(lambda: topic in admin.topics(), False)


def test_settings_are_described_and_altered(admin: Any, topic: str) -> None:
    before = admin.config(topic)
    assert before["cleanup.policy"] == "delete"
    assert before["retention.ms"] == "604800000"
    admin.set_config(topic, "retention.ms", "86400000")
    eventually(lambda: admin.config(topic)["retention.ms"], "86400000")
    assert {**admin.config(topic), "retention.ms": before["retention.ms"]} == before


def test_a_setting_that_makes_no_sense_is_refused(admin: Any, topic: str) -> None:
    with pytest.raises(Refused, match="INVALID_CONFIG"):
        admin.set_config(topic, "retention.ms", "a while")
    assert admin.config(topic)["retention.ms"] == "604800000"


def test_records_are_deleted_up_to_an_offset(client: ModuleType, admin: Any, bootstrap: str, topic: str) -> None:
    client.write(bootstrap, topic, [Record(b"%d" % number) for number in range(10)])
    assert admin.delete_records(topic, 7) == 7
    assert client.bounds(bootstrap, topic) == (7, 10)
    assert [placed.offset for placed in client.read(bootstrap, topic, 3, offset=7)] == [7, 8, 9]


def test_the_cluster_names_its_nodes(admin: Any, bootstrap: str) -> None:
    host, _, port = bootstrap.rpartition(":")
    assert (host, int(port)) in admin.nodes()
