"""A cleaner of a simulated node: it takes its steps one after the other, with time in between."""

from ottla.base.ports import Disk
from ottla.log.cleaning.job import CleanedSegment, CleaningJob, CleaningStep
from ottla.log.cleaning.runner import OnStep
from ottla.testing.step_cleaner import StepRunner
from ottla.testing.step_timers import StepTimer, StepTimers

_STEP_S = 0.01


class SimulatedRunner:
    """`timers` are its own: a process that is killed takes no more steps."""

    def __init__(self, disk: Disk, timers: StepTimers) -> None:
        self._runner = StepRunner(disk)
        self._runner.is_held = True
        self._timers = timers
        self._timer: StepTimer | None = None

    def run(self, job: CleaningJob, on_step: OnStep) -> None:
        def tell(step: CleaningStep) -> None:
            if isinstance(step, CleanedSegment):
                self._timer = self._timers.after(_STEP_S, self._runner.step)
            on_step(step)

        self._runner.run(job, tell)
        self._timer = self._timers.after(_STEP_S, self._runner.step)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._runner.stop()
