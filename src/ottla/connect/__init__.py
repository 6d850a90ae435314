"""Connectors: what Kafka Connect does, on columns of Arrow, run by Spark.

    errors        what goes wrong: data that cannot be converted, settings that are wrong
    data          Connect's schemas, columns and records, on Arrow
    options       options of converters and transforms, from rows of settings, refused in Kafka's words
    java_text     what Java's `toString` says of a value
    java_dates    dates as Java's SimpleDateFormat writes and reads them
    java_numbers  numbers as Java converts them
    schema_registry  a client of the registry that the options of a converter name
    literals      values from texts that say themselves what they are
    converters    bytes of keys and values to columns, and back
    transforms    Kafka's and Debezium's transforms and predicates, and a connector's chain of them
    connector     what a connector is: `Source`, `Sink`
    arrow_tables  tables of Arrow as records, and records as tables
    class_names   what `connector.class` says, where one word is for two connectors
    plugins       class names to connectors; those of other packages
    connectors    the connectors themselves
    engine_port   what a worker asks of the engine that runs connectors, and hears from it
    engine        runs connectors as Spark's streaming queries
    worker        the worker: a machine over Kafka Connect's topics, its driver, its process
    rest          Kafka Connect's REST interface

Needs pyarrow (`ottla[arrow]`). Data, converters and transforms are pure: no clock, network, disk or thread.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ottla.connect.arrow_tables import records_from_table as records_from_table
    from ottla.connect.arrow_tables import table_of as table_of
    from ottla.connect.connector import Retriable as Retriable
    from ottla.connect.connector import Sink as Sink
    from ottla.connect.connector import Source as Source
    from ottla.connect.connector import SourceRecords as SourceRecords

_WHERE = {
    "Retriable": "errors",
    "Sink": "connector",
    "Source": "connector",
    "SourceRecords": "connector",
    "records_from_table": "arrow_tables",
    "table_of": "arrow_tables",
}
__all__ = ["Retriable", "Sink", "Source", "SourceRecords", "records_from_table", "table_of"]


def __getattr__(name: str) -> Any:
    """What somebody who writes a connector needs: `from ottla.connect import Source, SourceRecords`."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
