"""The cleaning of one partition, from the decision to the checkpoint.

1. What is to be cleaned is made durable, and the checkpoint says so: recovery must never wonder about the holes that
   cleaning leaves (docs/decisions/0004-durability-of-the-log.md).
2. A `Runner`, in a process of its own, writes new segments, and tells of each.
3. Each is swapped in: renamed here, made durable on a disk thread, put to use here. One at a time, in order.
4. How far the log is clean goes into `cleaner-offset-checkpoint`.

The log continues being written, and may change under the cleaner: retention or a truncation can take away what is being
cleaned, the partition can be deleted, its directory fail. Then the task ends where it is; what it has swapped in by
then is good, and the next cleaning begins where this one did.
"""

from collections import deque
from collections.abc import Callable
from enum import Enum
from errno import ENOENT
from functools import partial
from typing import TYPE_CHECKING, Any

from ottla.broker.partitions.held_partitions import LOG_DIRS
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.removing import remove_later
from ottla.log.cleaning.job import CleanedSegment, CleaningDone, CleaningFailed, CleaningJob, CleaningStep
from ottla.log.cleaning.planning import CleanerLimits, cleanable, plan_cleaning
from ottla.log.cleaning.replacement import Replacement, remove_unfinished
from ottla.log.cleaning.runner import Runner
from ottla.log.directory import LogDirectory
from ottla.runtime.apart import apart
from ottla.runtime.world import World

if TYPE_CHECKING:
    from ottla.broker.partitions.held_partitions import Partitions

_WAIT_S = 0.02


class Outcome(Enum):
    CLEANED = "cleaned"
    GIVEN_UP = "given up"
    """The log is not what it was, or the disk is full. Another time."""
    CRASHED = "crashed"
    """The process ended in the middle. That may have been a person, or the system for want of memory."""
    UNCLEANABLE = "uncleanable"


class CleaningTask:
    """`on_ended` is called once, with the reason if there is one."""

    def __init__(
        self,
        partitions: "Partitions",
        world: World,
        partition: Partition,
        runner: Runner,
        limits: CleanerLimits,
        seed: bytes,
        on_ended: Callable[["CleaningTask", Outcome, str], None],
    ) -> None:
        self.partition = partition
        self.runner = runner
        self.done: CleaningDone | None = None
        self._partitions = partitions
        self._world = world
        self._limits = limits
        self._seed = seed
        self._on_ended = on_ended
        self._job: CleaningJob | None = None
        self._cuts = 0
        self._to_swap: deque[CleanedSegment] = deque()
        self._is_swapping = False
        self._has_ended = False

    def start(self) -> None:
        self._step(self._make_durable)

    def _step(self, step: Callable[..., None], *arguments: Any) -> None:
        """Every step of a task. One that raises ends it, or it would keep its place among those that clean for good."""
        if not apart(self._world.timers, step, *arguments):
            self._end(Outcome.CRASHED, "a fault of this node's own")

    def stop(self) -> None:
        """Ends without telling. A swap that is being made durable is still finished."""
        self._has_ended = True
        self.runner.stop()

    def give_up_if_gone(self) -> None:
        if self._directory() is None:
            self._end(Outcome.GIVEN_UP, "the partition is no longer here")

    def give_up(self, reason: str) -> None:
        self._end(Outcome.GIVEN_UP, reason)

    def _directory(self) -> LogDirectory | None:
        """The partition's directory, as long as the partition is served from it."""
        partitions, partition = self._partitions, self.partition
        if self._has_ended or not partitions.holds(partition):
            return None
        return partitions.logs.online.get(partition.directory)

    # 1. Durable

    def _make_durable(self) -> None:
        directory = self._directory()
        if directory is None:
            self.give_up_if_gone()
            return
        log, name = self.partition.log, self.partition.name
        wanted = cleanable(log, directory.cleaner_offset(name), self._world.clock.now_ms()).end_offset
        if log.recovery_point < wanted:
            self._partitions.flushing.flush(self.partition)
            self._world.timers.after(_WAIT_S, partial(self._step, self._make_durable))
        elif directory.saved_recovery_point(name) < wanted:
            self._world.workers.run(
                directory.checkpoint,
                lambda _: self._step(self._begin),
                partial(self._step, self._on_problem, "its checkpoint"),
                key=LOG_DIRS,
            )
        else:
            self._begin()

    # 2. Cleaned

    def _begin(self) -> None:
        directory = self._directory()
        if directory is None:
            self.give_up_if_gone()
            return
        log, name, now_ms = self.partition.log, self.partition.name, self._world.clock.now_ms()
        part = cleanable(log, directory.cleaner_offset(name), now_ms, directory.saved_recovery_point(name))
        if part.cleanable_bytes == 0:
            self._end(Outcome.GIVEN_UP, "there is nothing left to clean")
            return
        self._job = plan_cleaning(log, part, self._limits, now_ms, self._seed)
        self._cuts = log.cut_count
        self.runner.run(self._job, partial(self._step, self._on_step))

    def _on_step(self, step: CleaningStep) -> None:
        if self._directory() is None:
            self.give_up_if_gone()
        elif isinstance(step, CleanedSegment):
            self._to_swap.append(step)
            self._swap_next()
        elif isinstance(step, CleaningDone):
            self.done = step
            self._swap_next()
        else:
            self._on_failed(step)

    def _on_failed(self, failed: CleaningFailed) -> None:
        if failed.is_put_off:
            self._end(Outcome.GIVEN_UP, failed.reason)
        elif failed.errno and not (failed.errno == ENOENT and self._has_changed()):
            self._partitions.on_disk_error(self.partition.directory, OSError(failed.errno, failed.reason))
            self._end(Outcome.GIVEN_UP, failed.reason)
        elif failed.errno:
            self._end(Outcome.GIVEN_UP, "its log has changed")
        else:
            self._end(Outcome.CRASHED if failed.is_crash else Outcome.UNCLEANABLE, failed.reason)

    def _has_changed(self) -> bool:
        """Whether segments that were to be cleaned have gone."""
        assert self._job is not None
        bases = {segment.base_offset for segment in self.partition.log.segments}
        return not bases.issuperset(self._job.base_offsets)

    # 3. Swapped in

    def _swap_next(self) -> None:
        if self._is_swapping or self._has_ended:
            return
        if not self._to_swap:
            if self.done is not None:
                self._save(self.done)
            return
        if self.partition.is_removing:
            self._world.timers.after(_WAIT_S, partial(self._step, self._swap_next))
            return
        if self._directory() is None:
            self.give_up_if_gone()
            return
        if self.partition.log.cut_count != self._cuts:
            # It may have segments that begin at the same offsets again, with other records.
            self._end(Outcome.GIVEN_UP, "its log has changed")
            return
        try:
            replacement = self.partition.log.start_replacement(self._to_swap.popleft().base_offsets)
        except OSError as problem:
            self._on_problem("a swap", problem)
            return
        if replacement is None:
            self._end(Outcome.GIVEN_UP, "its log has changed")
            return
        self._is_swapping = True
        self.partition.begin_job()
        self._world.workers.run(
            replacement.run,
            lambda _: self._step(self._on_durable, replacement),
            partial(self._step, self._on_swap_failed, replacement),
        )

    def _on_durable(self, replacement: Replacement) -> None:
        self._is_swapping = False
        partitions, partition = self._partitions, self.partition
        was_swapped = False
        try:
            if partitions.holds(partition):  # Else its files go, or are not to be touched.
                was_swapped = partition.log.finish_replacement(replacement)
        except OSError as problem:
            self._on_problem("a swap", problem)
            return
        except Exception as problem:
            partitions.on_broken(partition, problem)  # Neither as it was nor as it was to be.
            self.give_up_if_gone()
            return
        finally:
            partition.end_job()
        if was_swapped:
            remove_later(partitions, self._world, partition)
            self._swap_next()
        else:
            self._end(Outcome.GIVEN_UP, "its log has changed")

    def _on_swap_failed(self, _: Replacement, problem: Exception) -> None:
        self._is_swapping = False
        self.partition.end_job()
        self._on_problem("a swap", problem)

    # 4. Saved

    def _save(self, done: CleaningDone) -> None:
        directory = self._directory()
        if directory is None:
            self.give_up_if_gone()
            return
        self._world.workers.run(
            partial(self._save_offset, directory, done.clean_offset, self._cuts),
            lambda _: self._end(Outcome.CLEANED, ""),
            partial(self._step, self._on_problem, "its checkpoint"),
            key=LOG_DIRS,
        )

    def _save_offset(self, directory: LogDirectory, clean_offset: int, cuts: int) -> None:
        """On a disk thread, where nothing else makes or deletes logs: the partition may be gone by now, or cut."""
        name, log = self.partition.name, self.partition.log
        directory.save_cleaner_offset(
            name, clean_offset, still=lambda: directory.logs.get(name) is log and log.cut_count == cuts
        )

    # The end

    def _on_problem(self, where: str, problem: Exception) -> None:
        """Half of a swap is not something to continue with, whatever the reason: the directory is."""
        if not isinstance(problem, OSError):
            raise problem
        self._partitions.fail_directory(self.partition.directory, problem)
        self._end(Outcome.GIVEN_UP, f"the disk failed at {where}: {problem}")

    def _end(self, outcome: Outcome, reason: str) -> None:
        if self._has_ended:
            return
        is_there = self._directory() is not None  # Else it is on its way out, or is not to be touched.
        self._has_ended = True
        if outcome is not Outcome.CLEANED:
            self.runner.stop()
        if outcome is Outcome.CLEANED or not is_there:
            self._on_ended(self, outcome, reason)
        else:
            self._remove_unfinished(lambda: self._on_ended(self, outcome, reason))

    def _remove_unfinished(self, then: Callable[[], None]) -> None:
        """The task has ended when that is over: what the next one of the same partition writes has the same names."""
        self.partition.begin_job()

        def on_over(_: object) -> None:  # If it failed, too: the next cleaning tries again.
            try:
                self.partition.end_job()
            finally:
                then()  # Who waited for the partition may raise; the place among those that clean is free all the same.

        self._world.workers.run(
            partial(remove_unfinished, self._world.disk, self.partition.log.directory),
            on_over,
            on_over,
            key=LOG_DIRS,
        )
