"""Faults in several steps: each comes at its moment, and whatever they did is undone."""

import pytest

from ottla.testing.sim import ClusterSettings, History, SimulatedCluster
from ottla.testing.sim.cluster.encryption import Encryption
from ottla.testing.sim.faults.fault import Fault
from ottla.testing.sim.faults.nemesis import Nemesis
from ottla.testing.sim.faults.schedule import Schedule, Steps, Until, scheduled
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import ApiVersionsRequest

FAULT = Fault(0, 0, "of the test", 1, 1_000, 0)


class Scene:
    def __init__(self, encryption: Encryption | None = None) -> None:
        self.cluster = SimulatedCluster(3, ClusterSettings(3, encryption=encryption or Encryption()))
        self.cluster.start()
        self.nemesis = Nemesis(self.cluster, History(), [])
        self.first, self.second, self.third = self.nemesis.machines
        self.simulation = self.cluster.simulation
        self.between = self.simulation.fabric.link(self.first.host, self.second.host)
        self.seen: list[str] = []

    def begin(self, steps: Steps) -> Schedule:
        schedule = Schedule(self.nemesis, FAULT, self.first)
        schedule.begin(steps)
        return schedule


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_the_next_step_comes_right_after_what_it_waits_for(scene: Scene) -> None:
    happened_us: list[int] = []
    clock, agenda = scene.simulation.clock, scene.simulation.agenda
    agenda.call_at(clock.elapsed_us() + 777, lambda: happened_us.append(clock.elapsed_us()))

    def steps() -> Steps:
        yield Until("it has happened", lambda: bool(happened_us), 10)
        happened_us.append(clock.elapsed_us())

    scene.begin(steps())
    scene.simulation.run_for(5)
    before_us, after_us = happened_us
    assert before_us == after_us


def test_what_was_done_is_undone_when_the_last_step_is_over(scene: Scene) -> None:
    def steps(play: Schedule) -> Steps:
        play.cut([scene.first], [scene.second])
        assert play.kill(scene.third)
        yield 100
        scene.seen.append("last step")

    schedule = Schedule(scene.nemesis, FAULT, scene.first)
    schedule.begin(steps(schedule))
    assert scene.between.is_cut
    assert scene.third.life is None
    scene.simulation.run_for(101)
    assert scene.seen == ["last step"]
    assert schedule.is_over
    assert not scene.between.is_cut
    assert scene.third.life is not None


@pytest.mark.parametrize("ends_early", [False, True])
def test_it_is_undone_too_where_what_a_step_waits_for_does_not_come_or_the_fault_ends(
    scene: Scene, ends_early: bool
) -> None:
    def steps(play: Schedule) -> Steps:
        play.cut([scene.first], [scene.second], both_ways=False)
        yield Until("what never comes", lambda: False, 500)
        scene.seen.append("last step")

    schedule = Schedule(scene.nemesis, FAULT, scene.first)
    end = schedule.begin(steps(schedule))
    scene.simulation.run_for(499)
    assert scene.between.is_cut
    if ends_early:
        end()
    else:
        scene.simulation.run_for(2_000)
    assert schedule.is_over
    assert not scene.between.is_cut
    assert not scene.simulation.watchers
    assert scene.seen == []


def test_one_goes_on_at_a_time(scene: Scene) -> None:
    def steps(play: Schedule) -> Steps:
        scene.seen.append("began")
        yield 100

    begin = scheduled(steps)
    assert begin(scene.nemesis, FAULT, scene.first) is not None
    assert begin(scene.nemesis, FAULT, scene.first) is None
    scene.simulation.run_for(101)
    assert begin(scene.nemesis, FAULT, scene.first) is not None
    assert scene.seen == ["began", "began"]


@pytest.mark.parametrize("has_tls", [False, True])
def test_a_controller_is_asked_over_its_listener_with_tls_or_without(has_tls: bool) -> None:
    scene = Scene(Encryption(of_controllers=has_tls))
    client = Schedule(scene.nemesis, FAULT, scene.first).ask(scene.first, ApiVersionsRequest(), 2)
    assert client is not None
    scene.simulation.run_for(1_000)
    assert [response.error_code for response in client.responses] == [ErrorCode.NONE]
