"""Output mode update, to a topic, exactly once."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from ottla.spark.options import OptionError
from ottla.spark.pipelines import aggregated, write_updates
from ottla.spark.sink.rows import WrongRows
from ottla.testing import Broker
from tests.spark.sink_scene import records
from tests.spark.streams import run_until


def test_every_change_is_written_once_over_a_restart(
    spark: SparkSession, ottla_broker: Broker, ottla_topic: str, tmp_path: Path
) -> None:
    to = {"kafka.bootstrap.servers": ottla_broker.bootstrap, "topic": ottla_topic}
    for last_batch in (1, 3):
        numbers = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 20).load()
        digits = numbers.select((F.col("value") % 2).cast("string").alias("digit"))
        counts = aggregated(digits, ["digit"], F.count("*").alias("n"))
        run_until([write_updates(counts, to).option("checkpointLocation", str(tmp_path)).start()], last_batch)
    found = records(ottla_broker, ottla_topic)
    for key in (b"0", b"1"):
        told = [json.loads(record.value)["n"] for record in found if record.key == key]
        assert told == [10 * (batch + 1) for batch in range(len(told))]
        assert len(told) >= 4


def test_what_is_wrong_is_told_before_the_query_starts(spark: SparkSession) -> None:
    numbers = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
    to = {"kafka.bootstrap.servers": "localhost:9092", "topic": "updates"}
    with pytest.raises(WrongRows, match='column "value": it must be string or binary, and is bigint'):
        write_updates(numbers, to)
    with pytest.raises(OptionError, match="option topics is unknown; did you mean topic"):
        write_updates(numbers.selectExpr("cast(value as string) value"), {**to, "topics": "updates"})
