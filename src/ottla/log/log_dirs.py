"""All log directories of a node (`log.dirs`). One that fails goes offline; the others continue."""

from collections.abc import Callable, Sequence

from ottla.base.errors import ProtocolError, StorageError
from ottla.base.ids import TopicPartition, Uuid
from ottla.base.ports import Clock, Disk
from ottla.log.directory import UNKNOWN_BROKER_EPOCH, LogDirectory
from ottla.log.log_config import LogConfig
from ottla.log.partition_log import DEFAULT_PRODUCER_EXPIRATION_MS, PartitionLog


class LogDirs:
    """The directories that are in use, by path, and those that are offline, with the reason."""

    def __init__(
        self,
        disk: Disk,
        paths: Sequence[str],
        clock: Clock,
        *,
        config_of: Callable[[str], LogConfig],
        producer_expiration_ms: int = DEFAULT_PRODUCER_EXPIRATION_MS,
        unique_name: Callable[[], str] | None = None,
    ) -> None:
        """Takes the lock of every directory. One that another process uses is an error; one that fails goes offline."""
        self.online: dict[str, LogDirectory] = {}
        self.offline: dict[str, Exception] = {}
        try:
            for path in paths:
                try:
                    self.online[path] = LogDirectory(
                        disk,
                        path,
                        clock,
                        config_of=config_of,
                        producer_expiration_ms=producer_expiration_ms,
                        unique_name=unique_name,
                    )
                except OSError as problem:
                    self.offline[path] = problem
        except BaseException:
            self.abandon()
            raise

    def open_all(self, progress: Callable[[TopicPartition, int, int], None] | None = None) -> None:
        """Opens every partition of every directory. The broker that takes them up looks for `doubles` first."""
        for path, directory in list(self.online.items()):
            try:
                directory.open_all(progress)
            except (OSError, StorageError, ProtocolError) as problem:
                self.take_offline(path, problem)

    def epoch_of_clean_stop(self) -> int:
        """The broker's epoch when it stopped, if every directory is there and tells of the same clean stop.

        One that is offline, new, or was offline at the stop lacks records, and so does one in which a log was found
        damaged: then the stop was not clean (KIP-966).
        """
        epochs = {
            one.broker_epoch if one.was_clean and not one.has_lost_records else UNKNOWN_BROKER_EPOCH
            for one in self.online.values()
        }
        return epochs.pop() if len(epochs) == 1 and not self.offline else UNKNOWN_BROKER_EPOCH

    def doubles(self) -> dict[TopicPartition, list[LogDirectory]]:
        """Partitions that are in several directories, as a crash at the end of a move leaves one."""
        homes: dict[TopicPartition, list[LogDirectory]] = {}
        for directory in self.online.values():
            for partition in directory.logs:
                homes.setdefault(partition, []).append(directory)
        return {partition: directories for partition, directories in homes.items() if len(directories) > 1}

    def get(self, partition: TopicPartition) -> PartitionLog | None:
        for directory in self.online.values():
            if log := directory.logs.get(partition):
                return log
        return None

    def create(self, partition: TopicPartition, topic_id: Uuid) -> PartitionLog:
        """Begins a partition in the directory that has the fewest."""
        if not self.online:
            raise StorageError(f"no log directory is left to put {partition} into")
        directory = min(self.online.values(), key=lambda candidate: len(candidate.logs))
        return directory.create(partition, topic_id)

    def take_offline(self, path: str, problem: Exception) -> list[TopicPartition]:
        """Stops using a directory; returns the partitions that are gone with it."""
        directory = self.online.pop(path)
        self.offline[path] = problem
        lost = list(directory.logs)
        directory.abandon()
        return lost

    def distrust(self, partition: TopicPartition) -> None:
        for directory in self.online.values():
            directory.distrust(partition)

    def checkpoint(self) -> None:
        for path, directory in list(self.online.items()):
            try:
                directory.checkpoint()
            except OSError as problem:
                self.take_offline(path, problem)

    def close(self, broker_epoch: int = UNKNOWN_BROKER_EPOCH) -> None:
        for path, directory in list(self.online.items()):
            try:
                directory.close(broker_epoch)
            except OSError as problem:
                self.take_offline(path, problem)
        self.online.clear()

    def abandon(self) -> None:
        for directory in self.online.values():
            directory.abandon()
        self.online.clear()
