"""Our admin against a broker that fails in every way: calls go on where they can, and say why where they cannot."""

from collections.abc import Iterator

import pytest

from ottla import Admin, TopicPartition
from ottla.admin import ConfigResource, NewTopic, OffsetSpec
from ottla.errors import NotLeaderOrFollower, RequestTimedOut, TopicAlreadyExists
from ottla.testing import Broker


@pytest.fixture(scope="module")
def running() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def broker(running: Broker) -> Iterator[Broker]:
    yield running
    running.heal()


@pytest.fixture
def admin(broker: Broker) -> Iterator[Admin]:
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        yield admin


def test_a_connection_that_breaks_before_the_effect_is_not_noticed(broker: Broker, admin: Admin) -> None:
    broker.drop_connection("CreateTopics", times=2)
    admin.create_topics(["lost-before"]).raise_first()


def test_a_connection_that_breaks_after_the_effect_reports_what_is_there(broker: Broker, admin: Admin) -> None:
    broker.drop_connection("CreateTopics", effect="after")
    assert type(admin.create_topics(["lost-after"]).errors["lost-after"]) is TopicAlreadyExists
    assert admin.describe_topics(["lost-after"])["lost-after"].partitions


def test_a_leader_that_moves_is_found_again(broker: Broker, admin: Admin) -> None:
    admin.create_topics([NewTopic("led", 2)]).raise_first()
    partitions = {TopicPartition("led", 0): OffsetSpec.LATEST, TopicPartition("led", 1): OffsetSpec.EARLIEST}
    broker.fail_next("ListOffsets", "NOT_LEADER_OR_FOLLOWER", times=3)
    assert {one.offset for one in admin.list_offsets(partitions).values()} == {0}
    broker.fail_next("ListOffsets", "NOT_LEADER_OR_FOLLOWER", times=None)
    stuck = admin.list_offsets(partitions, timeout=0.6)
    assert {type(error) for error in stuck.errors.values()} == {NotLeaderOrFollower}


def test_a_coordinator_that_moves_is_found_again(broker: Broker, admin: Admin) -> None:
    admin.create_topics(["counted"]).raise_first()
    zero = TopicPartition("counted", 0)
    admin.alter_consumer_group_offsets("movers", {zero: 0}).raise_first()
    broker.move_coordinator(group="movers")
    committed = admin.list_consumer_group_offsets("movers")["movers"][zero]
    assert committed is not None
    assert committed.offset == 0
    broker.move_coordinator(group="movers")
    admin.delete_groups(["movers"]).raise_first()


def test_a_broker_that_is_slow_costs_a_call_its_own_time_and_no_more(broker: Broker, admin: Admin) -> None:
    topic = ConfigResource.topic("slow")
    admin.create_topics(["slow"]).raise_first()
    broker.delay("DescribeConfigs", 30_000, times=1)
    assert type(admin.describe_configs([topic], timeout=0.3).errors[topic]) is RequestTimedOut
    broker.heal()
    assert admin.describe_configs([topic])[topic]


def test_a_throttled_admin_waits_and_goes_on(broker: Broker, admin: Admin) -> None:
    admin.list_topics()
    broker.throttle("Metadata", 300)
    admin.list_topics()
    assert admin.list_topics() is not None
