"""Logs that this node no longer serves: those that were deleted, and those that no topic of the cluster has."""

import logging
from typing import TYPE_CHECKING

from ottla.base.ids import TopicPartition
from ottla.broker.partitions.held_partitions import LOG_DIRS
from ottla.log import names
from ottla.log.directory import LogDirectory
from ottla.log.partition_log import PartitionLog

if TYPE_CHECKING:
    from ottla.broker.partitions.held_partitions import Partitions

_log = logging.getLogger(__name__)


class DiscardedLogs:
    def __init__(self, partitions: "Partitions") -> None:
        self._partitions = partitions
        self._to_remove_from: set[str] = set()

    def remove_later(self, directory: LogDirectory, delay_s: float) -> None:
        """Files go after `file.delete.delay.ms`, for readers that are still being sent a part of them."""
        if directory.path not in self._to_remove_from:
            self._to_remove_from.add(directory.path)
            self._partitions.world.timers.after(delay_s, lambda: self.remove(directory))

    def remove(self, directory: LogDirectory) -> None:
        """Removes what is marked as deleted in a directory, on a disk thread."""
        self._to_remove_from.discard(directory.path)
        self._partitions.world.workers.run(
            directory.remove_condemned,
            lambda _: None,
            lambda problem: self.on_problem(directory.path, problem),
            key=LOG_DIRS,
        )

    def on_problem(self, path: str, problem: Exception) -> None:
        if not isinstance(problem, OSError):
            raise problem
        self._partitions.on_disk_error(path, problem)

    def set_aside(self, directory: LogDirectory, name: TopicPartition, log: PartitionLog) -> None:
        """Renames a log that no topic of the cluster has. Nothing of it is deleted."""
        world = self._partitions.world
        del directory.logs[name]
        directory.topic_ids.pop(name, None)
        log.release()
        stray = f"{directory.path}/{names.marked_dir(name, world.entropy.randbytes(16).hex(), names.STRAY_DIR)}"
        _log.warning("%s belongs to no topic of this cluster; it is now %s", log.directory, stray)
        try:
            world.disk.rename(log.directory, stray)
            world.disk.sync_dir(directory.path)
        except OSError as problem:
            self._partitions.on_disk_error(directory.path, problem)
