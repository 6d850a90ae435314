"""What a producer holds for one topic: a queue of batches for each partition, and the batches that take records."""

from ottla.base.ids import ZERO_UUID
from ottla.client.producer.append import OpenBatches
from ottla.client.producer.batch import ProducerBatch
from ottla.client.producer.partition_queue import PartitionQueue
from ottla.client.producer.producer_settings import ProducerSettings


class TopicQueues:
    """One topic's. `ratio` is to which part of their size its records are compressed, by experience."""

    __slots__ = ("_settings", "is_wanted", "name", "open", "queues", "ratio", "topic_id", "used_s")

    def __init__(self, name: str, partition_count: int, settings: ProducerSettings) -> None:
        self.name = name
        self.topic_id = ZERO_UUID
        self._settings = settings
        self.open = self._open_batches(partition_count)
        self.queues = [PartitionQueue(name, index) for index in range(partition_count)]
        self.ratio = 1.0
        self.used_s = 0.0
        self.is_wanted = True
        """Its metadata is kept up to date."""

    def grow(self, partition_count: int) -> None:
        self.open.grow(partition_count)
        self.queues += [PartitionQueue(self.name, index) for index in range(len(self.queues), partition_count)]

    def cut(self, partition_count: int) -> list[ProducerBatch]:
        """The topic was made again with fewer partitions. Returns what waited for those that are gone."""
        gone, before = self.queues[partition_count:], self.open
        for queue in gone:
            before.put(queue.partition, None)  # other threads may append at any moment, without the lock
        del self.queues[partition_count:]
        self.open = self._open_batches(partition_count)
        for index in range(partition_count):
            self.open.put(index, before.get(index))
        batches = [batch for queue in gone for batch in queue.waiting]
        for batch in batches:
            batch.is_closed = True
        return batches

    def _open_batches(self, partition_count: int) -> OpenBatches:
        return OpenBatches(partition_count, max(self._settings.batch_size, 1) * 2, self._settings.ignores_keys)
