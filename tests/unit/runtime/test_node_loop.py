"""Rounds of a node's loop: what is called, in which order, and what an exception costs."""

import os
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from ottla.runtime import loop as module
from ottla.runtime.loop import NodeLoop


@pytest.fixture
def loop() -> Iterator[NodeLoop]:
    made = NodeLoop(spin_us=0)
    yield made
    made.close()


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


def noting(told: list[str], what: str, then: Callable[[], object] = lambda: None) -> Callable[[], None]:
    def call() -> None:
        told.append(what)
        then()

    return call


def test_what_is_called_soon_comes_in_order_and_what_it_adds_comes_in_the_next_round(loop: NodeLoop) -> None:
    told: list[str] = []
    loop.call_soon(noting(told, "first", lambda: loop.call_soon(noting(told, "third", loop.stop))))
    loop.call_soon(told.append, "second")
    loop.run()
    assert told == ["first", "second", "third"]


def test_calls_that_lead_to_more_calls_leave_room_for_descriptors(loop: NodeLoop, pipe: tuple[int, int]) -> None:
    def again() -> None:
        loop.call_soon(again)

    os.write(pipe[1], b"x")
    loop.add_reader(pipe[0], loop.stop)
    again()
    loop.run()


def test_timed_calls_come_in_the_order_of_their_time(loop: NodeLoop) -> None:
    told: list[str] = []
    loop.call_later(0.002, noting(told, "later", loop.stop))
    loop.call_later(0.001, told.append, "sooner")
    loop.call_later(0.0005, told.append, "never").cancel()
    loop.run()
    assert told == ["sooner", "later"]


def test_one_that_is_due_cancels_another_that_is(loop: NodeLoop) -> None:
    told: list[str] = []
    now_s = loop.time()
    loop.call_at(now_s, noting(told, "first", lambda: second.cancel()))
    second = loop.call_at(now_s, told.append, "second")
    loop.call_at(now_s, loop.stop)
    loop.run()
    assert told == ["first"]


def test_cancelled_calls_do_not_heap_up(loop: NodeLoop) -> None:
    kept = loop.call_later(3600, lambda: None)
    for _ in range(10_000):
        loop.call_later(3600, lambda: None).cancel()
    assert len(loop._timed) < 3 * module._MANY_CANCELLED
    assert kept.when() > loop.time()


def test_another_thread_wakes_a_loop_that_sleeps(loop: NodeLoop) -> None:
    told: list[str] = []
    thread = threading.Timer(
        0.02, lambda: loop.call_soon_threadsafe(noting(told, threading.current_thread().name, loop.stop))
    )
    thread.start()
    loop.run()
    thread.join()
    assert told


@pytest.mark.slow
def test_a_hundred_thousand_wakings_are_not_waited_for(loop: NodeLoop) -> None:
    """The loop is busy, and the socket that wakes it is full: the calls come all the same."""
    told: list[int] = []
    for number in range(100_000):
        loop.call_soon_threadsafe(told.append, number)
    loop.call_soon(loop.stop)
    loop.run()
    assert told == list(range(100_000))


def test_nobody_is_called_when_the_loop_is_closed() -> None:
    loop = NodeLoop()
    loop.close()
    with pytest.raises(RuntimeError):
        loop.call_soon_threadsafe(lambda: None)


def test_readers_and_writers_of_one_descriptor_come_and_go_by_themselves(loop: NodeLoop) -> None:
    told: list[str] = []

    def enough() -> None:
        if len(told) > 3:
            loop.stop()

    ours, other = socket.socketpair()
    with ours, other:
        other.send(b"x")
        loop.add_reader(ours, noting(told, "readable", enough))
        loop.add_writer(ours, noting(told, "writable", lambda: loop.remove_writer(ours)))
        loop.run()
        assert sorted(told) == ["readable"] * 3 + ["writable"]
        assert loop.remove_reader(ours)
        assert not loop.remove_reader(ours)
        told.clear()
        loop.call_later(0.005, loop.stop)
        loop.run()
    assert told == []


@pytest.mark.parametrize("how", ["soon", "timed", "reader"])
def test_a_callback_that_raises_costs_itself(loop: NodeLoop, pipe: tuple[int, int], how: str) -> None:
    told: list[str] = []
    loop.on_exception = lambda what, problem: told.append(f"{what}: {problem}")

    def fail() -> None:
        loop.remove_reader(pipe[0])
        raise AssertionError("an invariant")

    if how == "soon":
        loop.call_soon(fail)
    elif how == "timed":
        loop.call_later(0, fail)
    else:
        os.write(pipe[1], b"x")
        loop.add_reader(pipe[0], fail)
    loop.call_later(0.001, loop.stop)
    loop.run()
    assert told == ["a callback of the loop failed: an invariant"]


def test_it_may_run_again(loop: NodeLoop) -> None:
    for _ in range(3):
        loop.call_soon(loop.stop)
        loop.run()
