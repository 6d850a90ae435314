"""Connections over which nothing is said, by which a controller knows that a broker's process is there."""

import pytest

from ottla.controller.broker_tethers import BrokerTethers
from ottla.testing.memory_network import MemoryNetwork
from tests.unit.broker.admin_node import AdminNode

ADDRESS = "b", 9092


class Scene:
    """A controller and the host of broker 7, which takes connections and holds them, or ends them at once."""

    def __init__(self) -> None:
        self.node = AdminNode()
        self.there = MemoryNetwork(host="b")
        self.node.network.find = lambda _host, _port: self.there
        self.listener = self.there.listen(*ADDRESS, backlog=5, receive_buffer_bytes=-1, send_buffer_bytes=-1)
        self.node.register_broker(7, *ADDRESS)
        self.tethers = BrokerTethers(self.node.server, "PLAINTEXT")
        self.tethers.start()
        self.accepted = 0
        self.ends_at_once = False

    def run(self, by_ms: int) -> None:
        for _ in range(by_ms // 10):
            self.node.timers.advance(10)
            for _ in range(20):
                self.node.network.turn()
                while self.listener.backlog:
                    self.accepted += 1
                    transport = self.listener.accept()
                    if self.ends_at_once:
                        transport.close()

    @property
    def is_fenced(self) -> bool:
        return self.node.image.brokers.by_id[7].fenced


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_a_broker_has_one_connection(scene: Scene) -> None:
    scene.run(30_000)
    assert (scene.accepted, scene.is_fenced) == (1, False)


def test_a_broker_that_ends_connections_at_once_is_dialled_after_pauses_that_grow(scene: Scene) -> None:
    """As one that has no more places for them (`max.connections`). It would be nothing but dialled."""
    scene.ends_at_once = True
    scene.run(60_000)
    assert 5 < scene.accepted < 25
    assert not scene.is_fenced


@pytest.mark.slow
def test_a_connection_that_has_lasted_is_made_again_at_once(scene: Scene) -> None:
    scene.run(30_000)
    (tether,) = scene.tethers._tethers.values()
    assert tether._transport is not None
    tether._transport.problem = ConnectionResetError()  # type: ignore[attr-defined]
    scene.run(10)
    assert scene.accepted == 2
