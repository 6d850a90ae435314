"""Timers by name, most of which are moved again and again and never fire: the sessions of members.

A timer that is moved to later stays where it is on the loop. When its old moment comes it finds that it has been moved,
and waits on for the rest: so a heartbeat costs the loop nothing. One that is moved to earlier is set anew.
"""

from collections.abc import Callable, Sequence
from typing import Any

from ottla.base.ports import Timer as LoopTimer
from ottla.base.ports import Timers
from ottla.machines.coordinator_machine import CoordinatorDecision, Timer, TimerName
from ottla.runtime.attribution import work_for

Expire = Callable[[Any, int], CoordinatorDecision[Any]]

_EARLY_S = 0.0005  # what a loop's timers may be early by, and is not worth another wait


class NamedTimers:
    """`fire` is given a timer's name and what it was set to do, once it is due and no longer set."""

    def __init__(self, timers: Timers, fire: Callable[[TimerName, Expire], None]) -> None:
        self._timers = timers
        self._fire = fire
        self._set: dict[TimerName, _Armed] = {}

    def __len__(self) -> int:
        return len(self._set)

    def set(self, timers: Sequence[Timer]) -> None:
        """Sets or moves those that have something to do, and drops the others."""
        for name, delay_ms, expire in timers:
            armed = self._set.get(name)
            if expire is None:
                if armed is not None:
                    del self._set[name]
                    armed.cancel()
                continue
            due_s = self._timers.now_s() + max(delay_ms, 0) / 1000
            if armed is None:
                armed = self._set[name] = _Armed(self, name)
            armed.expire = expire
            armed.due_s = due_s
            if due_s < armed.wakes_s:
                armed.cancel()
                self._arm(armed, delay_ms / 1000)

    def _arm(self, armed: "_Armed", delay_s: float) -> None:
        armed.wakes_s = armed.due_s
        work_for(None, self._set_loop_timer, armed, delay_s)  # It outlives the request that sets it.

    def _set_loop_timer(self, armed: "_Armed", delay_s: float) -> None:
        armed.loop_timer = self._timers.after(max(delay_s, 0), armed)

    def wake(self, armed: "_Armed") -> None:
        left_s = armed.due_s - self._timers.now_s()
        if left_s > _EARLY_S:
            self._arm(armed, left_s)
        else:
            del self._set[armed.name]
            self._fire(armed.name, armed.expire)

    def expire(self, name: TimerName) -> None:
        """Fires a timer that is set, though it is not due."""
        armed = self._set.pop(name)
        armed.cancel()
        self._fire(name, armed.expire)

    def names(self) -> list[TimerName]:
        """Of those that are set."""
        return list(self._set)

    def close(self) -> None:
        for armed in self._set.values():
            armed.cancel()
        self._set.clear()


class _Armed:
    """A timer that is set, and what the loop's timer calls. Every member of every group has one."""

    __slots__ = ("due_s", "expire", "loop_timer", "name", "owner", "wakes_s")

    expire: Expire

    def __init__(self, owner: NamedTimers, name: TimerName) -> None:
        self.owner = owner
        self.name = name
        self.due_s = self.wakes_s = float("inf")
        self.loop_timer: LoopTimer | None = None

    def __call__(self) -> None:
        self.owner.wake(self)

    def cancel(self) -> None:
        if self.loop_timer is not None:
            self.loop_timer.cancel()
