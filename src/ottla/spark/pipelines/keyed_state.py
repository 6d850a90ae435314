"""State of one's own for each key, with a timer: what Kafka Streams calls the Processor API.

    class Silence(Processor):
        def on_rows(self, key, rows, state):
            state.value = (state.value or 0) + len(rows)
            state.wake_at_ms(state.watermark_ms + 60_000)
            return ()

        def on_timer(self, key, state):
            yield key, state.value
            state.forget()

The state of many keys is kept together (`buckets.py`), so that a micro-batch costs a call per bucket and not per key.
"""

from collections.abc import Iterable
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from ottla.spark.pipelines.buckets import BUCKETS, Bucket, Now, Operator, Rows, TimeMode, in_buckets
from ottla.spark.pipelines.dropped_rows import counted
from ottla.spark.pipelines.opaque import packed, reader


class KeyState:
    """What a processor knows of one key. `value` is anything that can be pickled, and None until it is set."""

    __slots__ = ("_bucket", "_key", "_now")

    def __init__(self, bucket: Bucket, key: str, now: Now) -> None:
        self._bucket = bucket
        self._key = key
        self._now = now

    @property
    def value(self) -> Any:
        return self._bucket.entries.get(self._key)

    @value.setter
    def value(self, value: Any) -> None:
        self._bucket.entries[self._key] = value

    def wake_at_ms(self, at_ms: int) -> None:
        """Calls `on_timer` when the watermark, or the clock, has passed this. A key has one timer: the last set."""
        self._bucket.due_ms[self._key] = at_ms

    def cancel_timer(self) -> None:
        self._bucket.due_ms.pop(self._key, None)

    def forget(self) -> None:
        """No state and no timer any more."""
        self._bucket.entries.pop(self._key, None)
        self.cancel_timer()

    @property
    def watermark_ms(self) -> int:
        """-1 or the past until rows with times have been seen."""
        return self._now.watermark_ms

    @property
    def processing_ms(self) -> int:
        """When the micro-batch began; the same when it is repeated after a crash."""
        return self._now.processing_ms


class Processor:
    """What is done with the rows of a key. One object serves all keys, in several processes: state goes into
    `KeyState`.
    """

    def on_rows(self, key: tuple[Any, ...], rows: list[dict[str, Any]], state: KeyState) -> Iterable[tuple[Any, ...]]:
        """The rows of this key in this micro-batch. Returns rows of the output, in the order of its columns."""
        raise NotImplementedError

    def on_timer(self, key: tuple[Any, ...], state: KeyState) -> Iterable[tuple[Any, ...]]:
        """The key's timer has gone off."""
        return ()


def per_key(
    rows: DataFrame,
    key: list[str],
    processor: Processor,
    output: str | StructType,
    *,
    order: str | None = None,
    time: str | None = None,
    grace: str = "0 seconds",
    time_mode: TimeMode = "None",
    buckets: int = BUCKETS,
) -> DataFrame:
    """Runs a processor over streaming rows, by the columns `key`. For output mode append.

    `time_mode` says what timers look at: EventTime needs `time`, the column whose watermark passes them, and drops
    rows that are later than it; ProcessingTime is the machine's clock. With `order`, a timestamp or number, rows of a
    micro-batch come in that order. A row without its `time` or `order` is dropped (`dropped_rows.py`); a null in `key`
    is a key like others.
    """
    from ottla.spark.pipelines.tables import ordinal

    if (time_mode == "EventTime") != (time is not None):
        raise ValueError("time is the column whose watermark event-time timers follow: give it with EventTime, only")
    schema = StructType.fromDDL(output) if isinstance(output, str) else output
    assert isinstance(schema, StructType)
    keys, whole = StructType([rows.schema[name] for name in key]), StructType(rows.schema.fields)
    whole_rows = counted(rows, "per_key", order, time)
    watched = whole_rows if time is None else whole_rows.withWatermark(time, grace)
    shaped = watched.select(
        packed(F.struct(*key), keys).alias("key"),
        ordinal(rows, order).alias("order"),
        (F.lit(-1).cast("long") if time is None else F.unix_millis(time)).alias("at_ms"),
        packed(F.struct(*rows.columns), whole).alias("row"),
    )
    operator = _PerKey(processor, keys, whole, time is not None)
    positions = () if order is None else (1,)
    return in_buckets(shaped, F.col("key"), operator, schema, buckets=buckets, time_mode=time_mode, order=positions)


class _PerKey(Operator):
    def __init__(self, processor: Processor, keys: StructType, rows: StructType, has_time: bool) -> None:
        self._processor = processor
        self._keys = keys
        self._rows = rows
        self._has_time = has_time

    def on_rows(self, bucket: Bucket, rows: list[tuple[Any, ...]], now: Now) -> Rows:
        read_row, read_key = reader(self._rows), reader(self._keys)
        by_key: dict[str, list[dict[str, Any]]] = {}
        for key, _, at_ms, row in rows:
            if self._has_time and at_ms <= now.watermark_ms:
                continue  # late
            by_key.setdefault(key, []).append(read_row(row))
        for key, own in by_key.items():
            yield from self._processor.on_rows(tuple(read_key(key).values()), own, KeyState(bucket, key, now))

    def on_due(self, bucket: Bucket, keys: list[Any], now: Now) -> Rows:
        read_key = reader(self._keys)
        for key in keys:
            yield from self._processor.on_timer(tuple(read_key(key).values()), KeyState(bucket, key, now))
