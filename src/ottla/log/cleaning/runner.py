"""Who does the work of a cleaning: a process of its own in a real node, the test itself in a test."""

from collections.abc import Callable
from typing import Protocol

from ottla.log.cleaning.job import CleaningJob, CleaningStep

OnStep = Callable[[CleaningStep], None]


class Runner(Protocol):
    """Does one job at a time. The last step that it tells of is never a segment."""

    def run(self, job: CleaningJob, on_step: OnStep) -> None: ...

    def stop(self) -> None:
        """Ends at once, without a word; the next job starts anew."""
