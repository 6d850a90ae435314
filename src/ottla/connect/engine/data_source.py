"""What Spark calls `ottla_connect`: the two halves of a connector's query. The option `start` names its start.

Spark makes a data source and a reader in three processes for each start: one asks for the schema, one plans, one has
the reader. Only the last does any work, so only there is anything loaded: it is a second of processor time each.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from ottla.spark.worker_process import leave_quietly_when_idle

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadLimit
    from pyspark.sql.types import StructType

    from ottla.connect.engine.run import Run
    from ottla.connect.engine.source_reader import DirectReader

leave_quietly_when_idle()

NAME = "ottla_connect"
START = "start"
TYPE = "type"
"""`source`, `sink`, `direct` for a source whose process writes itself, or `spark` for one that Spark reads."""
ROWS_DDL = (
    "topic STRING, partition INT, timestamp BIGINT, key BINARY, value BINARY, "
    "headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)
"""`conversion.ROWS` as Spark writes it."""


class ConnectDataSource(DataSource):
    """Thin: it reads what start it is and hands over. Each import is of one use."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def _run(self) -> "Run":
        from ottla.connect.engine.run import load_run

        return load_run(self.options[START])

    def schema(self) -> str:
        if self.options[TYPE] != "sink":
            return ROWS_DDL
        from ottla.connect.engine.sink_reader import rows_ddl

        return rows_ddl(self._run())

    def streamReader(self, schema: "StructType") -> Any:  # noqa: N802  # Spark's name
        if self.options[TYPE] == "direct":
            return LateReader(self.options[START])
        if self.options[TYPE] == "source":
            return super().streamReader(schema)  # it has none: Spark asks for the simple one
        from ottla.connect.engine.sink_reader import SinkReader

        return SinkReader(self._run())

    def simpleStreamReader(self, schema: "StructType") -> Any:  # noqa: N802
        from ottla.connect.engine.source_reader import SourceReader

        return SourceReader(self._run())

    def streamWriter(self, schema: "StructType", overwrite: bool) -> Any:  # noqa: N802
        run = self._run()
        if self.options[TYPE] == "spark":
            from ottla.connect.engine.spark_formats import SparkRowsWriter

            return SparkRowsWriter(run)
        if run.type == "source":
            from ottla.connect.engine.source_writer import SourceWriter

            return SourceWriter(run)
        from ottla.connect.engine.sink_writer import SinkWriter

        return SinkWriter(run)

    def writer(self, schema: "StructType", overwrite: bool) -> Any:
        from ottla.connect.engine.spark_formats import READ, SparkReadWriter

        return SparkReadWriter(self._run(), int(self.options[READ]))


class LateReader(DataSourceStreamReader):
    """A `DirectReader`, made when Spark asks where it begins. Spark has no rows of it to carry."""

    def __init__(self, start: str) -> None:
        self._start = start
        self._reader: DirectReader | None = None

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        """Spark asks more than once; the source is started once."""
        if self._reader is None:
            from ottla.connect.engine.run import load_run
            from ottla.connect.engine.source_reader import DirectReader

            self._reader = DirectReader(load_run(self._start))
        return self._reader.initialOffset()

    def getDefaultReadLimit(self) -> "ReadLimit":  # noqa: N802
        from pyspark.sql.streaming.datasource import ReadAllAvailable

        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:  # noqa: N802
        """Writes what comes, for some seconds. To Spark nothing has come."""
        assert self._reader is not None, "Spark asks where it begins first"
        self._reader.write_for_a_while()
        return start

    def reportLatestOffset(self) -> dict[str, int] | None:  # noqa: N802
        """Shown in the query's progress."""
        return None if self._reader is None else self._reader.progress()

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """None, for the empty batch that every query begins with."""
        return []

    def read(self, partition: InputPartition) -> Iterator[Any]:
        raise AssertionError("there is no partition to read")

    def stop(self) -> None:
        if self._reader is not None:
            self._reader.stop()
