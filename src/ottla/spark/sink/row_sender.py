"""Rows through a producer: gathered, divided among topics and partitions, and counted where they went."""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from ottla.base.ids import TopicPartition
from ottla.client.blocking.producer import Producer
from ottla.client.errors import KafkaError, UnknownTopicOrPartition
from ottla.spark.sink.decision import Piece
from ottla.spark.sink.rows import RoutedRows, Routing, WrongRows

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types

    from ottla.client.producer.arrow_rows import ArrowDelivery

_CHUNK_BYTES: Final = 4 << 20
"""So many bytes of rows are divided among partitions at once: then batches are large enough."""
_TOPIC_PATIENCE_S: Final = 5.0


def chunks(batches: Iterable["pa.RecordBatch"], chunk_bytes: int = _CHUNK_BYTES) -> Iterator["pa.Table"]:
    """The same rows in tables of about so many bytes."""
    import pyarrow as pa

    gathered: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        gathered.append(batch)
        size += batch.nbytes
        if size >= chunk_bytes:
            yield pa.Table.from_batches(gathered).combine_chunks()
            gathered, size = [], 0
    if gathered:
        yield pa.Table.from_batches(gathered).combine_chunks()


def split_off_inline(
    batches: Iterable["pa.RecordBatch"], inline_bytes: int
) -> tuple["pa.Table | None", Iterator["pa.RecordBatch"] | None]:
    """All rows as one table if they are few, and no rest; else no table, and all rows. Neither if there are no rows."""
    import pyarrow as pa

    rest = iter(batches)
    first: list[pa.RecordBatch] = []
    size = 0
    for batch in rest:
        first.append(batch)
        size += batch.nbytes
        if size > inline_bytes:
            return None, chained(first, rest)
    return (pa.Table.from_batches(first) if first else None), None


def chained(first: list["pa.RecordBatch"], rest: Iterator["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
    yield from first
    yield from rest


class RowSender:
    """Sends rows through a producer, and keeps count of where they have gone."""

    def __init__(self, producer: Producer, routing: Routing) -> None:
        self._producer = producer
        self._routing = routing
        self._under_way: deque[tuple[str, ArrowDelivery]] = deque()
        self._places: dict[TopicPartition, list[int]] = {}

    def send(self, rows: "pa.Table | pa.RecordBatch") -> None:
        for routed in self._routing.routes(rows):
            check_partition(self._producer, routed)
            delivery = self._producer.send_arrow(routed.topic, routed.rows, partition=routed.partition)
            self._under_way.append((routed.topic, delivery))
        while self._under_way and self._under_way[0][1].done():
            self._settle()

    def finish(self) -> tuple[Piece, ...]:
        """Waits until all rows are written. Raises why some are not."""
        while self._under_way:
            self._settle()
        return tuple(
            Piece(topic, partition, first, last, count)
            for (topic, partition), (first, last, count) in sorted(self._places.items())
        )

    def _settle(self) -> None:
        topic, delivery = self._under_way.popleft()
        delivery.result()
        for partition, first_offset, row_count in delivery.written():
            if first_offset < 0:
                raise KafkaError(f"the broker does not tell where it has written rows to {topic}-{partition}")
            last_offset = first_offset + row_count - 1
            place = self._places.setdefault(TopicPartition(topic, partition), [first_offset, last_offset, 0])
            place[0], place[1] = min(place[0], first_offset), max(place[1], last_offset)
            place[2] += row_count


def check_partition(producer: Producer, routed: RoutedRows) -> int:
    """How many partitions the topic has. Raises `WrongRows` if it is not there, or has no such partition."""
    try:
        count = len(producer.partitions_for(routed.topic, _TOPIC_PATIENCE_S))
    except UnknownTopicOrPartition:
        raise WrongRows(
            f'topic "{routed.topic}", of the option or the column "topic": the cluster has no such topic'
        ) from None
    if routed.partition is not None and routed.partition >= count:
        raise WrongRows(
            f'column "partition": {routed.partition} is none of "{routed.topic}", which has {count} (0 to {count - 1})'
        )
    return count
