"""A cleaner of a simulated node: it takes its steps one after the other, with time in between.

A step is cut into its calls to the disk, as jobs of disk threads are: a cleaner is a process beside its node. When it
is stopped, or its node is killed, it makes no more of them.
"""

from collections.abc import Iterator
from random import Random

from ottla.base.errors import OttlaError
from ottla.base.ports import Disk
from ottla.log.cleaning.cleaning import clean
from ottla.log.cleaning.job import CleanedSegment, CleaningFailed, CleaningJob, CleaningStep
from ottla.log.cleaning.runner import OnStep
from ottla.testing.sim.hosts.stepped_thread import SteppedThread
from ottla.testing.step_timers import StepTimer, StepTimers

_STEP_S = 0.01
_LONGEST_PAUSE_S = 0.05


class SimulatedRunner:
    """`timers` are its own: a process that is killed takes no more steps."""

    def __init__(self, disk: Disk, timers: StepTimers, random: Random) -> None:
        self._disk = disk
        self._timers = timers
        self._random = random
        self._timer: StepTimer | None = None
        self._thread: SteppedThread | None = None

    def run(self, job: CleaningJob, on_step: OnStep) -> None:
        self._begin(clean(self._disk, job), on_step)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._thread is not None:
            self._thread.abandon()

    def _begin(self, steps: Iterator[CleaningStep], on_step: OnStep) -> None:
        """The next step."""
        thread = self._thread = SteppedThread(lambda: _next(steps))

        def resume() -> None:
            thread.resume()
            if not thread.is_over:
                self._timer = self._timers.after(self._random.random() ** 3 * _LONGEST_PAUSE_S, resume)
                return
            if thread.problem is not None:
                raise thread.problem
            if isinstance(thread.result, CleanedSegment):
                self._begin(steps, on_step)
            on_step(thread.result)

        self._timer = self._timers.after(_STEP_S, resume)


def _next(steps: Iterator[CleaningStep]) -> CleaningStep:
    try:
        return next(steps)
    except OSError as problem:
        return CleaningFailed(str(problem), problem.errno or 0)
    except OttlaError as problem:
        return CleaningFailed(str(problem))
