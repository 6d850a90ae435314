"""When the selector sleeps, and when it looks again first."""

import selectors
import socket
from collections.abc import Iterator

import pytest

from ottla.runtime import selector as module
from ottla.runtime.selector import EagerSelector

MICROSECOND_NS = 1000


class ScriptedSystem:
    """Stands for the system's selector and clock: something is ready `waits_us` after each wait began."""

    def __init__(self, waits_us: list[int], looking_us: int = 5) -> None:
        self.now_ns = 0
        self.sleeps = 0
        self._waits_us = iter(waits_us)
        self._looking_us = looking_us
        self._begin()

    def _begin(self) -> None:
        self.ready_ns = self.now_ns + next(self._waits_us, 10**9) * MICROSECOND_NS

    def select(self, timeout: float | None) -> list[str]:
        if timeout == 0:
            self.now_ns += self._looking_us * MICROSECOND_NS
        else:
            self.sleeps += 1
            self.now_ns = max(self.now_ns, self.ready_ns)
        if self.now_ns < self.ready_ns:
            return []
        self._begin()
        return ["ready"]


@pytest.fixture
def processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "processor_count", lambda: 2)


def sleeps(monkeypatch: pytest.MonkeyPatch, waits_us: list[int], spin_us: int = 100) -> int:
    """How often it slept through these waits."""
    system = ScriptedSystem(waits_us)
    monkeypatch.setattr(module, "perf_counter_ns", lambda: system.now_ns)
    monkeypatch.setattr(selectors.DefaultSelector, "select", lambda _, timeout=None: system.select(timeout))
    with EagerSelector(spin_us) as selector:
        for _ in waits_us:
            assert selector.select(None) == ["ready"]
    return system.sleeps


@pytest.mark.usefixtures("processors")
def test_short_waits_in_a_row_are_slept_through_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sleeps(monkeypatch, [50] * 20) == 1


@pytest.mark.usefixtures("processors")
def test_long_waits_are_all_slept_through(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sleeps(monkeypatch, [500] * 20) == 20


@pytest.mark.usefixtures("processors")
def test_a_long_wait_after_short_ones_ends_the_looking(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sleeps(monkeypatch, [50, 50, 500, 500, 50, 50]) == 4


@pytest.mark.parametrize("count", [1, 0.5, 1.5])
def test_with_less_than_two_processors_every_wait_is_slept_through(
    monkeypatch: pytest.MonkeyPatch, count: float
) -> None:
    monkeypatch.setattr(module, "processor_count", lambda: count)
    assert sleeps(monkeypatch, [50] * 20) == 20


@pytest.mark.usefixtures("processors")
def test_how_long_it_looks_is_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sleeps(monkeypatch, [50] * 20, spin_us=0) == 20
    assert sleeps(monkeypatch, [500] * 20, spin_us=1000) == 1


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    one, other = socket.socketpair()
    with one, other:
        yield one, other


@pytest.mark.usefixtures("processors")
def test_it_finds_what_the_system_finds(pair: tuple[socket.socket, socket.socket]) -> None:
    one, other = pair
    with EagerSelector() as selector:
        key = selector.register(one, selectors.EVENT_READ)
        for _ in range(3):
            assert selector.select(0) == []
            assert selector.select(0.001) == []
            other.send(b"x")
            for timeout in (None, 1.0, 0, -1):
                assert selector.select(timeout) == [(key, selectors.EVENT_READ)]
            one.recv(1)
