"""Rows on their way to one transaction of the driver (`delivery` = single-transaction).

Tasks write their rows to a topic of ours, placed and encoded as they will be in the end; the driver copies them to
where they belong, all in one transaction. Nothing is open in the topics of the user meanwhile, however long the job
takes, and rows of a task that fails are never seen by anyone. They go with the staging topic's retention.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.base.ids import TopicPartition
from ottla.client.admin.topics import NewTopic
from ottla.client.errors import OffsetOutOfRange, TopicAlreadyExists
from ottla.client.producer.append import partitions_for_column
from ottla.records.arrow import decode, row_columns, rows_by_partition
from ottla.spark.sink.cluster_access import ClusterAccess
from ottla.spark.sink.copying import LostRows
from ottla.spark.sink.decision import Piece

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types

    from ottla.spark.sink.rows import RoutedRows

TOPIC: Final = "__ottla_spark_staging"
PARTITIONS: Final = 16
_CONFIG: Final = {"cleanup.policy": "delete", "retention.ms": "86400000", "segment.bytes": str(128 << 20)}


class StagedPiece(NamedTuple):
    """A batch of rows in the staging topic, and the partition that they are for."""

    piece: Piece
    topic: str
    partition: int


def create_topic(access: ClusterAccess) -> None:
    """Makes the topic if it is not there."""
    if access.has_partition(TopicPartition(TOPIC, 0)):
        return
    try:
        access.create_topics([NewTopic(TOPIC, PARTITIONS, config=_CONFIG)]).raise_first()
    except TopicAlreadyExists:
        return


def place(routed: "RoutedRows", partition_count: int, keyless: int) -> Iterator[tuple[int, "pa.RecordBatch"]]:
    """The rows of each partition. Those with a key go where Java's producer puts them, the others to `keyless`."""
    if routed.partition is not None or "key" not in routed.rows.schema.names:
        yield (keyless if routed.partition is None else routed.partition), routed.rows
        return
    for columns, chunk in row_columns(routed.rows, 0):
        assert columns.key is not None
        placed = partitions_for_column(columns.key, columns.row_count, partition_count, keyless)
        yield from rows_by_partition(chunk, placed)


def staged_rows(access: ClusterAccess, staged: Iterable[StagedPiece]) -> Iterator[tuple[StagedPiece, "pa.RecordBatch"]]:
    """The rows of all pieces, each partition of the staging topic read once from front to back."""
    by_partition: dict[int, dict[int, StagedPiece]] = {}
    for one in staged:
        by_partition.setdefault(one.piece.partition, {})[one.piece.first_offset] = one
    for partition, wanted in sorted(by_partition.items()):
        yield from _rows_of(access, TopicPartition(TOPIC, partition), dict(sorted(wanted.items())))


def _rows_of(
    access: ClusterAccess, partition: TopicPartition, wanted: dict[int, StagedPiece]
) -> Iterator[tuple[StagedPiece, "pa.RecordBatch"]]:
    while wanted:
        next_piece = next(iter(wanted.values())).piece
        try:
            fetched = access.fetch(partition, next_piece.first_offset)
        except OffsetOutOfRange as problem:
            raise LostRows(f"{next_piece.row_count} staged rows of {next_piece}: {problem}") from None
        for position, header in fetched.batches():
            found = wanted.pop(header.base_offset, None)
            if found is None:
                continue
            batch = memoryview(fetched.records)[position : position + header.size]
            yield found, decode(batch, *partition).select(["key", "value", "headers", "timestamp"])
        if next_piece.first_offset in wanted:
            raise LostRows(f"{next_piece.row_count} staged rows of {next_piece}: no longer in the log")
