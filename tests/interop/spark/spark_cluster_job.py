"""A job for a cluster: copies a topic to another, exactly once, slowly enough to be disturbed.

spark-submit spark_cluster_job.py BOOTSTRAP SOURCE TARGET CHECKPOINT
"""

import sys
import time
from collections.abc import Iterator
from typing import Any

from pyspark.sql import SparkSession


def slowly(batches: Iterator[Any]) -> Iterator[Any]:
    for batch in batches:
        time.sleep(0.5)
        yield batch


def main() -> None:
    bootstrap, source, target, checkpoint = sys.argv[1:]
    spark = SparkSession.builder.appName("copy").getOrCreate()
    spark.sparkContext.setLogLevel("WARN")
    rows = (
        spark.readStream.format("ottla")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", 400)
        .load()
        .select("key", "value")
    )
    query = (
        rows.mapInArrow(slowly, rows.schema)
        .writeStream.format("ottla")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", target)
        .option("inlineBytes", 0)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main()
