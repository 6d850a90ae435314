"""Removing the files of segments that have left a log, after `file.delete.delay.ms`.

Unlinking a large file takes its time, so a disk thread does it. Whoever takes segments out of a log leaves it alone
meanwhile (`Partition.is_removing`).
"""

from typing import TYPE_CHECKING

from ottla.broker.partitions.partition import Partition

if TYPE_CHECKING:
    from ottla.broker.context import Broker

_WAIT_S = 0.1


def remove_later(broker: "Broker", partition: Partition) -> None:
    """Segments have just been marked as deleted."""
    delay_s = partition.settings.log.file_delete_delay_ms / 1000
    broker.timers.after(delay_s, lambda: _remove(broker, partition))


def _remove(broker: "Broker", partition: Partition) -> None:
    if broker.partitions.get(partition.name) is not partition:
        return  # The whole directory is on its way out.
    if partition.is_removing:
        remove_later(broker, partition)
        return
    partition.is_removing = True
    partition.begin_job()

    def on_removed(is_any_in_use: bool) -> None:
        partition.is_removing = False
        partition.end_job()
        if is_any_in_use:
            broker.timers.after(_WAIT_S, lambda: _remove(broker, partition))

    def on_failed(problem: Exception) -> None:
        on_removed(False)
        if not isinstance(problem, OSError):
            raise problem
        broker.partitions.on_disk_error(partition.directory, problem)

    broker.workers.run(partition.log.remove_deleted, on_removed, on_failed)
