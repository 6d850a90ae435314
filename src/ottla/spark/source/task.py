"""What a task does on an executor: reads its ranges as Arrow's record batches, and makes of them what was asked for."""

from collections.abc import Callable, Generator, Iterable, Iterator
from time import monotonic
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.client.errors import KafkaError, OffsetOutOfRange, RequestTimedOut, UnknownTopicOrPartition
from ottla.spark.source.ahead import one_ahead
from ottla.spark.source.kept_consumers import kept_consumer
from ottla.spark.source.lookups import SourceError
from ottla.spark.source.ranges import OffsetRange
from ottla.spark.source.rows import chosen
from ottla.spark.source.source_options import SourceOptions
from ottla.spark.worker_process import begin_task

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types

    from ottla.client.blocking.range_consumer import RangeConsumer


_LOOKS_AFTER_S: Final = 5.0
"""When nothing has come for so long, a task looks whether the topic is there."""


class RowReading(NamedTuple):
    """What becomes of records."""

    names: list[str]
    """The columns, in order."""
    value_type: "pa.DataType"
    """Arrow's type of the column `value`."""


def read_rows(
    options: SourceOptions,
    reading: RowReading,
    ranges: Iterable[OffsetRange],
    keep: "Callable[[pa.RecordBatch], pa.RecordBatch] | None" = None,
) -> "Iterator[pa.RecordBatch]":
    """The ranges as Spark is to see them. `keep` takes out the rows that nobody wants."""
    begin_task("source")
    return one_ahead(_rows(options, reading, ranges, keep))


def _rows(
    options: SourceOptions,
    reading: RowReading,
    ranges: Iterable[OffsetRange],
    keep: "Callable[[pa.RecordBatch], pa.RecordBatch] | None",
) -> "Generator[pa.RecordBatch, None, None]":
    from ottla.spark.source.values.value_options import make_decoder

    decoder = make_decoder(options.values, reading.value_type) if "value" in reading.names else None
    if decoder is None:
        for batch in read_ranges(options, ranges):
            if (kept := batch if keep is None else keep(batch)).num_rows:
                yield chosen(kept, reading.names)
        return

    from ottla.spark.source.values.undecodable import DecodedValues

    values = DecodedValues(options.values, decoder)
    for batch in read_ranges(options, ranges):
        decoded = values.decoded(batch if keep is None else keep(batch))
        if decoded.num_rows:
            yield chosen(decoded, reading.names)


def read_ranges(options: SourceOptions, ranges: Iterable[OffsetRange]) -> "Iterator[pa.RecordBatch]":
    with kept_consumer(options.client) as consumer:
        for wanted in ranges:
            yield from _read_range(consumer, options, wanted)


def _read_range(consumer: "RangeConsumer", options: SourceOptions, wanted: OffsetRange) -> "Iterator[pa.RecordBatch]":
    """Every record of the range that is still there. What is not is an error, or is passed over, as the job says."""
    begin = wanted.begin
    patience_s = options.task_patience_ms / 1000
    deadline_s = monotonic() + patience_s
    while begin < wanted.end:
        try:
            for batch in consumer.read_range(wanted.partition, begin, wanted.end, min(patience_s, _LOOKS_AFTER_S)):
                yield batch
                begin = batch.column("offset")[-1].as_py() + 1
                deadline_s = monotonic() + patience_s
            return
        except OffsetOutOfRange as problem:
            if options.fails_on_data_loss:
                raise SourceError(data_loss(f"{wanted} is no longer in the log: {problem}")) from problem
            begin = _next_there(consumer, wanted, begin)
        except RequestTimedOut as problem:
            if not _is_there(consumer, wanted):
                if options.fails_on_data_loss:
                    raise SourceError(data_loss(f"{wanted}: the topic is not there any more")) from problem
                return
            if monotonic() < deadline_s:
                continue
            raise SourceError(
                f"{wanted} could not be read in the time of option kafkaConsumer.pollTimeoutMs: {problem}"
            ) from problem


def _is_there(consumer: "RangeConsumer", wanted: OffsetRange) -> bool:
    topic, partition = wanted.partition
    try:
        found = consumer.existing_topics([topic]).get(topic)
    except KafkaError as problem:
        raise SourceError(f"{wanted} could not be looked up: {problem}") from problem
    return found is not None and any(one.partition == partition for one in found.partitions)


def _next_there(consumer: "RangeConsumer", wanted: OffsetRange, begin: int) -> int:
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
    """How it is reported that something is gone."""
    return f"{what}; some data may have been missed. With option failOnDataLoss=false the job reads what is there"
