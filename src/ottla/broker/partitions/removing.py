"""Removing the files of segments that have left a log, after `file.delete.delay.ms`.

Unlinking a large file takes its time, so a disk thread does it. Retention and the cleaner leave the
log alone meanwhile (`Partition.is_removing`).
"""

import logging
from typing import TYPE_CHECKING

from ottla.base.ids import TopicPartition
from ottla.broker.partitions.held_partitions import LOG_DIRS
from ottla.broker.partitions.partition import Partition
from ottla.log import file_names
from ottla.log.directory import LogDirectory
from ottla.log.partition_log import PartitionLog
from ottla.runtime.world import World

if TYPE_CHECKING:
    from ottla.broker.partitions.held_partitions import Partitions

_WAIT_S = 0.1


def remove_later(partitions: "Partitions", world: World, partition: Partition) -> None:
    """Segments have just been marked as deleted."""
    delay_s = partition.settings.log.file_delete_delay_ms / 1000
    world.timers.after(delay_s, lambda: _remove(partitions, world, partition))


def _remove(partitions: "Partitions", world: World, partition: Partition) -> None:
    if not partitions.holds(partition):
        return  # The whole directory is on its way out.
    if partition.is_removing:
        remove_later(partitions, world, partition)
        return
    partition.is_removing = True
    partition.begin_job()

    def on_removed(is_any_in_use: bool) -> None:
        partition.is_removing = False
        partition.end_job()
        if is_any_in_use:
            world.timers.after(_WAIT_S, lambda: _remove(partitions, world, partition))

    def on_failed(problem: Exception) -> None:
        on_removed(False)
        if not isinstance(problem, OSError):
            raise problem
        partitions.on_disk_error(partition.directory, problem)

    world.workers.run(partition.log.remove_deleted, on_removed, on_failed)


# Logs that this node no longer serves: those that were deleted, and those that no topic of the cluster has.

_log = logging.getLogger(__name__)


class DiscardedLogs:
    def __init__(self, partitions: "Partitions", world: World) -> None:
        self._partitions = partitions
        self._world = world
        self._to_remove_from: set[str] = set()

    def remove_later(self, directory: LogDirectory, delay_s: float) -> None:
        """Files go after `file.delete.delay.ms`, for readers that are still being sent a part of them."""
        if directory.path not in self._to_remove_from:
            self._to_remove_from.add(directory.path)
            self._world.timers.after(delay_s, lambda: self.remove(directory))

    def remove(self, directory: LogDirectory) -> None:
        """Removes what is marked as deleted in a directory, on a disk thread."""
        self._to_remove_from.discard(directory.path)
        self._world.workers.run(
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
        world = self._world
        del directory.logs[name]
        directory.topic_ids.pop(name, None)
        log.release()
        stray = (
            f"{directory.path}/{file_names.marked_dir(name, world.entropy.randbytes(16).hex(), file_names.STRAY_DIR)}"
        )
        _log.warning("%s belongs to no topic of this cluster; renamed to %s", log.directory, stray)
        try:
            world.disk.rename(log.directory, stray)
            world.disk.sync_dir(directory.path)
        except OSError as problem:
            self._partitions.on_disk_error(directory.path, problem)
