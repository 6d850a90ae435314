"""Disk threads of a simulated node: jobs take a while, and finish in an order that chance decides.

As with real threads, a job's work and the word of it are two events. A node that is killed in between has written what
the job wrote, and never hears of it.
"""

from collections import deque
from collections.abc import Callable, Hashable
from random import Random
from typing import Any

from ottla.runtime.attribution import Attributed, current, work_for
from ottla.testing.step_timers import StepTimers

_THREADS = 4
_LONGEST_JOB_S = 0.002
_LONGEST_WAY_BACK_S = 0.0002


class _Job:
    def __init__(
        self,
        key: Hashable,
        function: Callable[[], Any],
        then: Callable[[Any], None],
        failed: Callable[[Exception], None] | None,
        request: Attributed | None,
    ) -> None:
        self.key = key
        self.function = function
        self.then = then
        self.failed = failed
        self.request = request


class SimulatedWorkers:
    """`timers` are for its jobs alone: `close` takes them away."""

    def __init__(self, timers: StepTimers, random: Random) -> None:
        self._timers = timers
        self._random = random
        self._ready: deque[_Job] = deque()
        self._behind: dict[Hashable, deque[_Job]] = {}
        """Jobs that wait for another with their key."""
        self._busy = 0
        self._under_way = 0
        self._when_idle: list[Callable[[], None]] = []
        self._is_closed = False
        self.slowness = 1.0
        """How many times as long as usual jobs take."""

    def __len__(self) -> int:
        """How many jobs are under way."""
        return self._under_way

    def run(
        self,
        function: Callable[[], Any],
        then: Callable[[Any], None],
        failed: Callable[[Exception], None] | None = None,
        *,
        key: Hashable = None,
    ) -> None:
        if self._is_closed:
            return
        self._under_way += 1
        job = _Job(key, function, then, failed, current())
        if key is not None and key in self._behind:
            self._behind[key].append(job)
            return
        if key is not None:
            self._behind[key] = deque()
        self._ready.append(job)
        self._begin_some()

    def when_idle(self, callback: Callable[[], None]) -> None:
        if self._under_way:
            self._when_idle.append(callback)
        else:
            callback()

    def close(self) -> None:
        self._is_closed = True
        self._under_way = 0
        self._timers.close()
        self._ready.clear()
        self._behind.clear()
        self._when_idle.clear()

    def _begin_some(self) -> None:
        while self._ready and self._busy < _THREADS:
            self._busy += 1
            job = self._ready.popleft()
            took_s = self._random.random() * _LONGEST_JOB_S * self.slowness
            self._timers.after(took_s, lambda job=job: self._work(job))  # type: ignore[misc]

    def _work(self, job: _Job) -> None:
        result: Any = None
        problem: Exception | None = None
        try:
            result = job.function()
        except Exception as error:
            problem = error
        way_back_s = self._random.random() * _LONGEST_WAY_BACK_S
        self._timers.after(way_back_s, lambda: self._finish(job, result, problem))

    def _finish(self, job: _Job, result: Any, problem: Exception | None) -> None:
        self._busy -= 1
        self._under_way -= 1
        if job.key is not None:
            if self._behind[job.key]:
                self._ready.append(self._behind[job.key].popleft())
            else:
                del self._behind[job.key]
        self._begin_some()
        if problem is None:
            work_for(job.request, job.then, result)
        elif job.failed is not None:
            work_for(job.request, job.failed, problem)
        else:
            work_for(job.request, _raise, problem)
        if not self._under_way:
            callbacks, self._when_idle = self._when_idle, []
            for callback in callbacks:
                callback()


def _raise(problem: Exception) -> None:
    raise problem
