"""One node for the tests that leave it running; each has a topic of its own."""

from collections.abc import Callable, Iterator
from itertools import count
from types import ModuleType

import pytest

from tests.clients import confluent_client
from tests.clients.every_client import CLIENTS
from tests.interop.target import Target, a_target


@pytest.fixture(scope="session")
def node() -> Iterator[Target]:
    with a_target() as running:
        yield running


@pytest.fixture(scope="session")
def bootstrap(node: Target) -> str:
    return node.bootstrap


@pytest.fixture(params=CLIENTS, ids=lambda client: client.NAME)
def client(request: pytest.FixtureRequest) -> ModuleType:
    """Each of the clients in turn."""
    chosen: ModuleType = request.param
    return chosen


_numbers = count()


@pytest.fixture
def make_topic(bootstrap: str) -> Callable[..., str]:
    """Makes a topic with a name of its own, with the settings that are given."""

    def make(partitions: int = 1, **config: str) -> str:
        topic = f"topic-{next(_numbers)}"
        settings = {name.replace("_", "."): value for name, value in config.items()}
        confluent_client.Admin(bootstrap).create(topic, partitions, settings)
        return topic

    return make


@pytest.fixture
def topic(make_topic: Callable[..., str]) -> str:
    return make_topic()
