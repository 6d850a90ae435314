"""A client above its quotas: the reply at once, with the time to wait, and then a muted connection (KIP-219)."""

from typing import Any

import pytest

from ottla.runtime.request import ClientConnection, RequestContext
from ottla.wire.messages import ApiVersionsRequest, ApiVersionsResponse, MetadataRequest, MetadataResponse
from tests.unit.runtime.memory_server import Client, Scene

ASKED = MetadataRequest(topics=[]), 12


class Strict:
    """Has every request wait."""

    def __init__(self, throttle_ms: int) -> None:
        self.throttle_ms = throttle_ms
        self.worked_s: list[float] = []
        self.sent_s: list[float] = []

    def charge(self, context: RequestContext, reply: Any) -> int:
        self.worked_s.append(context.worked_s)
        return self.throttle_ms

    def on_sent(self, client: ClientConnection, took_s: float) -> None:
        self.sent_s.append(took_s)


@pytest.fixture
def scene() -> Scene:
    scene = Scene()
    scene.handle = lambda context, message, respond: respond(MetadataResponse())
    return scene


def metered(scene: Scene, throttle_ms: int) -> Strict:
    scene.server.metering = metering = Strict(throttle_ms)
    return metering


def throttle_times(client: Client) -> list[int]:
    return [reply.throttle_time_ms for _, reply in client.replies()]


def advance(scene: Scene, by_ms: int) -> None:
    scene.timers.advance(by_ms)
    scene.network.run()


def test_the_reply_leaves_at_once_and_what_comes_after_waits(scene: Scene) -> None:
    metered(scene, 300)
    client = scene.connect()
    client.ask(ASKED)
    assert throttle_times(client) == [300]
    client.ask(ASKED)
    advance(scene, 299)
    assert throttle_times(client) == []
    advance(scene, 1)
    assert throttle_times(client) == [300]


def test_requests_that_came_with_the_first_wait_too(scene: Scene) -> None:
    metered(scene, 300)
    client = scene.connect()
    client.ask(ASKED, ASKED, ASKED)
    assert throttle_times(client) == [300]
    advance(scene, 300)
    assert throttle_times(client) == [300]
    advance(scene, 300)
    assert throttle_times(client) == [300]


def test_other_clients_do_not_wait(scene: Scene) -> None:
    metering = metered(scene, 300)
    muted, other = scene.connect(), scene.connect()
    muted.ask(ASKED)
    metering.throttle_ms = 0
    muted.ask(ASKED)
    other.ask(ASKED, ASKED)
    assert throttle_times(other) == [0, 0]
    assert throttle_times(muted) == [300]


def test_a_reply_that_comes_later_does_not_shorten_the_wait(scene: Scene) -> None:
    metering = metered(scene, 300)
    scene.handle = scene.wait
    client = scene.connect()
    client.ask(ASKED, ASKED)
    scene.waiting[0][2](MetadataResponse())
    metering.throttle_ms = 100
    scene.waiting[1][2](MetadataResponse())
    scene.network.run()
    client.ask(ASKED)
    advance(scene, 299)
    assert len(scene.waiting) == 2
    advance(scene, 1)
    assert len(scene.waiting) == 3


def test_a_handler_that_resumes_its_connection_does_not_end_the_wait(scene: Scene) -> None:
    metered(scene, 300)
    client = scene.connect()

    def handle(context: RequestContext, message: Any, respond: Any) -> None:
        context.connection.pause()
        respond(MetadataResponse())
        context.connection.resume()

    scene.handle = handle
    client.ask(ASKED, ASKED)
    assert throttle_times(client) == [300]


def test_a_client_that_goes_while_it_is_muted_leaves_no_timer_behind(scene: Scene) -> None:
    metered(scene, 3_600_000)
    client = scene.connect()
    before = len(scene.timers.agenda)
    client.ask(ASKED)
    assert len(scene.timers.agenda) == before + 1
    (connection,) = scene.server.connections
    connection.close()
    assert len(scene.timers.agenda) == before


def test_a_reply_of_a_version_without_the_field_mutes_all_the_same(scene: Scene) -> None:
    metered(scene, 300)
    scene.handle = lambda context, message, respond: respond(ApiVersionsResponse())
    client = scene.connect()
    client.ask((ApiVersionsRequest(), 0), (ApiVersionsRequest(), 0))
    assert len(client.replies()) == 1
    advance(scene, 300)
    assert len(client.replies()) == 1


def test_the_time_that_a_request_waits_for_others_is_not_its_own(scene: Scene) -> None:
    metering = metered(scene, 0)
    client = scene.connect()
    scene.handle = scene.wait
    client.ask(ASKED)
    scene.timers.advance(5000)
    scene.waiting[0][2](MetadataResponse())

    def work(context: RequestContext, message: Any, respond: Any) -> None:
        scene.timers.agenda.clock.advance(20)
        respond(MetadataResponse())

    scene.handle = work
    client.ask(ASKED, ASKED)
    assert metering.worked_s == pytest.approx([0, 0.02, 0.02])
