"""Rows on their way to one transaction of the driver (`delivery` = single-transaction).

Tasks write their rows to a topic of ours, placed and encoded as they will be in the end; the driver sends their batches
on to where they belong, undecoded, all in one transaction. Nothing is open in the topics of the user meanwhile, however
long the job takes, and rows of a task that fails are never seen by anyone. They go with the staging topic's retention.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.base.ids import TopicPartition
from ottla.client.admin.topics import NewTopic
from ottla.client.blocking.forwarding_producer import ForwardingProducer
from ottla.client.errors import CorruptMessage, OffsetOutOfRange, TopicAlreadyExists
from ottla.client.producer.append import partitions_for_column
from ottla.client.producer.forwarded_batch import can_be_forwarded
from ottla.records.arrow import decode, row_columns, rows_by_partition
from ottla.records.batch import checksum_matches
from ottla.records.header import BatchHeader
from ottla.spark.sink.cluster_access import ClusterAccess
from ottla.spark.sink.copying import LostRows
from ottla.spark.sink.decision import Piece

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types

    from ottla.spark.sink.rows import RoutedRows

PARTITIONS: Final = 16
_CONFIG: Final = {
    "cleanup.policy": "delete",
    "retention.ms": "86400000",
    "segment.bytes": str(128 << 20),
    # Batches are to come out as they went in, whatever the cluster's defaults are.
    "compression.type": "producer",
    "message.timestamp.type": "CreateTime",
}


class StagedPiece(NamedTuple):
    """A batch of rows in the staging topic, and the partition that they are for."""

    piece: Piece
    topic: str
    partition: int


def create_topic(access: ClusterAccess, topic: str) -> None:
    """Makes the topic if it is not there. Only then the right to make it is needed."""
    if access.has_partition(TopicPartition(topic, 0)):
        return
    try:
        access.create_topics([NewTopic(topic, PARTITIONS, config=_CONFIG)]).raise_first()
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


class StagedBatch(NamedTuple):
    """A piece as the staging topic has it: one record batch."""

    staged: StagedPiece
    header: BatchHeader
    encoded: memoryview


def staged_batches(access: ClusterAccess, staged: Iterable[StagedPiece]) -> Iterator[StagedBatch]:
    """The batches of all pieces, each partition of the staging topic read once from front to back."""
    by_partition: dict[TopicPartition, dict[int, StagedPiece]] = {}
    for one in staged:
        place = TopicPartition(one.piece.topic, one.piece.partition)
        by_partition.setdefault(place, {})[one.piece.first_offset] = one
    for partition, wanted in sorted(by_partition.items()):
        yield from _batches_of(access, partition, dict(sorted(wanted.items())))


def _batches_of(
    access: ClusterAccess, partition: TopicPartition, wanted: dict[int, StagedPiece]
) -> Iterator[StagedBatch]:
    next_piece = next(iter(wanted.values())).piece
    fetching = access.begin_fetch(partition, next_piece.first_offset)
    while wanted:
        try:
            fetched = fetching()
        except OffsetOutOfRange as problem:
            raise LostRows(f"{next_piece.row_count} staged rows of {next_piece}: {problem}") from None
        found = [
            StagedBatch(wanted.pop(header.base_offset), header, fetched.records[position : position + header.size])
            for position, header in fetched.batches()
            if header.base_offset in wanted
        ]
        if next_piece.first_offset in wanted:
            raise LostRows(f"{next_piece.row_count} staged rows of {next_piece}: no longer in the log")
        if wanted:  # the next ones come while the caller works on these
            next_piece = next(iter(wanted.values())).piece
            fetching = access.begin_fetch(partition, next_piece.first_offset)
        for one in found:
            if not checksum_matches(one.encoded, 0, one.header):
                raise CorruptMessage(f"the staged rows of {one.staged.piece} do not match their checksum")
        yield from found


def send_staged(producer: ForwardingProducer, batch: StagedBatch) -> None:
    """Writes the rows to where they belong, as they are encoded if that can be."""
    (_, topic, partition), header, encoded = batch
    if can_be_forwarded(header):
        producer.forward(topic, partition, header, encoded)
    else:  # somebody has given the staging topic other settings than we did
        rows = decode(encoded, topic, partition).select(["key", "value", "headers", "timestamp"])
        producer.send_arrow(topic, rows, partition=partition)
