"""Invariants that are looked into now and then: each as often as it says, whatever happens in between."""

from typing import Any

from ottla.testing.clock import FixedClock
from ottla.testing.sim.invariants.invariant import PeriodicInvariant, on_steps


class _Counted(PeriodicInvariant):
    def __init__(self, every_us: int) -> None:
        nothing: Any = None
        super().__init__(nothing, nothing)
        self.every_us = every_us  # type: ignore[misc]
        self.looks = 0

    def look(self) -> None:
        self.looks += 1


def test_each_is_looked_into_as_often_as_it_says() -> None:
    clock = FixedClock()
    often, seldom = _Counted(10_000), _Counted(50_000)
    (step,) = on_steps([often, seldom], clock)
    for _ in range(100):
        step()
        clock.advance(1)
    assert (often.looks, seldom.looks) == (10, 2)
