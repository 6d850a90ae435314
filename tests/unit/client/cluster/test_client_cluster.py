"""Metadata kept fresh over brokers that come and go."""

from itertools import pairwise

import pytest

from ottla.base.ids import TopicPartition
from ottla.client.cluster.cluster import Cluster
from ottla.client.cluster.coordinators import CoordinatorKind, Coordinators
from ottla.client.cluster.view import Leader
from ottla.client.errors import (
    ClientClosed,
    Disconnected,
    RequestTimedOut,
    UnknownTopicOrPartition,
    UnsupportedVersion,
)
from ottla.client.promise import spawn
from ottla.client.settings import read_settings
from ottla.config.scopes import Scope
from ottla.testing.scripted_brokers import DROP, KEEP, ScriptedBrokers
from ottla.wire.messages import (
    FindCoordinatorResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    MetadataResponse,
)


def cluster_of(brokers: ScriptedBrokers, **settings: object) -> Cluster:
    return Cluster(brokers.world, read_settings(Scope.ADMIN, {"bootstrap.servers": brokers.bootstrap}, settings))


def known(brokers: ScriptedBrokers, **settings: object) -> Cluster:
    """A cluster whose metadata is there."""
    cluster = cluster_of(brokers, **settings)
    cluster.refresh()
    brokers.run()
    return cluster


def test_a_refresh_learns_brokers_and_the_leaders_of_the_topics_that_are_wanted() -> None:
    brokers = ScriptedBrokers([1, 2], {"clicks": 3, "views": 1})
    cluster = cluster_of(brokers)
    cluster.add_topics(["clicks"])
    view = cluster.refresh()
    brokers.run()
    assert sorted(view.value().brokers) == [1, 2]
    assert view.value().leader_of(TopicPartition("clicks", 1)) == Leader(2, 0)
    assert list(view.value().topics) == ["clicks"]
    assert view.value().names[brokers.topic_id("clicks")] == "clicks"


def test_refreshes_that_are_asked_for_meanwhile_share_the_next_one() -> None:
    brokers = ScriptedBrokers()
    cluster = cluster_of(brokers)
    cluster.refresh()
    second, third = cluster.refresh(), cluster.refresh()
    brokers.run()
    assert second is third
    assert second.is_done
    assert len(brokers.asked("Metadata")) == 2


def test_another_broker_is_asked_at_once_when_one_cannot_be_reached() -> None:
    brokers = ScriptedBrokers([1, 2, 3, 4, 5])
    brokers.unreachable |= {1, 2, 4, 5}
    cluster = cluster_of(brokers)
    view = cluster.refresh()
    brokers.run()  # No time passes.
    assert sorted(view.value().brokers) == [1, 2, 3, 4, 5]


def test_a_pause_comes_when_no_broker_could_be_reached() -> None:
    brokers = ScriptedBrokers([1, 2, 3])
    brokers.unreachable |= {1, 2, 3}
    cluster = cluster_of(brokers)
    view = cluster.refresh()
    brokers.run()
    brokers.unreachable.clear()
    brokers.run()
    assert not view.is_done
    brokers.advance(500)
    assert sorted(view.value().brokers) == [1, 2, 3]


def test_a_request_waits_for_its_connection_and_goes_in_the_newest_version_of_both_sides() -> None:
    brokers = ScriptedBrokers(newest={"ListGroups": 3})
    brokers.answer("ListGroups", ListGroupsResponse())
    cluster = known(brokers)
    asked = cluster.ask(1, ListGroupsRequest())
    brokers.run()
    assert asked.value().groups == []
    assert brokers.transcript[-1].version == 3


def test_a_field_that_the_broker_has_no_place_for_is_refused_and_nothing_is_sent() -> None:
    brokers = ScriptedBrokers(newest={"ListGroups": 3})
    cluster = known(brokers)
    asked = cluster.ask(1, ListGroupsRequest(states_filter=["Stable"]))
    brokers.run()
    assert isinstance(asked.error, UnsupportedVersion)
    assert brokers.asked("ListGroups") == []


def test_an_api_that_the_broker_does_not_serve_is_named() -> None:
    brokers = ScriptedBrokers(newest={"ListGroups": -1})
    cluster = known(brokers)
    asked = cluster.ask(1, ListGroupsRequest())
    brokers.run()
    with pytest.raises(UnsupportedVersion, match="LIST_GROUPS"):
        asked.value()


def test_a_broken_connection_rejects_what_was_in_flight_and_asks_for_metadata() -> None:
    brokers = ScriptedBrokers()
    brokers.answer("ListGroups", DROP)
    cluster = known(brokers)
    asked = [cluster.ask(1, ListGroupsRequest()) for _ in range(2)]
    before = len(brokers.asked("Metadata"))
    brokers.advance(1000)
    assert all(isinstance(one.error, Disconnected) for one in asked)
    assert len(brokers.asked("Metadata")) == before + 1


def test_a_request_that_is_not_answered_in_its_time_closes_the_connection() -> None:
    brokers = ScriptedBrokers()
    brokers.answer("ListGroups", KEEP)
    cluster = known(brokers)
    patient = cluster.ask(1, ListGroupsRequest(), timeout_ms=9000)
    asked = cluster.ask(1, ListGroupsRequest(), timeout_ms=300)
    brokers.advance(299)
    assert not asked.is_done
    brokers.advance(2)
    assert isinstance(asked.error, RequestTimedOut)
    assert isinstance(patient.error, RequestTimedOut)


def test_a_broker_that_throttles_is_not_asked_again_before_its_time() -> None:
    brokers = ScriptedBrokers()
    brokers.answer("ListGroups", [ListGroupsResponse(throttle_time_ms=500), ListGroupsResponse()])
    cluster = known(brokers)
    cluster.ask(1, ListGroupsRequest())
    brokers.run()
    second = cluster.ask(1, ListGroupsRequest())
    brokers.advance(490)
    assert len(brokers.asked("ListGroups")) == 1
    brokers.advance(20)
    assert second.is_done


def test_pauses_between_connections_grow() -> None:
    brokers = ScriptedBrokers([1])
    brokers.unreachable.add(1)
    cluster = cluster_of(brokers, reconnect_backoff_ms=100, reconnect_backoff_max_ms=1000)
    moments = []
    for _ in range(4):
        asked = cluster.ask(-1, ListGroupsRequest())
        while not asked.is_done:
            brokers.advance(10)
        moments.append(brokers.clock.now_ms())
    first, second, third = (later - earlier for earlier, later in pairwise(moments))
    assert 80 <= first <= 130
    assert 160 <= second <= 250
    assert 320 <= third <= 490


@pytest.mark.parametrize("strategy", ["rebootstrap", "none"])
def test_starts_over_from_the_bootstrap_servers_when_no_known_broker_can_be_reached(strategy: str) -> None:
    """KIP-899. Behind the address that the client was given, the cluster has moved from broker 7 to 8."""
    brokers = ScriptedBrokers([1])
    told = [7]

    def metadata(node_id: int, version: int, request: object) -> MetadataResponse:
        broker = MetadataResponse.MetadataResponseBroker
        return MetadataResponse(brokers=[broker(node_id=node, host=f"broker-{node}", port=9092) for node in told])

    brokers.answer("Metadata", metadata)
    cluster = known(brokers, metadata_recovery_strategy=strategy)
    assert sorted(cluster.view.brokers) == [7]
    brokers.nodes, told[:] = [1, 8], [8]
    view = cluster.refresh()
    brokers.advance(10_000)
    assert view.is_done == (strategy == "rebootstrap")
    assert sorted(cluster.view.brokers) == ([8] if view.is_done else [7])


def test_starts_over_when_a_broker_says_so() -> None:
    """KIP-1102."""
    brokers = ScriptedBrokers([1])
    cluster = known(brokers)
    brokers.answer("Metadata", [MetadataResponse(error_code=129), lambda _n, _v, request: brokers.metadata(request)])
    view = cluster.refresh()
    brokers.advance(1000)
    assert sorted(view.value().brokers) == [1]


def test_a_leader_of_an_older_epoch_is_old_news() -> None:
    brokers = ScriptedBrokers([1, 2], {"clicks": 1})
    cluster = cluster_of(brokers)
    cluster.add_topics(["clicks"])
    brokers.leaders["clicks", 0] = (2, 7)
    cluster.refresh()
    brokers.run()
    brokers.leaders["clicks", 0] = (1, 6)
    cluster.refresh()
    brokers.run()
    assert cluster.view.leader_of(TopicPartition("clicks", 0)) == Leader(2, 7)
    cluster.note_leader(TopicPartition("clicks", 0), Leader(1, 8))
    assert cluster.view.leader_of(TopicPartition("clicks", 0)) == Leader(1, 8)


def test_a_leader_is_waited_for_until_the_deadline() -> None:
    brokers = ScriptedBrokers(topics={"clicks": 1})
    cluster = known(brokers)
    found = spawn(cluster.leader_of(TopicPartition("clicks", 0), deadline_s=brokers.world.now_s() + 5))
    missing = spawn(cluster.leader_of(TopicPartition("clicks", 9), deadline_s=brokers.world.now_s() + 5))
    brokers.advance(100)
    assert found.value() == Leader(1, 0)
    assert not missing.is_done
    brokers.advance(5000)
    assert isinstance(missing.error, UnknownTopicOrPartition)


def test_a_coordinator_is_looked_for_once_and_has_a_connection_of_its_own() -> None:
    found = FindCoordinatorResponse(
        coordinators=[FindCoordinatorResponse.Coordinator(key="g", node_id=1, host="broker-1", port=9092)]
    )
    loading = FindCoordinatorResponse(coordinators=[FindCoordinatorResponse.Coordinator(key="g", error_code=15)])
    brokers = ScriptedBrokers()
    brokers.answer("FindCoordinator", [loading, found])
    brokers.answer("ListGroups", ListGroupsResponse())
    cluster = known(brokers)
    coordinators = Coordinators(cluster)
    deadline_s = brokers.world.now_s() + 10
    answers = []
    for _ in range(2):
        answers.append(spawn(coordinators.ask(CoordinatorKind.GROUP, "g", ListGroupsRequest(), deadline_s)))
        brokers.advance(1000)
    assert [answer.error for answer in answers] == [None, None]
    assert len(brokers.asked("FindCoordinator")) == 2
    assert brokers.open_connections == 3  # the bootstrap's, the broker's, the coordinator's


def test_what_waits_is_rejected_when_the_client_is_closed() -> None:
    brokers = ScriptedBrokers()
    brokers.answer("ListGroups", KEEP)
    cluster = known(brokers)
    asked = cluster.ask(1, ListGroupsRequest())
    brokers.unreachable.add(1)
    refreshing = cluster.refresh()
    cluster.close()
    brokers.run()
    for promise in (asked, refreshing, cluster.ask(1, ListGroupsRequest()), cluster.refresh()):
        assert isinstance(promise.error, ClientClosed)
    assert brokers.open_connections == 0
