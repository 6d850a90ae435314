"""Output mode update, exactly once: what Spark offers to no sink that is written in Python.

Spark hands the changed rows of each micro-batch to a function (`foreachBatch`), and that writes them as a batch. With
delivery exactly-once the write belongs to the query's batch: one that is replayed after a crash finds it done.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from ottla.spark.options import Options, Use
from ottla.spark.sink.rows import check_columns
from ottla.spark.sink.sink_options import Delivery, read_sink_options

if TYPE_CHECKING:
    from pyspark.sql.streaming.readwriter import DataStreamWriter


def write_updates(
    records: DataFrame, options: Mapping[str, object], *, output_mode: str = "update"
) -> "DataStreamWriter":
    """A writer to be started: give it a `checkpointLocation`, a name and a trigger as any other.

    `records` are rows as the sink takes them, from `to_records` for example; `options` are those of the sink. What is
    wrong with either is reported here, and not by the first micro-batch. In output mode complete each batch writes all.
    """
    given = {name: str(value) for name, value in {"delivery": Delivery.EXACTLY_ONCE.value, **options}.items()}
    checked = read_sink_options(Options(given, Use.BATCH_WRITE), Delivery.EXACTLY_ONCE)
    check_columns({field.name: field.dataType.simpleString() for field in records.schema}, checked.topic)

    def write(changed: DataFrame, _: int) -> None:
        changed.write.format("ottla").mode("append").options(**given).save()

    return records.writeStream.outputMode(output_mode).foreachBatch(write)
