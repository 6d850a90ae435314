"""Connectors by their class names. One row for each; those of other packages come by entry point.

    kind = find_connector("org.apache.kafka.connect.file.FileStreamSourceConnector")     # or FileStreamSource
    source = kind.load()(config, context)

A package that brings a connector names it in the group `ottla.connect`:

    [project.entry-points."ottla.connect"]
    "com.example.WeatherSourceConnector" = "weather.connector:WeatherSource"

Names are Java's or any other; the last word of a name, with or without `Connector` behind it, is an alias, as in Kafka.
A connector is loaded when it is used: a worker that has no database needs no database's library.
"""

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from logging import getLogger
from typing import Final, Literal, NamedTuple, TypeAlias

from ottla.connect.connector import Sink, Source
from ottla.connect.options import InvalidOption

GROUP: Final = "ottla.connect"
_log: Final = getLogger(__name__)
_CONNECTORS: Final = "ottla.connect.connectors"

ConnectorClass: TypeAlias = type[Source] | type[Sink]


class ConnectorKind(NamedTuple):
    """A connector that there is: its class name as configurations have it, and where our class is."""

    class_name: str
    target: str
    """`module:class`"""
    type: Literal["source", "sink"]
    version: str | None = None
    """Of the package that brings it; None: ours."""

    def load(self) -> ConnectorClass:
        """Our class. Raises `InvalidOption` if something that it needs is not installed."""
        module, _, attribute = self.target.partition(":")
        try:
            found = getattr(import_module(module), attribute)
        except ImportError as error:
            raise InvalidOption(f"connector {self.class_name} cannot be loaded: {error}") from error
        assert isinstance(found, type) and issubclass(found, Source | Sink), f"{self.target} is no connector"
        return found


BUILT_IN: Final[tuple[ConnectorKind, ...]] = (
    ConnectorKind(
        "org.apache.kafka.connect.file.FileStreamSourceConnector",
        f"{_CONNECTORS}.file_stream:FileStreamSource",
        "source",
    ),
    ConnectorKind(
        "org.apache.kafka.connect.file.FileStreamSinkConnector", f"{_CONNECTORS}.file_stream:FileStreamSink", "sink"
    ),
    ConnectorKind("ottla.connect.FilesSourceConnector", f"{_CONNECTORS}.files:FilesSource", "source"),
    ConnectorKind("ottla.connect.FilesSinkConnector", f"{_CONNECTORS}.files:FilesSink", "sink"),
    ConnectorKind("ottla.connect.GeneratorSourceConnector", f"{_CONNECTORS}.generator:GeneratorSource", "source"),
    ConnectorKind("ottla.connect.DltSourceConnector", f"{_CONNECTORS}.dlt_resource:DltSource", "source"),
    ConnectorKind("ottla.connect.SparkSourceConnector", f"{_CONNECTORS}.spark_format:SparkSource", "source"),
    ConnectorKind("ottla.connect.SparkSinkConnector", f"{_CONNECTORS}.spark_format:SparkSink", "sink"),
    ConnectorKind("ottla.connect.HttpSourceConnector", f"{_CONNECTORS}.web.source:HttpSource", "source"),
    ConnectorKind("ottla.connect.HttpSinkConnector", f"{_CONNECTORS}.web.sink:HttpSink", "sink"),
    ConnectorKind("io.confluent.connect.http.HttpSinkConnector", f"{_CONNECTORS}.web.sink:ConfluentHttpSink", "sink"),
    ConnectorKind("io.aiven.kafka.connect.http.HttpSinkConnector", f"{_CONNECTORS}.web.sink:AivenHttpSink", "sink"),
    ConnectorKind(
        "io.confluent.connect.elasticsearch.ElasticsearchSinkConnector",
        f"{_CONNECTORS}.search.sink:ElasticsearchSink",
        "sink",
    ),
    ConnectorKind(
        "io.aiven.kafka.connect.opensearch.OpensearchSinkConnector", f"{_CONNECTORS}.search.sink:OpensearchSink", "sink"
    ),
    ConnectorKind(
        "io.aiven.kafka.connect.opensearch.OpenSearchSinkConnector", f"{_CONNECTORS}.search.sink:OpensearchSink", "sink"
    ),
    ConnectorKind(
        "io.debezium.connector.postgresql.PostgresConnector", f"{_CONNECTORS}.postgres.source:PostgresSource", "source"
    ),
    ConnectorKind(
        "io.debezium.connector.mariadb.MariaDbConnector", f"{_CONNECTORS}.mysql.source:MariaDbSource", "source"
    ),
    ConnectorKind("io.debezium.connector.mysql.MySqlConnector", f"{_CONNECTORS}.mysql.source:MySqlSource", "source"),
    ConnectorKind(
        "io.confluent.connect.jdbc.JdbcSourceConnector", f"{_CONNECTORS}.tables.source:TablesSource", "source"
    ),
    ConnectorKind(
        "io.confluent.connect.jdbc.JdbcSinkConnector", f"{_CONNECTORS}.tables.sink:ConfluentTablesSink", "sink"
    ),
    ConnectorKind(
        "io.debezium.connector.jdbc.JdbcSinkConnector", f"{_CONNECTORS}.tables.sink:DebeziumTablesSink", "sink"
    ),
    ConnectorKind("io.confluent.connect.s3.S3SinkConnector", f"{_CONNECTORS}.confluent_s3:ConfluentS3Sink", "sink"),
    ConnectorKind("ottla.connect.DeltaSinkConnector", f"{_CONNECTORS}.lakes.delta:DeltaSink", "sink"),
    ConnectorKind("ottla.connect.IcebergSinkConnector", f"{_CONNECTORS}.lakes.iceberg:IcebergSink", "sink"),
    ConnectorKind(
        "org.apache.iceberg.connect.IcebergSinkConnector", f"{_CONNECTORS}.lakes.iceberg:IcebergSink", "sink"
    ),
)
"""One row for each connector of ours."""


def connectors() -> Iterator[ConnectorKind]:
    """All that there are, ours first. What a package's entry point cannot load is not among them."""
    yield from BUILT_IN
    yield from _others()


def find_connector(name: str) -> ConnectorKind:
    """By class name or alias. Raises `InvalidOption`, in Kafka's words, with the names that there are."""
    wanted = name.strip()
    kinds = list(connectors())
    found = [kind for kind in kinds if kind.class_name == wanted]
    found = found or [kind for kind in kinds if wanted in aliases(kind.class_name)]
    if len(found) == 1 or (found and all(kind in BUILT_IN and kind.target == found[0].target for kind in found)):
        return found[0]  # two names of one connector of ours are no matter of choice
    if found:
        raise InvalidOption(
            f"More than one connector matches alias {wanted}. Please use full package and class name instead. "
            f"Classes found: {', '.join(kind.class_name for kind in found)}"
        )
    raise InvalidOption(
        f"Failed to find any class that implements Connector and which name matches {wanted}, available connectors "
        f"are: {', '.join(kind.class_name for kind in kinds)}"
    )


def aliases(class_name: str) -> tuple[str, ...]:
    """`FileStreamSourceConnector`, `FileStreamSource`."""
    simple = class_name.rpartition(".")[2]
    return simple, simple.removesuffix("Connector")


@cache
def _others() -> tuple[ConnectorKind, ...]:
    made = (_kind_of(point) for point in sorted(entry_points(group=GROUP), key=lambda point: point.name))
    return tuple(kind for kind in made if kind is not None)


def _kind_of(point: EntryPoint) -> ConnectorKind | None:
    try:
        found = point.load()
    except Exception as problem:  # anything may go wrong in somebody else's module, and no other is to notice
        _log.warning("connector %s cannot be loaded from %s: %s", point.name, point.value, problem)
        return None
    if not isinstance(found, type) or not issubclass(found, Source | Sink):
        _log.warning("%s is no connector: %s is neither a Source nor a Sink", point.name, point.value)
        return None
    version = point.dist.version if point.dist is not None else None
    return ConnectorKind(point.name, point.value, "source" if issubclass(found, Source) else "sink", version)
