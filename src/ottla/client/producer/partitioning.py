"""Which partition a record without a key goes to: one for a batch's worth, then another (KIP-480, KIP-794).

The next one is drawn by lot. With `partitioner.adaptive.partitioning.enable` a partition with a longer queue, whose
broker takes longer, is drawn more seldom; and one whose broker has taken nothing for
`partitioner.availability.timeout.ms` is not drawn as long as there are others. Records with a key go where murmur2 says
(`append.partition_for_key`), unless `partitioner.ignore.keys` is set or the user gives a partitioner of their own.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Protocol

from ottla.base.ports import Entropy
from ottla.client.cluster.view import NO_NODE
from ottla.client.errors import SerializationFailed
from ottla.client.producer.batch import ProducerBatch
from ottla.client.producer.partition_queue import PartitionQueue

if TYPE_CHECKING:
    from ottla.client.producer.topic_queues import TopicQueues


class Partitioner(Protocol):
    """A user's own choice. `available` are the partitions that have a leader now."""

    def __call__(
        self, topic: str, key: bytes | None, value: bytes | None, partition_count: int, available: Sequence[int], /
    ) -> int: ...


class StickyPartitioner:
    """`is_slow` tells of a node whether it has left batches waiting for too long."""

    def __init__(self, entropy: Entropy, is_adaptive: bool, batch_size: int, is_slow: Callable[[int], bool]) -> None:
        self._entropy = entropy
        self._is_adaptive = is_adaptive
        self._batch_size = batch_size
        self._is_slow = is_slow

    def partition_for(self, topic: "TopicQueues", size: int) -> int:
        """Where a record of so many bytes goes. Another one is drawn where a batch ends: none is left half full."""
        open_batches = topic.open
        sticky = open_batches.sticky  # once: other threads append without the lock, and may spend it meanwhile
        is_spent = open_batches.sticky_bytes >= self._batch_size // 2
        if sticky < 0 or (is_spent and self._is_at_an_end(open_batches.get(sticky), size)):
            sticky = self.choose(topic.queues)
            open_batches.sticky = sticky
            open_batches.sticky_bytes = 0
        return sticky

    def _is_at_an_end(self, batch: ProducerBatch | None, size: int) -> bool:
        return batch is None or batch.size + size + 8 > self._batch_size

    def choose(self, queues: Sequence[PartitionQueue]) -> int:
        """The next partition of a topic. One without a leader only if there is none with."""
        if len(queues) == 1:
            return 0
        led = [queue for queue in queues if queue.leader != NO_NODE]
        if self._is_adaptive:
            led = [queue for queue in led if not self._is_slow(queue.leader)] or led
        if not led:
            return self._entropy.randrange(len(queues))
        sizes = [len(queue.waiting) for queue in led] if self._is_adaptive else []
        longest = max(sizes, default=0)
        if longest == min(sizes, default=0):
            return led[self._entropy.randrange(len(led))].partition
        # As KIP-794 has it: a queue's chance is by how much it is shorter than the longest, and one more.
        chances = list(accumulate(longest + 1 - size for size in sizes))
        return led[bisect_right(chances, self._entropy.randrange(chances[-1]))].partition


def partition_by(
    partitioner: Partitioner, topic: str, key: bytes | None, value: bytes | None, queues: Sequence[PartitionQueue]
) -> int:
    """What a user's partitioner says. Raises `SerializationFailed` when that is no partition of the topic."""
    available = [queue.partition for queue in queues if queue.leader != NO_NODE]
    chosen = partitioner(topic, key, value, len(queues), available)
    if not isinstance(chosen, int) or not 0 <= chosen < len(queues):
        raise SerializationFailed(
            f"the partitioner chose {chosen!r}, and {topic} has partitions 0 to {len(queues) - 1}"
        )
    return chosen
