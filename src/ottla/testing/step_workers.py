"""Disk threads without threads: each job is done where it is given, or when a test says so.

workers = StepWorkers()
workers.run(job, then)  # done, and reported, when it returns
workers.hold()
workers.run(job, then)  # waits
workers.step()          # done, and reported
"""

from collections import deque
from collections.abc import Callable, Hashable
from typing import Any

from ottla.runtime.attribution import current, work_for


class StepWorkers:
    """`done` counts the jobs that have been done."""

    def __init__(self) -> None:
        self.done = 0
        self._is_holding = False
        self._is_closed = False
        self._jobs: deque[Callable[[], None]] = deque()
        self._under_way = 0
        self._when_idle: list[Callable[[], None]] = []

    def __len__(self) -> int:
        """How many jobs wait."""
        return len(self._jobs)

    def run(
        self,
        function: Callable[[], Any],
        then: Callable[[Any], None],
        failed: Callable[[Exception], None] | None = None,
        *,
        key: Hashable = None,
    ) -> None:
        """Jobs are done one after the other in the order given, whatever their keys."""
        if self._is_closed:
            return
        self._under_way += 1
        if self._is_holding:
            request = current()
            self._jobs.append(lambda: work_for(request, self._do, function, then, failed))
        else:
            self._do(function, then, failed)

    def _do(
        self, function: Callable[[], Any], then: Callable[[Any], None], failed: Callable[[Exception], None] | None
    ) -> None:
        self._under_way -= 1
        self.done += 1
        try:
            result = function()
        except Exception as problem:
            if failed is None:
                raise
            failed(problem)
        else:
            then(result)
        if not self._under_way:
            callbacks, self._when_idle = self._when_idle, []
            for callback in callbacks:
                callback()

    def hold(self) -> None:
        """From now on jobs wait for `step` or `let_go`."""
        self._is_holding = True

    def step(self) -> None:
        """Does what has waited so far; what that leads to waits, if jobs are held."""
        for _ in range(len(self._jobs)):
            self._jobs.popleft()()

    def let_go(self) -> None:
        """Does what was held, then what that leads to, in order, and continues without holding."""
        while self._jobs:
            self._jobs.popleft()()
        self._is_holding = False

    def when_idle(self, callback: Callable[[], None]) -> None:
        if self._under_way:
            self._when_idle.append(callback)
        else:
            callback()

    def close(self) -> None:
        """Forgets the jobs that wait."""
        self._is_closed = True
        self._jobs.clear()
        self._when_idle.clear()
