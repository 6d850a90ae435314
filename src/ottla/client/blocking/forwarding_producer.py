"""A producer that also sends on what was fetched, batch by batch: for jobs that move records without a look at them."""

from time import monotonic

from ottla.client.blocking.producer import Producer
from ottla.client.producer.forwarded_batch import ForwardedBatch
from ottla.records.header import BatchHeader


class ForwardingProducer(Producer):
    """Its records and forwarded batches keep their order within a partition, and share sequences and transactions."""

    def forward(self, topic: str, partition: int, header: BatchHeader, encoded: memoryview) -> ForwardedBatch:
        """Sends a batch that `can_be_forwarded`, as it is encoded; timestamps, keys and headers stay.

        `encoded` is the whole batch, writable, and of no use to anybody else afterwards. Waits for room as `send` does.
        """
        self._loop.check()
        deadline_s = monotonic() + self._max_block_s
        batch = self._until(lambda: self._core.forward(topic, partition, header, encoded), topic, deadline_s)
        self._loop.drive()
        return batch
