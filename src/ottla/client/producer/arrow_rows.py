"""Arrow's rows as records: `send_arrow`. No row becomes an object; needs pyarrow (`ottla[arrow]`).

Columns are those of `records.arrow`: `value`, and `key`, `timestamp` and `headers` where there are such. Rows with a
key go where murmur2 says, in the kernel; those without one to a single partition, and all of them where one is given.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from ottla.client.producer.accumulator import Accumulator
from ottla.client.producer.append import partitions_for_column
from ottla.client.producer.batch import ProducerBatch
from ottla.client.producer.producer_settings import ProducerSettings
from ottla.client.producer.topic_queues import TopicQueues
from ottla.client.topic_partition import RecordMetadata
from ottla.records.arrow import RowColumns, row_columns, rows_by_partition
from ottla.records.header import HEADER_SIZE


class ArrowRows:
    """The rows that are left to be put into batches."""

    def __init__(
        self, rows: Any, partition: int | None, sticky: int, partition_count: int, timestamp_ms: int, ignores_keys: bool
    ) -> None:
        self._parts: list[tuple[int, RowColumns]] = []
        for columns, chunk in row_columns(rows, timestamp_ms):
            if partition is not None or columns.key is None or ignores_keys:
                self._parts.append((sticky if partition is None else partition, columns))
                continue
            placed = partitions_for_column(columns.key, columns.row_count, partition_count, sticky)
            for index, part in rows_by_partition(chunk, placed):
                self._parts += [(index, of_part) for of_part, _ in row_columns(part, timestamp_ms)]
        self._begin = 0
        self.batches: list[ProducerBatch] = []
        self.row_count = sum(columns.row_count for _, columns in self._parts)

    def partitions(self) -> Iterator[int]:
        return iter({index for index, _ in self._parts})

    def put(self, accumulator: Accumulator, topic: TopicQueues, settings: ProducerSettings) -> bool:
        """Puts rows into batches of their own as long as there is memory. Returns whether all are in."""
        limit = max(min(settings.max_request_size, max(settings.batch_size, HEADER_SIZE + 1)), HEADER_SIZE + 1)
        while self._parts:
            partition, columns = self._parts[0]
            batch = accumulator.new_batch(topic.queues[partition], limit, limit)
            if batch is None:
                return False
            end = columns.row_count
            self._begin = batch.extend_columns(
                columns.timestamps, columns.key, columns.value, columns.headers, self._begin, end
            )
            accumulator.line_up_closed(topic, batch)
            self.batches.append(batch)
            accumulator.fit(batch)
            if self._begin == end:
                self._begin = 0
                self._parts.pop(0)
        return True


class WrittenRows(NamedTuple):
    """Rows that are one batch in a partition's log. `first_offset` is -1 if the broker did not tell it."""

    partition: int
    first_offset: int
    row_count: int


class ArrowDelivery:
    """What becomes of the rows of one `send_arrow`: a future for all of them."""

    def __init__(self, batches: list[ProducerBatch], row_count: int) -> None:
        self._batches = batches
        self.row_count = row_count

    def done(self) -> bool:
        return all(batch.is_done for batch in self._batches)

    def result(self, timeout: float | None = None) -> list[RecordMetadata]:
        """Where the first row of each batch is; raises why a batch was not written. `timeout` is for each of them."""
        for batch in self._batches:
            if not batch.is_done:
                batch.wait(timeout)
        return self._outcome()

    def exception(self, timeout: float | None = None) -> Exception | None:
        """The first error, or None if all rows were written. Waits as `result` does."""
        for batch in self._batches:
            if not batch.is_done:
                batch.wait(timeout)
            if batch.error is not None:
                return batch.error
        return None

    def written(self) -> list[WrittenRows]:
        """Where the rows are, batch by batch. Waits for nothing: call `result` first."""
        return [
            WrittenRows(batch.partition, first_offset, row_count)
            for batch in self._batches
            for first_offset, row_count in batch.written()
        ]

    def __await__(self) -> Any:
        return self._awaited().__await__()

    async def _awaited(self) -> list[RecordMetadata]:
        for batch in self._batches:
            if not batch.is_done:
                await batch.waiting.awaited(batch.when_settled())
        return self._outcome()

    def _outcome(self) -> list[RecordMetadata]:
        return [batch.first_record() for batch in self._batches]
