"""What a task does on an executor: reads one range as Arrow's record batches."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ottla.client.blocking.range_consumer import RangeConsumer
from ottla.client.errors import KafkaError, OffsetOutOfRange, RequestTimedOut, UnknownTopicOrPartition
from ottla.spark.source.lookups import SourceError
from ottla.spark.source.ranges import OffsetRange
from ottla.spark.source.source_options import SourceOptions

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types


def read_range(options: SourceOptions, wanted: OffsetRange) -> "Iterator[pa.RecordBatch]":
    """Every record of the range that is still there. What is not is an error, or is passed over, as the job says."""
    settings = {**options.client, "auto.offset.reset": "none", "enable.auto.commit": "false"}
    with RangeConsumer(settings) as consumer:
        begin = wanted.begin
        while begin < wanted.end:
            try:
                yield from consumer.read_range(wanted.partition, begin, wanted.end, options.task_patience_ms / 1000)
                return
            except OffsetOutOfRange as problem:
                if options.fails_on_data_loss:
                    raise SourceError(data_loss(f"{wanted} is no longer in the log: {problem}")) from problem
                begin = _next_there(consumer, wanted, begin)
            except RequestTimedOut as problem:
                raise SourceError(
                    f"{wanted} could not be read in the time of option kafkaConsumer.pollTimeoutMs: {problem}"
                ) from problem


def read_rows(options: SourceOptions, names: Sequence[str], wanted: OffsetRange) -> "Iterator[pa.RecordBatch]":
    """The range as Spark is to see it."""
    from ottla.spark.source.rows import chosen

    for batch in read_range(options, wanted):
        yield chosen(batch, names)


def _next_there(consumer: RangeConsumer, wanted: OffsetRange, begin: int) -> int:
    """The first offset after `begin` that the log has, or the end of the range."""
    try:
        first = consumer.beginning_offsets([wanted.partition])[wanted.partition]
        last = consumer.end_offsets([wanted.partition])[wanted.partition]
    except UnknownTopicOrPartition:
        return wanted.end
    except KafkaError as problem:
        raise SourceError(f"{wanted} could not be looked up: {problem}") from problem
    return wanted.end if last <= begin else min(max(first, begin + 1), wanted.end)


def data_loss(what: str) -> str:
    """How it is told that something is gone."""
    return f"{what}; some data may have been missed. With option failOnDataLoss=false the job reads what is there"
