"""Statistics on their way to a callback of the application's."""

from typing import Any

from ottla.client.cluster.application_callbacks import ApplicationCallback, Statistics
from ottla.testing.clock import FixedClock
from ottla.testing.step_timers import StepTimers


def test_a_callback_for_statistics_takes_the_place_of_the_one_before() -> None:
    ticks = StepTimers(FixedClock())
    statistics = Statistics(ticks)
    first: list[Any] = []
    second: list[Any] = []
    for told in (first, second):
        statistics.tell(
            ApplicationCallback(told.append, lambda callback, argument: callback(argument)), lambda: {"n": 1.0}, 1.0
        )
    ticks.advance(1000)
    assert (first, second) == ([], [{"n": 1.0}])
    statistics.stop()
    ticks.advance(5000)
    assert len(second) == 1
