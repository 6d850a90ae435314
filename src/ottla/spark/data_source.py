"""What Spark calls `ottla`. Spark makes one of it wherever a DataFrame is read or written, and asks it for the rest."""

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from ottla.spark.options import OptionError, Options, Use
from ottla.spark.plain_errors import tells_plainly
from ottla.spark.worker_process import begin_task, leave_quietly_when_idle

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType

    from ottla.spark.sink.sink_options import Delivery, SinkOptions
    from ottla.spark.source.source_options import SourceOptions
    from ottla.spark.source.task import RowReading

leave_quietly_when_idle()


class OttlaDataSource(DataSource):
    """Thin: it reads the options and hands over. Each import is of one use, as workers pay for what they load."""

    @classmethod
    def name(cls) -> str:
        return "ottla"

    @tells_plainly
    def schema(self) -> str:
        """Of a read. Whether it will be a batch or a stream is not known yet."""
        from ottla.spark.source.rows import schema_ddl
        from ottla.spark.source.values.value_options import value_type_ddl, with_schemas

        options = self._source_options(Use.READ)
        names = self._column_names(options)
        return schema_ddl(names, value_type_ddl(with_schemas(options.values)) if "value" in names else "BINARY")

    @tells_plainly
    def reader(self, schema: "StructType") -> "DataSourceReader":
        from ottla.spark.source.batch_reader import BatchReader

        options = self._planned(Use.BATCH_READ)
        return BatchReader(options, self._reading(options, schema))

    @tells_plainly
    def streamReader(self, schema: "StructType") -> "DataSourceStreamReader":  # noqa: N802
        from ottla.spark.source.stream_reader import StreamReader

        options = self._planned(Use.STREAM_READ)
        return StreamReader(options, self._reading(options, schema))

    @tells_plainly
    def writer(self, schema: "StructType", overwrite: bool) -> "DataSourceWriter":
        from ottla.spark.sink.batch_writer import BatchWriter
        from ottla.spark.sink.sink_options import Delivery

        return BatchWriter(
            self._sink_options(Use.BATCH_WRITE, Delivery.SINGLE_TRANSACTION, schema, overwrite), schema.names
        )

    @tells_plainly
    def streamWriter(self, schema: "StructType", overwrite: bool) -> "DataSourceStreamWriter":  # noqa: N802  # Spark's name
        from ottla.spark.sink.sink_options import Delivery
        from ottla.spark.sink.stream_writer import StreamWriter

        return StreamWriter(
            self._sink_options(Use.STREAM_WRITE, Delivery.EXACTLY_ONCE, schema, overwrite), schema.names
        )

    def _sink_options(self, use: Use, default: "Delivery", schema: "StructType", overwrite: bool) -> "SinkOptions":
        from ottla.spark.sink.cluster_access import check_reachable
        from ottla.spark.sink.rows import check_columns
        from ottla.spark.sink.sink_options import read_sink_options

        begin_task("planning a write")
        if overwrite:
            raise OptionError('a topic cannot be overwritten: use .mode("append")')
        options = read_sink_options(Options(self.options, use), default)
        types = {field.name: field.dataType.simpleString() for field in schema}
        check_columns(types, options.topic, encodes_values=options.encoding is not None)
        check_reachable(options.settings)
        return options

    def _source_options(self, use: Use) -> "SourceOptions":
        from ottla.spark.source.source_options import read_source_options

        return read_source_options(Options(self.options, use), use)

    def _planned(self, use: Use) -> "SourceOptions":
        """With the schemas that tasks are to have."""
        from ottla.spark.source.values.value_options import with_schemas

        options = self._source_options(use)
        if "value" not in self._column_names(options):
            return options
        return options._replace(values=with_schemas(options.values))

    def _column_names(self, options: "SourceOptions") -> list[str]:
        from ottla.spark.source.rows import column_names

        has_dead_letters = options.values.on_error.value == "deadLetter"
        return column_names(
            includes_headers=options.includes_headers, columns=options.columns, has_dead_letters=has_dead_letters
        )

    def _reading(self, options: "SourceOptions", schema: "StructType") -> "RowReading":
        """What Spark was given, or what a user has said with `.schema()`, which then must be the same."""
        from pyspark.sql.pandas.types import to_arrow_type
        from pyspark.sql.types import BinaryType, StringType

        from ottla.spark.source.rows import other_columns
        from ottla.spark.source.task import RowReading

        names = self._column_names(options)
        value_type = schema["value"].dataType if "value" in schema.names else BinaryType()
        fixed = {"raw": BinaryType(), "string": StringType()}.get(options.values.format, value_type)
        others = [(field.name, field.dataType) for field in schema if field.name != "value"]
        if schema.names != names or others != other_columns(names) or value_type != fixed:
            raise OptionError(
                f"the source has the columns {self.schema()}, and .schema() asks for {schema.simpleString()}: "
                "leave .schema() out, and choose with the options columns and value.format"
            )
        return RowReading(names, to_arrow_type(value_type, timezone="UTC"))
