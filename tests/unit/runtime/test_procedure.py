"""Coroutines that wait for callbacks: how a node starts and stops, in the real world and in others."""

from collections.abc import Callable
from typing import Any

import pytest

from ottla.runtime.procedure import Procedure, wait_for, wait_until
from ottla.testing.clock import FixedClock
from ottla.testing.step_timers import StepTimers


class Scene:
    """`events` is what has happened; `calls` are the callbacks that somebody waits for."""

    def __init__(self) -> None:
        self.timers = StepTimers(FixedClock())
        self.events: list[Any] = []
        self.calls: list[tuple[Callable[[Any], None], Callable[[Exception], None]]] = []

    def begin(self, done: Callable[[Any], None], failed: Callable[[Exception], None]) -> None:
        self.calls.append((done, failed))

    def run(self, coroutine: Any) -> Procedure[Any]:
        return Procedure(coroutine, self.timers, self.events.append, self.events.append)


def test_it_goes_on_after_the_callback_and_not_within_it():
    scene = Scene()

    async def steps():
        scene.events.append("begun")
        scene.events.append(await wait_for(scene.begin))
        await wait_until(lambda done: scene.timers.after(1, done))
        return "over"

    scene.run(steps())
    assert scene.events == ["begun"]
    scene.calls[0][0]("first")
    assert scene.events == ["begun"]
    scene.timers.advance(0)
    assert scene.events == ["begun", "first"]
    scene.timers.advance(1_000)
    assert scene.events == ["begun", "first", "over"]


def test_what_is_there_at_once_is_not_waited_for():
    scene = Scene()

    async def steps():
        return [await wait_for(lambda done, _, number=number: done(number)) for number in range(3)]

    scene.run(steps())
    assert scene.events == [[0, 1, 2]]


def test_problems_are_raised_where_they_are_waited_for():
    scene = Scene()

    async def steps():
        with pytest.raises(OSError, match="the disk"):
            await wait_for(scene.begin)
        await wait_for(scene.begin)

    scene.run(steps())
    scene.calls[0][1](OSError("the disk"))
    scene.timers.advance(0)
    problem = ValueError("not formatted")
    scene.calls[1][1](problem)
    scene.timers.advance(0)
    assert scene.events == [problem]


def test_what_cannot_even_begin_is_raised_too():
    scene = Scene()

    def begin(_done, _failed):
        raise OSError("no threads")

    scene.run(wait_for(begin))
    assert [str(event) for event in scene.events] == ["no threads"]


def test_the_first_word_counts():
    scene = Scene()
    scene.run(wait_for(scene.begin))
    done, failed = scene.calls[0]
    done("joined")
    failed(ValueError("left"))
    done("again")
    scene.timers.advance(0)
    assert scene.events == ["joined"]


@pytest.mark.parametrize("is_told_first", [False, True])
def test_one_that_is_cancelled_stays_where_it_is(is_told_first):
    scene = Scene()

    async def steps():
        try:
            await wait_for(scene.begin)
        finally:
            scene.events.append("left")

    procedure = scene.run(steps())
    if is_told_first:
        scene.calls[0][0]("too late")
    procedure.cancel()
    scene.calls[0][0]("far too late")
    scene.timers.advance(1_000)
    procedure.cancel()
    assert scene.events == ["left"]
    assert len(scene.timers) == 0
