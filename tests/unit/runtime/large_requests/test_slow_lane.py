"""Work in steps: by turns, with others in between, and dropped when nobody wants it any more."""

import gc
from collections.abc import Callable
from itertools import count

from ottla.runtime.attribution import current
from ottla.runtime.large_requests.slow_lane import SlowLane
from ottla.testing.memory_network import MemoryNetwork


class Asked:
    """A request, as far as work for it goes."""

    def __init__(self) -> None:
        self.problems: list[Exception] = []

    def fail(self, problem: Exception) -> None:
        self.problems.append(problem)


class Waiting:
    def __init__(self) -> None:
        self.callback: Callable[[], None] | None = None

    def when_over(self, callback: Callable[[], None]) -> None:
        self.callback = callback


def a_lane(step_s: float = 1.0) -> tuple[SlowLane, MemoryNetwork]:
    """Every look at the clock finds that so much time has passed: with a second, each step is a turn."""
    network, times = MemoryNetwork(), count()
    return SlowLane(network, lambda: next(times) * step_s), network


def wanted() -> bool:
    return True


def steps(log: list[str], name: str, times: int = 3):
    for number in range(times):
        log.append(f"{name}{number}")
        yield None


def test_each_turn_is_one_step_and_works_take_turns() -> None:
    lane, network = a_lane()
    log: list[str] = []
    for name in "ab":
        lane.add(None, steps(log, name), wanted)
    assert log == []
    network.turn()
    assert log == ["a0"]
    network.run()
    assert log == ["a0", "b0", "a1", "b1", "a2", "b2"]


def test_steps_that_take_no_time_are_one_turn() -> None:
    lane, network = a_lane(0.0)
    log: list[str] = []
    lane.add(None, steps(log, "a"), wanted)
    network.turn()
    assert log == ["a0", "a1", "a2"]


def test_only_a_few_are_under_way_and_the_others_wait_for_their_end() -> None:
    lane, network = a_lane()
    log: list[str] = []
    for name in "abcdef":
        lane.add(None, steps(log, name, 2), wanted)
    network.run()
    assert log.index("e0") > log.index("a1")
    assert log.index("f0") > log.index("b1")
    assert sorted(log) == sorted(f"{name}{number}" for name in "abcdef" for number in range(2))


def test_work_for_a_client_that_has_gone_is_dropped_where_it_is() -> None:
    lane, network = a_lane()
    log: list[str] = []
    is_there = True
    lane.add(None, steps(log, "a"), lambda: is_there)
    lane.add(None, steps(log, "b"), wanted)
    network.turn()
    is_there = False
    network.run()
    assert log == ["a0", "b0", "b1", "b2"]


def test_an_exception_is_its_requests_and_others_go_on() -> None:
    lane, network = a_lane()
    asked, log = Asked(), []

    def breaks():
        assert current() is asked
        yield None
        raise ValueError("broken")

    lane.add(asked, breaks(), wanted)
    lane.add(None, steps(log, "b"), wanted)
    network.run()
    assert [str(problem) for problem in asked.problems] == ["broken"]
    assert log == ["b0", "b1", "b2"]
    assert current() is None


def test_work_that_waits_goes_on_when_that_is_over_and_keeps_nobody_up() -> None:
    lane, network = a_lane()
    waiting, log = Waiting(), []

    def waits():
        log.append("begins")
        yield waiting
        log.append("goes on")

    lane.add(None, waits(), wanted)
    lane.add(None, steps(log, "b"), wanted)
    network.run()
    assert log == ["begins", "b0", "b1", "b2"]
    assert waiting.callback is not None
    waiting.callback()
    network.run()
    assert log[-1] == "goes on"


def test_the_collector_does_not_look_through_everything_while_there_is_work() -> None:
    lane, network = a_lane()
    before = gc.get_threshold()
    lane.add(None, steps([], "a"), wanted)
    assert gc.get_threshold()[:2] == before[:2]
    assert gc.get_threshold()[2] > 1_000_000
    network.run()
    assert gc.get_threshold() == before
