"""Bytes that are only lent are overwritten in a simulation when they are given back, whoever received them."""

from types import ModuleType

import pytest

from ottla.client.admin.topics import NewTopic
from ottla.runtime import connection
from ottla.testing.sim.cluster.cluster_settings import ClusterSettings
from ottla.testing.sim.cluster.simulated_cluster import SimulatedCluster
from ottla.wire.exchange import client_connection

RECEIVERS = (connection, client_connection)
"""Of a node's clients; and of clients, which the nodes are to each other, too."""


def test_both_ends_of_connections_overwrite_what_they_received(monkeypatch: pytest.MonkeyPatch) -> None:
    overwritten: set[str] = set()

    def watch(receiver: ModuleType) -> None:
        give_back = receiver.give_back

        def watched(buffer: bytearray, count: int) -> None:
            before = bytes(buffer[:count])
            give_back(buffer, count)
            if count and bytes(buffer[:count]) != before:
                overwritten.add(receiver.__name__)

        monkeypatch.setattr(receiver, "give_back", watched)

    for receiver in RECEIVERS:
        watch(receiver)
    cluster = SimulatedCluster(1, ClusterSettings(nodes=3))
    cluster.start()
    cluster.create_topics(NewTopic("orders", partitions=1))
    assert overwritten == {receiver.__name__ for receiver in RECEIVERS}
