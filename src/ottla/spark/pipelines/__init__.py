"""What people do with Kafka Streams, as functions from DataFrames to a DataFrame over plain Structured Streaming.

    tables          the latest value of each key of a compacted topic; counts and sums over a table's rows
    table_joins     a stream with a table, a table with a table
    foreign_keys    a table with the table that its rows point to
    stream_joins    two streams whose rows are close in time
    windows         tumbling, hopping and session windows, and late rows
    sliding_windows windows that are made by the rows
    suppress        changes held back until a window closes, or for a time
    duplicates      rows that come twice leave once
    dropped_rows    rows that lack what an operator needs: dropped, counted, and where to find them
    changelog       results as records of a compacted topic
    updates         writes every change of a result, exactly once
    keyed_state     state of one's own, with timers
    buckets         the foundation: state for a bucket of keys at a time
    opaque          values on their way through Python

docs/spark/pipelines.md shows each; docs/coming-from-kafka-streams.md has them beside Kafka Streams' operators. The
names are loaded when they are first used.
"""

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from ottla.spark.pipelines.changelog import aggregated as aggregated
    from ottla.spark.pipelines.changelog import table_to_records as table_to_records
    from ottla.spark.pipelines.changelog import to_records as to_records
    from ottla.spark.pipelines.dropped_rows import unusable as unusable
    from ottla.spark.pipelines.dropped_rows import usable as usable
    from ottla.spark.pipelines.duplicates import deduplicate as deduplicate
    from ottla.spark.pipelines.foreign_keys import foreign_key as foreign_key
    from ottla.spark.pipelines.keyed_state import KeyState as KeyState
    from ottla.spark.pipelines.keyed_state import Processor as Processor
    from ottla.spark.pipelines.keyed_state import per_key as per_key
    from ottla.spark.pipelines.sliding_windows import sliding as sliding
    from ottla.spark.pipelines.stream_joins import stream_stream as stream_stream
    from ottla.spark.pipelines.suppress import until_closed as until_closed
    from ottla.spark.pipelines.suppress import until_time_limit as until_time_limit
    from ottla.spark.pipelines.table_joins import stream_table as stream_table
    from ottla.spark.pipelines.table_joins import table_table as table_table
    from ottla.spark.pipelines.tables import aggregate_stream as aggregate_stream
    from ottla.spark.pipelines.tables import aggregate_table as aggregate_table
    from ottla.spark.pipelines.tables import latest as latest
    from ottla.spark.pipelines.tables import present as present
    from ottla.spark.pipelines.updates import write_updates as write_updates
    from ottla.spark.pipelines.windows import hopping as hopping
    from ottla.spark.pipelines.windows import late as late
    from ottla.spark.pipelines.windows import on_time as on_time
    from ottla.spark.pipelines.windows import session as session
    from ottla.spark.pipelines.windows import tumbling as tumbling

_ROOMS = {
    "changelog": ("aggregated", "table_to_records", "to_records"),
    "duplicates": ("deduplicate",),
    "foreign_keys": ("foreign_key",),
    "keyed_state": ("KeyState", "Processor", "per_key"),
    "sliding_windows": ("sliding",),
    "stream_joins": ("stream_stream",),
    "suppress": ("until_closed", "until_time_limit"),
    "table_joins": ("stream_table", "table_table"),
    "tables": ("aggregate_stream", "aggregate_table", "latest", "present"),
    "dropped_rows": ("unusable", "usable"),
    "updates": ("write_updates",),
    "windows": ("hopping", "late", "on_time", "session", "tumbling"),
}
_PUBLIC = {name: room for room, names in _ROOMS.items() for name in names}
__all__ = sorted(_PUBLIC)


def __getattr__(name: str) -> "Any":
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{_PUBLIC[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
