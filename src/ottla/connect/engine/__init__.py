"""Runs connectors as Spark's streaming queries, exactly once (docs/decisions/0024).

    engine          starts, watches and restarts; implements `ottla.connect.engine_port`
    session         Spark itself, and another one if its Java process dies
    run             one start of a connector: its description, names, settings, directory
    failures        what went wrong in a process of Spark's, on its way to the engine
    data_source     what Spark calls; in Spark's processes:
    source_reader   polls a source, converts, gathers batches; writes them, or hands them to Spark
    source_writer   a batch and its offsets in one transaction
    sink_reader     our Spark source, from where the target is
    sink_writer     rows to records, put with their positions
    spark_formats   connectors whose other end is a format of Spark's
    conversion      transforms and converters, between records and rows
    tolerance       records that are refused: left out, logged, dead letters
    offsets_log     the offsets topic in Kafka Connect's format
    topics          what must be there before it is written to
    kept            writers that a process has from the batch before
    progress        how far a run is, from its process to the engine

Needs Spark (`ottla[spark]`).
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ottla.connect.engine.engine import SparkEngine as SparkEngine

__all__ = ["SparkEngine"]


def __getattr__(name: str) -> Any:
    """Loaded when it is used: Spark's processes load this package too, and pay for what they load."""
    if name != "SparkEngine":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ottla.connect.engine.engine import SparkEngine

    return SparkEngine
