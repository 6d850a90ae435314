"""Rows that are in a log already, written again: those of a decided transaction that was aborted, and staged ones.

A transaction that runs for longer than `transaction.timeout.ms` is aborted by its coordinator, also when the batch has
been decided and only its commit had not arrived. What it wrote stays in the log, as long as retention and compaction
let it. So the driver reads it there, and writes it anew. Rows that are gone are an error that names them: `LostRows`.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from ottla.base.ids import TopicPartition
from ottla.client.errors import KafkaError, OffsetOutOfRange
from ottla.records.arrow import decode
from ottla.spark.sink.cluster_access import ClusterAccess
from ottla.spark.sink.decision import Piece

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types


class LostRows(KafkaError):
    """Rows of a decided batch were aborted by the broker, and the log no longer has them.

    Retention or compaction has taken them. Set `failOnDataLoss` to false to continue without them; raise the topic's
    `retention.ms` or `min.compaction.lag.ms`, or `kafka.transaction.timeout.ms`, to keep it from happening again.
    """


class FoundRows(NamedTuple):
    rows: "pa.RecordBatch"
    """In the columns of records, with their timestamps."""
    rest: Piece | None
    """What is left of the piece behind them."""


def rows_in_log(access: ClusterAccess, piece: Piece, producer: tuple[int, int]) -> Iterator[FoundRows]:
    """The rows of a piece that this producer wrote, a fetch at a time.

    Raises `LostRows` at its end unless all of them were there.
    """
    partition = TopicPartition(piece.topic, piece.partition)
    offset, found = piece.first_offset, 0
    while offset <= piece.last_offset:
        try:
            fetched = access.fetch(partition, offset)
        except OffsetOutOfRange as problem:
            raise LostRows(f"{piece.row_count} rows of {piece}: {problem}") from None
        wanted: list[memoryview] = []
        read_to = offset
        for position, header in fetched.batches():
            read_to = header.next_offset
            is_theirs = (header.producer_id, header.producer_epoch) == producer
            if header.base_offset <= piece.last_offset and is_theirs and not header.is_control:
                wanted.append(fetched.records[position : position + header.size])
        if read_to == offset:
            break
        offset = read_to
        if wanted:
            rows = decode(
                wanted, piece.topic, piece.partition, first_offset=piece.first_offset, end_offset=piece.last_offset + 1
            )
            found += rows.num_rows
            rest = piece._replace(first_offset=offset, row_count=piece.row_count - found)
            yield FoundRows(rows.select(["key", "value", "headers", "timestamp"]), rest if rest.row_count > 0 else None)
    if found != piece.row_count:
        raise LostRows(f"{piece.row_count - found} of {piece.row_count} rows of {piece}: no longer in the log")
