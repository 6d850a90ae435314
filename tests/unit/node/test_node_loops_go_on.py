"""What a node does again and again for its cluster it does whatever one reply or one decision has raised.

The rows are as in `test_loops_go_on`: a handler that raises once, in a scene where its loop has something to do.
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.broker.cluster.cluster_metadata import NodeIdentity
from ottla.config.parse import parse
from ottla.config.scopes import Scope
from ottla.controller.broker_tethers import BrokerTethers, _Tether
from ottla.controller.timed_decisions import TimedDecisions
from ottla.machines.metadata.controller.controller import Controller
from ottla.machines.metadata.image.delta import MetadataDelta
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.node.listeners import Endpoint
from ottla.node.membership.controller_registration import ControllerRegistration
from ottla.node.membership.registration import FailedDirectories, Membership
from ottla.runtime.channels import THIS_NODE
from ottla.runtime.peers.node_connections import NodeAddress
from ottla.runtime.peers.remote_controller import ActiveController, RemoteController
from ottla.testing.clock import FixedClock
from ottla.testing.memory_network import MemoryNetwork
from ottla.testing.step_timers import StepTimers
from ottla.testing.step_world import step_world
from ottla.wire.messages import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    ControllerRegistrationResponse,
    FeatureLevelRecord,
)
from tests.unit.broker.admin_node import AdminNode
from tests.unit.runtime.raising_once import faults_in, raise_once

GIVEN = {"process.roles": "broker", "node.id": "1", "controller.listener.names": "CONTROLLER"}
Scene = Callable[[], Callable[[], None]]


class Taking:
    """A controller that takes everything."""

    def ask(self, request: Any, version: int, caller: object, then: Any, failed: Any) -> None:
        match request:
            case BrokerRegistrationRequest():
                then(BrokerRegistrationResponse(broker_epoch=42))
            case BrokerHeartbeatRequest():
                then(BrokerHeartbeatResponse())
            case _:
                then(ControllerRegistrationResponse())


def a_broker_joins() -> Callable[[], None]:
    timers = StepTimers(FixedClock())
    broker: Any = SimpleNamespace(
        identity=NodeIdentity(1, "the-cluster"),
        config=parse(Scope.BROKER, GIVEN).values,
        controller=Taking(),
        world=SimpleNamespace(timers=timers),
        metadata=SimpleNamespace(image=MetadataImage()),
        node_settings=SimpleNamespace(is_cordoned=lambda _path: False),
    )
    membership = Membership(
        broker,
        [Endpoint("PLAINTEXT", "here", 9092, "PLAINTEXT")],
        incarnation_id=b"i" * 16,  # type: ignore[arg-type]
        previous_broker_epoch=-1,
        committed_offset=lambda: 100,
        failed=lambda _reason: None,
    )
    timers.after(0, lambda: membership.register(lambda _: membership.unfence(lambda _: None, print), print))
    return lambda: timers.advance(20_000)


def a_controller_registers() -> Callable[[], None]:
    clock = FixedClock()
    timers, image = StepTimers(clock), MetadataImage()
    image.replay(FeatureLevelRecord(name="metadata.version", feature_level=25), MetadataDelta())
    metadata: Any = SimpleNamespace(image=image)
    endpoints = [Endpoint("CONTROLLER", "here", 9093, "PLAINTEXT")]
    ControllerRegistration(step_world(clock=clock, timers=timers), 2, endpoints, metadata, Taking()).start()
    return lambda: timers.advance(5000)


def a_controller_decides_in_time() -> Callable[[], None]:
    node = AdminNode()
    TimedDecisions(node.server).start()
    return lambda: node.timers.advance(1_000_000)


def a_broker_cannot_be_reached() -> Callable[[], None]:
    node = AdminNode()
    node.register_broker(7, "nowhere", 9092)
    BrokerTethers(node.server, "PLAINTEXT").start()

    def resume() -> None:
        for _ in range(30):
            node.timers.advance(1000)
            node.network.turn()

    return resume


def nobody_leads() -> Callable[[], None]:
    """Questions wait for a controller, and are tried again and again."""
    timers = StepTimers(FixedClock())
    connections: Any = SimpleNamespace(settings=SimpleNamespace(request_timeout_ms=30_000))
    here = ActiveController(1, NodeAddress("here", 9093))
    found = iter([None, None, *[here] * 100])
    channel = RemoteController(
        step_world(timers=timers), connections, node_id=1, own=Taking(), find=lambda: next(found)
    )
    for _ in range(3):
        channel.ask(BrokerHeartbeatRequest(), 1, THIS_NODE, lambda _reply: None, lambda _error: None)
    return lambda: timers.advance(1000)


LOOPS: list[tuple[type, str, Scene]] = [
    (Taking, "ask", a_broker_joins),
    (Membership, "_on_registered", a_broker_joins),
    (FailedDirectories, "on_reported", a_broker_joins),
    (Taking, "ask", a_controller_registers),
    (ControllerRegistration, "_on_registered", a_controller_registers),
    (Controller, "fence_silent_broker", a_controller_decides_in_time),
    (Controller, "balance_leaders", a_controller_decides_in_time),
    (Controller, "elect_unclean_leaders", a_controller_decides_in_time),
    (_Tether, "_start_dialling", a_broker_cannot_be_reached),
    (MemoryNetwork, "dial", a_broker_cannot_be_reached),
    (RemoteController, "_try", nobody_leads),
    (Taking, "ask", nobody_leads),
]


@pytest.mark.parametrize(
    ("owner", "method", "scene"),
    LOOPS,
    ids=[f"{scene.__name__}-{owner.__name__}.{method}" for owner, method, scene in LOOPS],
)
def test_a_loop_goes_on_after_its_handler_has_raised(monkeypatch, owner, method, scene):
    resume = scene()
    calls = raise_once(monkeypatch, owner, method)
    assert faults_in(resume) == 1
    assert len(calls) > 1
