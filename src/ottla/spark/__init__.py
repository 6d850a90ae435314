"""Spark through PySpark: a source and a sink for Kafka's topics, and pipelines over them (`pip install ottla[spark]`).

    java           a Java runtime for Spark: the system's, or the one that pip installed
    local_session  a local session with what is needed
    options        the names of all options, what is wrong with those that were given, and Kafka's among them
    data_source    what Spark calls `ottla`: readers and writers, batch and stream
    source/        topics to rows
    sink/          rows to topics, exactly once
    pipelines/     what people do with Kafka Streams, over DataFrames
    nexmark/       the benchmark: an auction house as a stream; demo/ shows it
    worker_process what a task does for the Python process that Spark runs it in

The public names are loaded when they are first named: Spark's workers import this package for each task's process.
"""

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from ottla.spark.local_session import session as session

_PUBLIC = {"session": "ottla.spark.local_session"}
"""Where each public name is."""


def __getattr__(name: str) -> "Any":
    if name not in _PUBLIC:
        raise AttributeError(f"module 'ottla.spark' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_PUBLIC[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
