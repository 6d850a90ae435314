"""A cleaner that cleans in the test's own thread: all at once or, while held, a step when it is told to."""

from collections.abc import Iterator

from ottla.base.errors import OttlaError
from ottla.base.ports import Disk
from ottla.log.cleaning.cleaning import clean
from ottla.log.cleaning.job import CleanedSegment, CleaningFailed, CleaningJob, CleaningStep
from ottla.log.cleaning.runner import OnStep


class StepRunner:
    """`jobs` are all that it was given, `stops` how often it was stopped."""

    def __init__(self, disk: Disk) -> None:
        self.jobs: list[CleaningJob] = []
        self.is_held = False
        self.stops = 0
        self._disk = disk
        self._steps: Iterator[CleaningStep] | None = None
        self._on_step: OnStep | None = None

    def run(self, job: CleaningJob, on_step: OnStep) -> None:
        self.jobs.append(job)
        self._steps, self._on_step = clean(self._disk, job), on_step
        while not self.is_held and self._steps is not None:
            self.step()

    def step(self) -> None:
        """Takes the next step of the job, and tells of it."""
        assert self._steps is not None, "no job"
        try:
            step = next(self._steps)
        except OSError as problem:
            step = CleaningFailed(str(problem), problem.errno or 0)
        except OttlaError as problem:
            step = CleaningFailed(str(problem))
        if not isinstance(step, CleanedSegment):
            self._steps = None
        self._tell(step)

    def fail(self, failed: CleaningFailed) -> None:
        """Ends the job as if this had come of it."""
        self._steps = None
        self._tell(failed)

    def stop(self) -> None:
        self.stops += 1
        self._steps = None

    def _tell(self, step: CleaningStep) -> None:
        assert self._on_step is not None
        self._on_step(step)
