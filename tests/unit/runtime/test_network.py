"""Turns over real descriptors: what is served when, and what comes at the end."""

import os
import select
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest

from ottla.runtime import network as module
from ottla.runtime.loop import NodeLoop
from ottla.runtime.network import EpollPoller, LoopNetwork, LoopPoller


class Pipe:
    """Something that is always ready to be read, and what its watcher does."""

    def __init__(self, network: LoopNetwork, on_readable: Callable[["Pipe"], None]) -> None:
        self.read_end, self.write_end = os.pipe()
        self.network = network
        self.calls = 0
        self._on_readable = on_readable
        os.write(self.write_end, b"x")
        network.watch(self.read_end, self, reading=True, writing=False)

    def on_readable(self) -> None:
        self.calls += 1
        self._on_readable(self)

    def on_writable(self) -> None:
        """Nobody watches for that."""

    def stop(self) -> None:
        self.network.watch(self.read_end, None, reading=False, writing=False)

    def close(self) -> None:
        self.stop()
        os.close(self.read_end)
        os.close(self.write_end)


@pytest.fixture(params=[EpollPoller, LoopPoller], ids=["epoll", "the loop's selector"])
def network(request: pytest.FixtureRequest) -> Iterator[LoopNetwork]:
    loop = NodeLoop(spin_us=0)
    made = LoopNetwork(loop, request.param)
    yield made
    made.close()
    loop.close()


@pytest.fixture(autouse=True)
def time_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns are bounded in time, and a busy machine may take some. Tests of that bound move time by themselves."""
    monkeypatch.setattr(module, "monotonic", lambda: 0.0)


def run_for(network: LoopNetwork, rounds: int) -> None:
    """So many rounds of the loop."""
    for _ in range(rounds):
        go_round(network)


def go_round(network: LoopNetwork) -> None:
    assert isinstance(network.loop, NodeLoop)
    network.loop.call_soon(network.loop.stop)
    network.loop.run()


def test_all_that_are_ready_are_served_before_the_end_of_the_turn(network: LoopNetwork) -> None:
    events: list[str] = []

    def on_readable(pipe: Pipe) -> None:
        assert network.is_crowded
        events.append("served")
        if len(events) == 1:
            network.at_end_of_turn(lambda: events.append("the end"))
        pipe.stop()

    pipes = [Pipe(network, on_readable) for _ in range(3)]
    run_for(network, 5)
    assert events == ["served", "served", "served", "the end"]
    for pipe in pipes:
        pipe.close()


def test_one_that_is_alone_in_its_turn_is_told_so(network: LoopNetwork) -> None:
    crowded: list[bool] = []
    pipe = Pipe(network, lambda _: crowded.append(network.is_crowded))
    run_for(network, 6)
    assert crowded
    assert not any(crowded)
    pipe.close()


def test_a_turn_is_bounded_in_time_and_those_that_it_did_not_come_to_are_the_first_of_the_next(
    network: LoopNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 0.0
    monkeypatch.setattr(module, "monotonic", lambda: now_s)

    def takes_long(_: Pipe) -> None:
        nonlocal now_s
        now_s += 0.003

    pipes = [Pipe(network, takes_long) for _ in range(10)]
    rounds: list[float] = []

    while min(pipe.calls for pipe in pipes) < 5:
        rounds.append(now_s)
        go_round(network)
    assert max(later - earlier for earlier, later in pairwise(rounds)) <= 0.0121
    assert max(pipe.calls for pipe in pipes) <= 7, "everybody has their turn"
    for pipe in pipes:
        pipe.close()


def test_what_comes_outside_a_turn_has_its_end_soon(network: LoopNetwork) -> None:
    events: list[str] = []
    network.at_end_of_turn(lambda: events.append("first"))
    network.at_end_of_turn(lambda: events.append("second"))
    assert not events
    run_for(network, 2)
    assert events == ["first", "second"]


def test_what_comes_at_the_end_is_bounded_in_time_too(network: LoopNetwork, monkeypatch: pytest.MonkeyPatch) -> None:
    now_s, endings = 0.0, []
    monkeypatch.setattr(module, "monotonic", lambda: now_s)

    def takes_long() -> None:
        nonlocal now_s
        now_s += 0.003
        endings.append(now_s)

    for _ in range(4):
        network.at_end_of_turn(takes_long)
    network._end_turn()
    assert len(endings) == 2
    run_for(network, 3)
    assert len(endings) == 4


def test_ends_that_lead_to_more_ends_leave_room_for_turns_in_between(
    network: LoopNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As clients do whose requests take long, and who have sent many: a client that sends one is served in between."""
    now_s, between = 0.0, []
    monkeypatch.setattr(module, "monotonic", lambda: now_s)

    def again() -> None:
        nonlocal now_s
        now_s += 0.005
        between.append("busy")
        network.at_end_of_turn(again)

    for _ in range(20):
        network.at_end_of_turn(again)
    pipe = Pipe(network, lambda _: between.append("served"))
    run_for(network, 30)
    pipe.close()
    longest = max(map(len, "".join(word[0] for word in between).split("s")))
    assert "served" in between
    assert longest <= 3


def test_an_end_that_breaks_does_not_keep_the_others_from_theirs(network: LoopNetwork) -> None:
    problems: list[object] = []
    assert isinstance(network.loop, NodeLoop)
    network.loop.on_exception = lambda _, problem: problems.append(problem)
    events: list[str] = []

    def breaks() -> None:
        raise AssertionError("an invariant")

    network.at_end_of_turn(breaks)
    network.at_end_of_turn(lambda: events.append("the end"))
    run_for(network, 2)
    assert events == ["the end"]
    assert [str(problem) for problem in problems] == ["an invariant"]


def test_a_watcher_that_breaks_does_not_keep_the_others_from_their_turn(network: LoopNetwork) -> None:
    problems: list[object] = []
    assert isinstance(network.loop, NodeLoop)
    network.loop.on_exception = lambda _, problem: problems.append(problem)

    def breaks(pipe: Pipe) -> None:
        pipe.stop()
        raise AssertionError("an invariant")

    events: list[str] = []
    network.at_end_of_turn(lambda: events.append("the end"))
    pipes = [Pipe(network, breaks), Pipe(network, lambda _: None)]
    run_for(network, 8)
    assert len(problems) == 1
    assert pipes[1].calls
    assert events == ["the end"]
    for pipe in pipes:
        pipe.close()


@pytest.mark.skipif(not hasattr(select, "epoll"), reason="the loop's selector tells of sockets once a round")
def test_turns_of_several_follow_each_other_for_a_while_and_then_the_loop_has_its_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop = NodeLoop(spin_us=0)
    network = LoopNetwork(loop, EpollPoller)
    now_s = 0.0
    served: list[float] = []
    ends: list[int] = []

    def on_readable(_: Pipe) -> None:
        nonlocal now_s
        now_s += 0.0004
        served.append(now_s)
        if len(served) % 2:
            network.at_end_of_turn(lambda: ends.append(len(served)))

    monkeypatch.setattr(module, "monotonic", lambda: now_s)
    pipes = [Pipe(network, on_readable) for _ in range(2)]
    network._take_turn()
    assert len(served) in (10, 11, 12)  # as many as go into four milliseconds
    assert ends[:3] == [2, 4, 6]  # and each turn has its own end
    for pipe in pipes:
        pipe.close()
    network.close()
    loop.close()


def test_one_that_is_alone_goes_around_the_loop(network: LoopNetwork) -> None:
    pipe = Pipe(network, lambda _: None)
    run_for(network, 3)
    before = pipe.calls
    network._take_turn()
    assert pipe.calls <= before + 1
    pipe.close()
