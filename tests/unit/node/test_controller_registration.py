"""How a controller makes itself known (KIP-919), and what it says when another does so under its id."""

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.base.ids import Uuid
from ottla.machines.metadata.image.delta import MetadataDelta
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.node.listeners import Endpoint
from ottla.node.membership.controller_registration import ControllerRegistration
from ottla.testing.clock import FixedClock
from ottla.testing.memory_disk import MemoryDisk
from ottla.testing.step_timers import StepTimers
from ottla.testing.step_world import step_world
from ottla.wire.messages import ControllerRegistrationResponse, FeatureLevelRecord, RegisterControllerRecord

NODE_ID = 2
OWN_PORT = 9093


class Scene:
    """A controller that registers, and the image that its requests change."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.image = MetadataImage()
        self.image.replay(FeatureLevelRecord(name="metadata.version", feature_level=25), MetadataDelta())
        clock = FixedClock()
        self.timers = StepTimers(clock)
        world = step_world(MemoryDisk(), clock, timers=self.timers)
        endpoints = [Endpoint("CONTROLLER", "here", OWN_PORT, "PLAINTEXT")]
        metadata: Any = SimpleNamespace(image=self.image)
        ControllerRegistration(world, NODE_ID, endpoints, metadata, self).start()
        self.pass_second()

    def ask(self, request: Any, _version: int, _caller: object, then: Any, _failed: object) -> None:
        self.requests.append(request)
        self.register(request.incarnation_id, "here", OWN_PORT)
        then(ControllerRegistrationResponse())

    def register(self, incarnation_id: Uuid, host: str, port: int) -> None:
        endpoint = RegisterControllerRecord.ControllerEndpoint(name="CONTROLLER", host=host, port=port)
        record = RegisterControllerRecord(
            controller_id=NODE_ID, incarnation_id=incarnation_id, end_points=[endpoint], features=[]
        )
        self.image.replay(record, MetadataDelta())

    def pass_second(self) -> None:
        self.timers.advance(1000)


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.WARNING)
    return caplog


def test_it_registers_once() -> None:
    scene = Scene()
    scene.pass_second()
    assert [request.controller_id for request in scene.requests] == [NODE_ID]


def test_another_that_registers_with_its_id_is_told_of_once(told: pytest.LogCaptureFixture) -> None:
    scene = Scene()
    for life in (b"1", b"2"):
        scene.pass_second()
        scene.register(Uuid(life * 16), "there", 9193)
        scene.pass_second()
    assert len(scene.requests) == 3
    assert [record.getMessage() for record in told.records] == [
        "another controller with node.id=2 has registered, at there:9193: each controller needs a node.id of its own"
    ]


def test_a_late_registration_of_a_life_before_is_no_other_controller(told: pytest.LogCaptureFixture) -> None:
    scene = Scene()
    scene.pass_second()
    scene.register(Uuid(b"1" * 16), "here", OWN_PORT)
    scene.pass_second()
    assert len(scene.requests) == 2
    assert not told.records
