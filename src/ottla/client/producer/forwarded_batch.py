"""A record batch of a log on its way to another: its records stay as they are, encoded and compressed.

Theory of operation. Who wrote a batch, and where it is in a log, is said by its header alone. So a batch that was
fetched is sent on under this producer's id, epoch and sequence when its header is written anew, in place, and its
checksum with it. Records are decoded only if a broker finds the batch too large, and it is split.
"""

from typing import TYPE_CHECKING

from ottla.client.producer.accumulator import Accumulator
from ottla.client.producer.batch import ProducerBatch, Waiter
from ottla.client.producer.topic_queues import TopicQueues
from ottla.records.batch import MAGIC
from ottla.records.header import BatchHeader

if TYPE_CHECKING:
    from ottla.client.producer.partition_queue import PartitionQueue


def can_be_forwarded(header: BatchHeader) -> bool:
    """Whether a producer might have sent this batch as it is.

    Not one that compaction has taken records out of, nor one whose timestamps are the broker's: its records have
    others. Control batches are brokers' own.
    """
    is_whole = header.last_offset_delta + 1 == header.record_count
    is_own = not (header.is_control or header.is_log_append_time or header.has_delete_horizon)
    return header.magic == MAGIC and is_whole and is_own


class ForwardedBatch(ProducerBatch):
    """`encoded` is the whole batch. Its header is overwritten, so nobody else may need it."""

    # The kernel counts these as records come in; here the header tells them.
    __slots__ = ("base_timestamp", "last_offset_delta", "max_timestamp", "record_count")

    def __init__(
        self, queue: "PartitionQueue", header: BatchHeader, encoded: memoryview, created_s: float, waiting: Waiter
    ) -> None:
        super().__init__(queue, 0, len(encoded), created_s, waiting)
        self.base_timestamp = header.base_timestamp
        self.max_timestamp = header.max_timestamp
        self.last_offset_delta = header.last_offset_delta
        self.record_count = header.record_count
        self.codec = header.compression
        self.encoded = encoded
        self.raw_bytes = len(encoded)
        self.is_closed = True


def put_forwarded(
    accumulator: Accumulator, topic: TopicQueues, partition: int, header: BatchHeader, encoded: memoryview
) -> ForwardedBatch | None:
    """The batch at the end of its partition's queue, behind all that was sent before; None if there is no memory."""
    if not accumulator.has_room(len(encoded)):
        return None
    queue = topic.queues[partition]
    batch = ForwardedBatch(queue, header, encoded, accumulator.now_s(), accumulator.waiting)
    accumulator.line_up_closed(topic, batch)
    return batch
