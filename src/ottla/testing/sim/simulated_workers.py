"""Disk threads of a simulated node: jobs take a while, and finish in an order that chance decides.

Theory of operation. A job is cut into its calls to the disk (`MemoryDisk.on_call`): at a share of them it pauses for a
moment, and what the loop and other jobs do meanwhile comes in between. It is the same the other way round: where the
loop calls the disk, jobs that have paused may continue. So whatever two threads can do to each other around a call,
chance does to them; what comes between two calls of a job is atomic here, though not in a real node.

How often jobs pause, and for how long, is drawn anew for each life of a node: everywhere and briefly, or seldom and
long, as when a disk thread has to wait behind others.

As with real threads, a job's work and the word of it are two events. A node that is killed in between has written what
the job wrote, and never hears of it. A node that is killed while a job has paused never makes the call it paused at.
"""

from collections import deque
from collections.abc import Callable, Hashable
from random import Random
from typing import Any, Final, NamedTuple

from ottla.runtime.attribution import Attributed, current, work_for
from ottla.testing.sim.hosts.stepped_thread import SteppedThread, running, use_stepped_locks
from ottla.testing.step_timers import StepTimers

_THREADS = 4
_LONGEST_JOB_S = 0.002
_LONGEST_WAY_BACK_S = 0.0002


class Cutting(NamedTuple):
    """How jobs are cut into their calls."""

    share: float
    """Of the calls, those that a job pauses at."""
    longest_s: float
    """How long a pause may be; short is likelier."""


CUTTINGS: Final = (Cutting(1.0, 0.001), Cutting(0.3, 0.005), Cutting(0.05, 0.1), Cutting(0.01, 1.0))
_LONGEST_PAUSE_S: Final = 2.0
"""However slow the disk is."""
_LOOP_LETS_GO_ON: Final = 0.1
"""At how many of its own calls the loop finds that a job has gone on."""


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
        self.thread = SteppedThread(function)
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
        self._paused: dict[_Job, None] = {}
        self._cutting = random.choice(CUTTINGS)
        use_stepped_locks()
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
        for job in self._paused:
            job.thread.abandon()
        self._paused.clear()
        self._ready.clear()
        self._behind.clear()
        self._when_idle.clear()

    def _begin_some(self) -> None:
        while self._ready and self._busy < _THREADS:
            self._busy += 1
            job = self._ready.popleft()
            took_s = self._random.random() * _LONGEST_JOB_S * self.slowness
            self._timers.after(took_s, lambda job=job: self._work(job))  # type: ignore[misc]

    def on_call(self, operation: str) -> None:
        """Something of the node is about to call the disk: a job, which may pause here, or the loop."""
        job = running()
        if job is not None:
            if self._random.random() < self._cutting.share:
                job.pause()
        elif self._paused and self._timers.agenda.is_firing and self._random.random() < _LOOP_LETS_GO_ON:
            job = self._random.choice(list(self._paused)).thread
            if not job.is_over:
                job.resume()

    def _work(self, job: _Job) -> None:
        """The job continues to where it pauses next, unless it has meanwhile come to its end."""
        self._paused.pop(job, None)
        if not job.thread.is_over:
            job.thread.resume()
        problem = job.thread.problem
        if problem is not None and not isinstance(problem, Exception):
            raise problem
        if job.thread.is_over:
            way_back_s = self._random.random() * _LONGEST_WAY_BACK_S
            self._timers.after(way_back_s, lambda: self._finish(job))
        else:
            self._paused[job] = None
            paused_s = self._random.random() ** 3 * self._cutting.longest_s * self.slowness
            paused_s = min(paused_s, _LONGEST_PAUSE_S)
            self._timers.after(paused_s, lambda: self._work(job))

    def _finish(self, job: _Job) -> None:
        result, problem = job.thread.result, job.thread.problem
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
