"""Consumers over scripted brokers."""

import pytest

from ottla.testing.scripted_brokers import ScriptedBrokers
from tests.unit.client.consumer.consumer_bench import Bench


@pytest.fixture
def make_bench():
    def make(nodes=(1,), topics=None, newest=None, **settings):
        return Bench(ScriptedBrokers(nodes, topics or {"clicks": 2}, newest=newest), **settings)

    return make
