"""Fixtures for pytest: a broker for the session, a topic for each test. Active as soon as ottla is installed.

ottla_broker            a `Broker`, started with the first test that asks for it; each worker of pytest-xdist has one
ottla_topic             the name of a topic that is new for this test
ottla_broker_factory    makes brokers with settings of their own, which are gone after the test
ottla_cluster_factory   makes clusters of several brokers that replicate, which are gone after the test
ottla_registry          a `SchemaRegistry` beside the session's broker, started with the first test that asks for it

With `OTTLA_BROKER=host:port` no process is started: `ottla_broker` is the broker that runs there.

What a test does to the session's broker (faults, a kill) is undone when the test is over, before its fixtures are.

pytest imports this module in every project, whether it has to do with brokers or not. So it imports nothing of ours
before a fixture is used.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ottla.testing.broker.given_broker import GivenBroker
    from ottla.testing.broker.own_broker import Broker
    from ottla.testing.broker.own_cluster import Cluster
    from ottla.testing.registry.own_registry import SchemaRegistry

    AnyBroker = Broker | GivenBroker
    BrokerFactory = Callable[..., Broker]
    ClusterFactory = Callable[..., Cluster]


_SHARED = pytest.StashKey["AnyBroker"]()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "ottla_topic(partitions=1, settings={}): what the topic of the fixture `ottla_topic` is like"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    broker = item.config.stash.get(_SHARED, None)
    if broker is not None and broker.is_harmed:
        broker.heal()


@pytest.fixture(scope="session")
def ottla_broker(pytestconfig: pytest.Config) -> Iterator[AnyBroker]:
    """A broker that all tests of the session share: `ottla_broker.bootstrap` is its address."""
    with ExitStack() as at_end:
        broker: AnyBroker
        if os.environ.get("OTTLA_BROKER"):
            from ottla.testing.broker.given_broker import GivenBroker

            broker = GivenBroker(os.environ)
        else:
            from ottla.testing.broker.own_broker import Broker

            broker = at_end.enter_context(Broker())
        pytestconfig.stash[_SHARED] = broker
        yield broker
        del pytestconfig.stash[_SHARED]


@pytest.fixture
def ottla_topic(request: pytest.FixtureRequest, ottla_broker: AnyBroker) -> Iterator[str]:
    """The name of a topic that no other test has, made from the test's name.

    `@pytest.mark.ottla_topic(partitions=3, settings={"cleanup.policy": "compact"})` makes another one than the usual.
    On a broker that was given the topic is deleted after the test.
    """
    from ottla.testing.broker.topics import topic_name_for

    name = topic_name_for(request.node.name, os.urandom(4).hex())
    marker = request.node.get_closest_marker("ottla_topic")
    ottla_broker.create_topic(name, **(marker.kwargs if marker else {}))
    yield name
    if os.environ.get("OTTLA_BROKER"):
        ottla_broker.delete_topic(name)


@pytest.fixture
def ottla_broker_factory() -> Iterator[BrokerFactory]:
    """`ottla_broker_factory({"num.partitions": 3})` gives a running broker of this test's own.

    It takes what `Broker` takes: `ottla_broker_factory(security="SASL_SSL")`.
    """
    from ottla.testing.broker.own_broker import Broker

    with ExitStack() as brokers:

        def make(settings: Mapping[str, object] | None = None, **options: Any) -> Broker:
            return brokers.enter_context(Broker(settings, **options))

        yield make


@pytest.fixture
def ottla_cluster_factory() -> Iterator[ClusterFactory]:
    """`ottla_cluster_factory(3)` gives a running cluster of this test's own: three brokers that replicate.

    It takes what `Cluster` takes: `ottla_cluster_factory(3, security="SSL")`.
    """
    from ottla.testing.broker.own_cluster import Cluster

    with ExitStack() as clusters:

        def make(count: int = 3, settings: Mapping[str, object] | None = None, **options: Any) -> Cluster:
            return clusters.enter_context(Cluster(count, settings, **options))

        yield make


@pytest.fixture(scope="session")
def ottla_registry(ottla_broker: AnyBroker) -> Iterator[SchemaRegistry]:
    """A schema registry that all tests of the session share: `ottla_registry.url` is its address."""
    from ottla.testing.registry.own_registry import SchemaRegistry

    with SchemaRegistry(ottla_broker.bootstrap) as registry:
        yield registry
