"""Timers after the end: what is set then never fires."""

import asyncio
import logging

import pytest

from ottla.base.ports import Timers
from ottla.client.io.asyncio_world import AsyncioTimers
from ottla.runtime.apart import apart
from ottla.runtime.timers import LoopTimers
from ottla.testing.clock import FixedClock
from ottla.testing.step_timers import StepTimers


@pytest.fixture
def loop():
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


def turn(loop: asyncio.AbstractEventLoop) -> None:
    """All that is due is called."""
    for _ in range(3):
        loop.run_until_complete(asyncio.sleep(0))


@pytest.mark.parametrize("kind", [LoopTimers, AsyncioTimers])
def test_a_timer_that_is_set_after_the_end_never_fires(loop: asyncio.AbstractEventLoop, kind: type) -> None:
    """A flush that was put off sets one while its node stops: by the time that it fires the log is closed."""
    timers, fired = kind(loop), []
    timers.after(0, lambda: fired.append("before"))
    turn(loop)
    timers.close()
    timers.after(0, lambda: fired.append("after")).cancel()
    timers.after(0, lambda: fired.append("after"))
    timers.every(0, lambda: fired.append("again"))
    turn(loop)
    assert fired == ["before"]


def test_one_that_fires_again_and_again_and_ends_its_timers_is_the_last(loop: asyncio.AbstractEventLoop) -> None:
    timers, fired = LoopTimers(loop), []

    def fire() -> None:
        fired.append("once")
        timers.close()

    timers.every(0, fire)
    turn(loop)
    assert (fired, len(timers)) == (["once"], 0)


def test_timers_of_tests_end_as_the_real_ones_do() -> None:
    timers, fired = StepTimers(FixedClock(0)), []
    timers.close()
    timers.after(0, lambda: fired.append("after"))
    timers.every(1, lambda: fired.append("again"))
    timers.advance(10_000)
    assert (fired, len(timers)) == ([], 0)


def test_what_is_raised_apart_while_a_node_stops_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    timers: Timers = StepTimers(FixedClock(0))
    timers.close()

    def fail() -> None:
        raise ValueError("too late")

    with caplog.at_level(logging.ERROR):
        assert not apart(timers, fail)
    assert "too late" in caplog.text
