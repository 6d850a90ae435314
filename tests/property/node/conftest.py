"""One node to abuse, and one innocent client beside."""

from collections.abc import Iterator

import pytest

from ottla.testing.node import RunningNode
from tests.interop.target import Target, a_target
from tests.property.node.witness import Witness


@pytest.fixture(scope="module")
def node() -> Iterator[Target]:
    # A thousand connections at once would wait for each other in a backlog of fifty, Kafka's default.
    with a_target(auto_create_topics_enable="false", socket_listen_backlog_size="1000") as running:
        yield running
        if isinstance(running, RunningNode):
            assert running.is_running, f"the node is gone\n{running.end_of_log()}"


@pytest.fixture
def witness(node: Target) -> Iterator[Witness]:
    innocent = Witness(node.bootstrap, getattr(node, "rss_bytes", None))
    yield innocent
    innocent.close()
