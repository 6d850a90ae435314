"""Clients that connect too often (KIP-612): they wait at a listener, and are hung up on if their address is limited."""

import pytest

from ottla.runtime.admission import AddressRates, Admission, ConnectionLimits
from ottla.wire.messages import MetadataRequest, MetadataResponse
from tests.unit.runtime.memory_server import Scene

ASKED = MetadataRequest(topics=[]), 12
# Ten windows' worth may come at once; the wait for each more is a second at most.
BURST = 10


def scene_with(**limits: object) -> Scene:
    scene = Scene(admission=Admission(ConnectionLimits(**limits)))  # type: ignore[arg-type]
    scene.handle = lambda context, message, respond: respond(MetadataResponse())
    return scene


def is_answered(scene: Scene, client) -> bool:  # type: ignore[no-untyped-def]
    return len(client.replies()) == 1


@pytest.mark.parametrize("limits", [{"max_rate": 1}, {"max_rate_of_listener": {"PLAINTEXT": 1}}])
def test_beyond_the_rate_clients_wait_and_are_served_then(limits: dict[str, object]) -> None:
    scene = scene_with(**limits)
    clients = [scene.connect() for _ in range(BURST + 2)]
    for client in clients:
        client.ask(ASKED)
    assert [is_answered(scene, client) for client in clients] == [True] * BURST + [False] * 2
    scene.timers.advance(1000)
    scene.network.run()
    assert is_answered(scene, clients[BURST])
    for _ in range(12):
        scene.timers.advance(1000)
        scene.network.run()
    assert is_answered(scene, clients[BURST + 1])


def test_a_rate_of_another_listener_delays_nobody() -> None:
    scene = scene_with(max_rate_of_listener={"OTHER": 1})
    clients = [scene.connect() for _ in range(30)]
    for client in clients:
        client.ask(ASKED)
    assert all(is_answered(scene, client) for client in clients)


def test_beyond_the_rate_of_its_address_a_client_is_hung_up_on_later_and_does_not_count() -> None:
    scene = scene_with(max_rate=10)
    scene.server.set_address_rates(AddressRates({}, 1.0))
    clients = [scene.connect() for _ in range(BURST + 30)]
    assert len(scene.server.connections) == BURST
    assert scene.metrics.refused["connection_creation_rate"] == 30
    clients[-1].ask(ASKED)
    assert not clients[-1].end.is_closed, "its wait is not over"
    scene.timers.advance(1000)
    scene.network.run()
    assert clients[-1].end.is_closed
    scene.server.set_address_rates(AddressRates({}, None))
    scene.connect()
    assert len(scene.server.connections) == BURST + 1


def test_an_address_may_have_a_limit_of_its_own() -> None:
    scene = scene_with()
    scene.server.set_address_rates(AddressRates({"127.0.0.1": 100.0}, 1.0))
    for _ in range(BURST + 5):
        scene.connect()
    assert len(scene.server.connections) == BURST + 5


def test_clients_that_wait_go_when_the_server_stops() -> None:
    scene = scene_with(max_rate=1)
    clients = [scene.connect() for _ in range(BURST + 1)]
    scene.server.close()
    scene.network.run()
    assert clients[-1].end.is_closed
    scene.timers.advance(10_000)
