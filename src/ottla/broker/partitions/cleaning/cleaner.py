"""The log cleaner: which logs are due for compaction, and who cleans them.

Theory of operation. Every `log.cleaner.backoff.ms`, and after every cleaning, all compacted logs are looked at, a few
at a time so that requests come in between, and the one with the largest dirty part is cleaned; up to
`log.cleaner.threads` at the same time, each in a process of its own. The processes end when nothing is due.

A log that cannot be cleaned, because what is in it is damaged or because the process keeps crashing over it, is left
alone from then on, named in the node's log, and counted by a metric; its topic continues being served, and grows.

What plans a cleaning is imported when the first log is looked at: a node has started by then.
"""

import logging
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ottla.base.ids import TopicPartition
from ottla.base.ports import Timer
from ottla.broker.partitions.partition import Partition
from ottla.log.errors import CorruptFile
from ottla.records.header import CorruptBatch
from ottla.runtime.apart import apart
from ottla.runtime.world import World

if TYPE_CHECKING:
    from ottla.broker.partitions.cleaning.cleaner_task import CleaningTask, Outcome
    from ottla.broker.partitions.held_partitions import Partitions
    from ottla.broker.partitions.moves.replica_moves import ReplicaMoves
    from ottla.log.cleaning.job import CleaningStats
    from ottla.log.cleaning.planning import Cleanable, CleanerLimits
    from ottla.log.cleaning.runner import Runner

_log = logging.getLogger(__name__)

_SLICE_S = 0.005
_LEAST_REST_S = 0.1
_MB = 1 << 20
_MOST_CRASHES = 3
_SEED_BYTES = 16


class LogCleaner:
    """Begins with `start`, if `log.cleaner.enable` is on. The figures are for the metrics."""

    def __init__(self, partitions: "Partitions", world: World, replica_moves: "ReplicaMoves") -> None:
        self._replica_moves = replica_moves
        self.max_dirty_ratio = 0.0
        self.max_overdue_ms = 0
        self.last_look_ms = world.clock.now_ms()
        self.last_stats: CleaningStats | None = None
        """Of the cleaning that has ended last."""
        self._partitions = partitions
        self._world = world
        self._make_runner = world.make_cleaner
        self._elapsed_s = world.clock.elapsed_s
        self._randbytes = world.entropy.randbytes
        self._tasks: dict[TopicPartition, CleaningTask] = {}
        self._idle: list[Runner] = []
        self._uncleanable: dict[TopicPartition, Partition] = {}
        self._crashes: Counter[TopicPartition] = Counter()
        self._round: Iterator[Partition] | None = None
        self._best: tuple[Partition, Cleanable] | None = None
        self._timer: Timer | None = None

    def start(self) -> None:
        if self._partitions.node_settings.effective.flag("log.cleaner.enable"):
            self._rest()

    def stop(self) -> None:
        """Ends the cleanings that are under way, where they are."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._round = None
        for task in self._tasks.values():
            task.stop()
        self._tasks.clear()
        self._end_idle()

    @property
    def uncleanable(self) -> list[Partition]:
        """Partitions that are skipped. One that was deleted meanwhile, or made again, is not among them."""
        partitions = self._partitions
        self._uncleanable = {name: one for name, one in self._uncleanable.items() if partitions.get(name) is one}
        return list(self._uncleanable.values())

    def uncleanable_bytes(self, partition: Partition) -> int:
        """How much of a partition would have been cleaned by now."""
        part = self._cleanable(partition)
        return part.cleanable_bytes if part else 0

    def leave_alone(self, name: TopicPartition) -> None:
        """The log is about to move to another directory. It is cleaned again when it is there."""
        if task := self._tasks.get(name):
            task.give_up("it moves to another directory")

    # Looking

    def _rest(self) -> None:
        rest_s = max(self._partitions.node_settings.effective.integer("log.cleaner.backoff.ms") / 1000, _LEAST_REST_S)
        self._timer = self._world.timers.after(rest_s, self._on_rested)

    def _on_rested(self) -> None:
        self._rest()
        for task in list(self._tasks.values()):
            task.give_up_if_gone()
        self.look()

    def look(self) -> None:
        """Begins a round over all partitions, unless one is under way or nobody is free to clean."""
        if self._round is None and len(self._tasks) < self._threads() and self._timer is not None:
            self.last_look_ms = self._world.clock.now_ms()
            self.max_dirty_ratio, self.max_overdue_ms, self._best = 0.0, 0, None
            self._round = iter(list(self._partitions.values()))
            self._clean_next()

    def _threads(self) -> int:
        return max(self._partitions.node_settings.effective.integer("log.cleaner.threads"), 1)

    def _clean_next(self) -> None:
        if self._round is None:
            return  # Stopped.
        stop_s = self._elapsed_s() + _SLICE_S
        for partition in self._round:
            apart(self._world.timers, self._consider, partition)
            if self._elapsed_s() >= stop_s:
                self._world.timers.after(0, self._clean_next)
                return
        self._round = None
        if self._best is None:
            self._end_idle()
        else:
            self._clean(*self._best)

    def _consider(self, partition: Partition) -> None:
        config = partition.log.config
        if not config.is_compacted or partition.name in self._tasks or partition.name in self._uncleanable:
            return
        if self._replica_moves.is_moving(partition.name):
            return
        part = self._cleanable(partition)
        if part is None or part.clean_bytes + part.cleanable_bytes == 0:
            return
        self.max_dirty_ratio = max(self.max_dirty_ratio, part.ratio)
        self.max_overdue_ms = max(self.max_overdue_ms, part.overdue_ms)
        if part.is_due(config.min_cleanable_dirty_ratio) and (self._best is None or part.ratio > self._best[1].ratio):
            self._best = partition, part

    def _cleanable(self, partition: Partition) -> "Cleanable | None":
        """None for a partition whose log cannot be looked at."""
        from ottla.log.cleaning.planning import cleanable

        partitions = self._partitions
        directory = partitions.logs.online.get(partition.directory)
        if directory is None or not partitions.holds(partition):
            return None
        try:
            return cleanable(partition.log, directory.cleaner_offset(partition.name), self._world.clock.now_ms())
        except OSError as problem:
            partitions.on_disk_error(partition.directory, problem)
        except (CorruptFile, CorruptBatch) as problem:
            self._give_up_on(partition, str(problem))
        return None

    # Cleaning

    def _clean(self, partition: Partition, part: "Cleanable") -> None:
        from ottla.broker.partitions.cleaning.cleaner_task import CleaningTask

        if not self._partitions.holds(partition):
            return  # Gone while the others were looked at.
        if self._replica_moves.is_moving(partition.name):
            return
        _log.info("cleaning %s: %.1f of %.1f MB are dirty", partition.name, *_megabytes(part))
        runner = self._idle.pop() if self._idle else self._make_runner()
        task = CleaningTask(
            self._partitions,
            self._world,
            partition,
            runner,
            self._limits(),
            self._randbytes(_SEED_BYTES),
            self._on_ended,
        )
        self._tasks[partition.name] = task
        task.start()
        self.look()

    def _limits(self) -> "CleanerLimits":
        """Those of all cleanings, shared among as many as there may be."""
        from ottla.log.cleaning.planning import CleanerLimits

        config, threads = self._partitions.node_settings.effective, self._threads()
        return CleanerLimits(
            map_bytes=config.integer("log.cleaner.dedupe.buffer.size") // threads,
            map_load_factor=config.number("log.cleaner.io.buffer.load.factor"),
            buffer_bytes=config.integer("log.cleaner.io.buffer.size") // threads,
            bytes_per_s=config.number("log.cleaner.io.max.bytes.per.second") / threads,
        )

    def _on_ended(self, task: "CleaningTask", outcome: "Outcome", reason: str) -> None:
        from ottla.broker.partitions.cleaning.cleaner_task import Outcome

        partition = task.partition
        if self._tasks.get(partition.name) is task:
            del self._tasks[partition.name]
        self._idle.append(task.runner)
        if outcome is Outcome.GIVEN_UP:
            _log.info("stopped cleaning %s: %s", partition.name, reason)
            return  # Not at once again: what was in the way may still be.
        if outcome is Outcome.CRASHED:
            self._crashes[partition.name] += 1
        else:
            del self._crashes[partition.name]
        if outcome is Outcome.UNCLEANABLE or self._crashes[partition.name] >= _MOST_CRASHES:
            self._give_up_on(partition, reason)
        if task.done is not None:
            self._report(partition, task.done.stats)
        self._world.timers.after(0, self.look)

    def _give_up_on(self, partition: Partition, reason: str) -> None:
        _log.warning("%s cannot be cleaned, and is marked uncleanable: %s", partition.name, reason)
        self._uncleanable[partition.name] = partition

    def _report(self, partition: Partition, stats: "CleaningStats") -> None:
        self.last_stats = stats
        _log.info(
            "cleaned %s in %.1f s: %.1f MB with %d records became %.1f MB with %d; dropped %d records without a key",
            partition.name,
            stats.elapsed_s,
            stats.bytes_read / _MB,
            stats.records_read,
            stats.bytes_written / _MB,
            stats.records_written,
            stats.keyless_records,
        )

    def _end_idle(self) -> None:
        while self._idle:
            self._idle.pop().stop()


def _megabytes(part: "Cleanable") -> tuple[float, float]:
    return part.cleanable_bytes / _MB, (part.clean_bytes + part.cleanable_bytes) / _MB
