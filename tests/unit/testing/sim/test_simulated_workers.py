"""Disk threads of a simulated node."""

from random import Random

import pytest

from ottla.testing.clock import FixedClock
from ottla.testing.sim.simulated_workers import SimulatedWorkers
from ottla.testing.step_timers import StepTimers


class Scene:
    def __init__(self, seed: int = 0) -> None:
        self.timers = StepTimers(FixedClock())
        self.workers = SimulatedWorkers(self.timers, Random(seed))
        self.events: list[object] = []

    def run(self, name: str, key: str | None = None) -> None:
        self.workers.run(lambda: self.events.append(f"{name} works"), lambda _: self.events.append(name), key=key)


def test_a_job_takes_a_while_and_so_does_the_word_of_it():
    scene = Scene()
    scene.run("job")
    assert scene.events == []
    scene.timers.agenda.fire_next()
    assert scene.events == ["job works"]
    scene.timers.agenda.fire_next()
    assert scene.events == ["job works", "job"]
    assert len(scene.workers) == 0


def test_jobs_with_one_key_keep_their_order_and_others_do_not():
    orders = set()
    for seed in range(20):
        scene = Scene(seed)
        for number in range(3):
            scene.run(f"kept {number}", key="partition")
            scene.run(f"free {number}")
        scene.timers.advance(100)
        told = [event for event in scene.events if "works" not in event]
        assert [event for event in told if "kept" in event] == ["kept 0", "kept 1", "kept 2"]
        orders.add(tuple(told))
    assert len(orders) > 5


def test_the_same_seed_gives_the_same_order():
    def order(seed):
        scene = Scene(seed)
        for number in range(20):
            scene.run(str(number))
        scene.timers.advance(100)
        return scene.events

    assert order(7) == order(7) != order(8)


def test_a_failure_goes_to_its_callback_or_ends_the_simulation():
    scene = Scene()
    scene.workers.run(lambda: [][0], scene.events.append, scene.events.append)
    scene.timers.advance(100)
    assert isinstance(scene.events[0], IndexError)
    scene.workers.run(lambda: [][0], scene.events.append)
    with pytest.raises(IndexError):
        scene.timers.advance(100)


def test_idle_is_told_when_the_last_job_is_done():
    scene = Scene()
    scene.workers.when_idle(lambda: scene.events.append("idle"))
    scene.run("job")
    scene.workers.when_idle(lambda: scene.events.append("idle again"))
    scene.timers.advance(100)
    assert scene.events == ["idle", "job works", "job", "idle again"]


@pytest.mark.parametrize("events_before", [0, 1])
def test_closing_ends_jobs_where_they_are(events_before):
    scene = Scene()
    scene.run("job")
    for _ in range(events_before):
        scene.timers.agenda.fire_next()
    scene.workers.close()
    scene.run("another")
    scene.timers.advance(100)
    assert scene.events == ["job works"][:events_before]
    assert len(scene.workers) == 0
