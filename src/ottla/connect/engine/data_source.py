"""What Spark calls `ottla_connect`: the two halves of a connector's query. The option `start` names its start."""

from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource

from ottla.spark.worker_process import leave_quietly_when_idle

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from ottla.connect.engine.run import Run

leave_quietly_when_idle()

NAME = "ottla_connect"
START = "start"


class ConnectDataSource(DataSource):
    """Thin: it reads what start it is and hands over. Each import is of one use."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def _run(self) -> "Run":
        from ottla.connect.engine.run import load_run

        return load_run(self.options[START])

    def schema(self) -> str:
        from ottla.connect.engine.conversion import ROWS_DDL

        run = self._run()
        if run.type == "source":
            return ROWS_DDL
        from ottla.connect.engine.sink_reader import rows_ddl

        return rows_ddl(run)

    def streamReader(self, schema: "StructType") -> Any:  # noqa: N802  # Spark's name
        run = self._run()
        if run.type == "source":
            if not run.is_direct:
                return super().streamReader(schema)  # it has none: Spark asks for the simple one
            from ottla.connect.engine.source_reader import DirectReader

            return DirectReader(run)
        from ottla.connect.engine.sink_reader import SinkReader

        return SinkReader(run)

    def simpleStreamReader(self, schema: "StructType") -> Any:  # noqa: N802
        from ottla.connect.engine.source_reader import SourceReader

        return SourceReader(self._run())

    def streamWriter(self, schema: "StructType", overwrite: bool) -> Any:  # noqa: N802
        run = self._run()
        if run.type == "source":
            from ottla.connect.engine.source_writer import SourceWriter

            return SourceWriter(run)
        from ottla.connect.engine.sink_writer import SinkWriter

        return SinkWriter(run)
