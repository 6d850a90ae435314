"""Removing the files of segments that have left a log, after `file.delete.delay.ms`.

Unlinking a large file takes its time, so a disk thread does it. Retention and the cleaner leave the
log alone meanwhile (`Partition.is_removing`).
"""

from typing import TYPE_CHECKING

from ottla.broker.partitions.partition import Partition

if TYPE_CHECKING:
    from ottla.broker.partitions.held_partitions import Partitions

_WAIT_S = 0.1


def remove_later(partitions: "Partitions", partition: Partition) -> None:
    """Segments have just been marked as deleted."""
    delay_s = partition.settings.log.file_delete_delay_ms / 1000
    partitions.world.timers.after(delay_s, lambda: _remove(partitions, partition))


def _remove(partitions: "Partitions", partition: Partition) -> None:
    if not partitions.holds(partition):
        return  # The whole directory is on its way out.
    if partition.is_removing:
        remove_later(partitions, partition)
        return
    partition.is_removing = True
    partition.begin_job()

    def on_removed(is_any_in_use: bool) -> None:
        partition.is_removing = False
        partition.end_job()
        if is_any_in_use:
            partitions.world.timers.after(_WAIT_S, lambda: _remove(partitions, partition))

    def on_failed(problem: Exception) -> None:
        on_removed(False)
        if not isinstance(problem, OSError):
            raise problem
        partitions.on_disk_error(partition.directory, problem)

    partitions.world.workers.run(partition.log.remove_deleted, on_removed, on_failed)
