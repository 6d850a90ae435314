"""Spark through PySpark: a source and a sink for Kafka's topics, and pipelines over them (`pip install ottla[spark]`).

    java           a Java runtime for Spark: the system's, or the one that pip installed
    local_session  a local session with what is needed
    options        the names of all options, what is wrong with those that were given, and Kafka's among them
    data_source    what Spark calls `ottla`: readers and writers, batch and stream
    plain_errors   errors of the user's without our traceback above them
    dead_letters   what could not be decoded, as rows for another topic
    reporting      what queries do, to a topic that `ottla pipelines` reads; pipeline_reports is what they write there
    source/        topics to rows
    sink/          rows to topics, exactly once
    schemas/       values that have a schema in a registry
    pipelines/     what people do with Kafka Streams, over DataFrames
    nexmark/       the benchmark: an auction house as a stream; demo/ shows it
    worker_process what a task does for the Python process that Spark runs it in

The public names are loaded when they are first named: Spark's workers import this package for each task's process.
"""

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from ottla.spark.dead_letters import records_and_dead_letters as records_and_dead_letters
    from ottla.spark.dead_letters import split_dead_letters as split_dead_letters
    from ottla.spark.local_session import session as session
    from ottla.spark.reporting import report_pipelines as report_pipelines

_PUBLIC = {
    "records_and_dead_letters": "ottla.spark.dead_letters",
    "report_pipelines": "ottla.spark.reporting",
    "session": "ottla.spark.local_session",
    "split_dead_letters": "ottla.spark.dead_letters",
}
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
