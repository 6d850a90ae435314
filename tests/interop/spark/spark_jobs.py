"""One Spark session that does what it is told, one JSON line after the other, with the connector that it is given.

It runs in our environment with ours, and in another with Spark's own Kafka connector, so it imports PySpark alone.
"""

import json
import sys
from typing import Any

from pyspark.sql import DataFrame, SparkSession

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
}


class Jobs:
    def __init__(self, connector: str, settings: dict[str, str]) -> None:
        self._connector = connector
        builder = SparkSession.builder.appName(connector).master("local[2]")
        for name, value in {**SETTINGS, **settings}.items():
            builder = builder.config(name, value)
        self._spark = builder.getOrCreate()
        self._spark.sparkContext.setLogLevel("ERROR")

    def schema(self, options: dict[str, str]) -> str:
        return self._spark.read.format(self._connector).options(**options).load().schema.simpleString()

    def read(self, options: dict[str, str]) -> list[str]:
        return _lines(self._spark.read.format(self._connector).options(**options).load())

    def count(self, options: dict[str, str]) -> int:
        return self._spark.read.format(self._connector).options(**options).load().count()

    def write(self, sql: str, options: dict[str, str]) -> None:
        self._spark.sql(sql).write.format(self._connector).options(**options).mode("append").save()

    def stream(self, options: dict[str, str], checkpoint: str) -> list[list[str]]:
        """To the end of what is there; the rows of each micro-batch."""
        batches: dict[int, list[str]] = {}

        def take(rows: DataFrame, batch: int) -> None:
            batches[batch] = _lines(rows)

        reader = self._spark.readStream.format(self._connector).options(**options).load()
        writer = reader.writeStream.foreachBatch(take).option("checkpointLocation", checkpoint)
        _run_to_the_end(writer)
        return [batches[batch] for batch in sorted(batches)]

    def copy(self, options: dict[str, str], to: dict[str, str], checkpoint: str) -> None:
        """From topic to topic, by a stream."""
        rows = self._spark.readStream.format(self._connector).options(**options).load().select("key", "value")
        _run_to_the_end(rows.writeStream.format(self._connector).options(**to).option("checkpointLocation", checkpoint))


def _run_to_the_end(writer: Any) -> None:
    query = writer.trigger(availableNow=True).start()
    if not query.awaitTermination(120):
        query.stop()
        raise TimeoutError("the query did not end")


def _lines(rows: DataFrame) -> list[str]:
    """Each row as JSON, with all its columns; in order of partition and offset."""
    return [
        line.value
        for line in rows.orderBy("topic", "partition", "offset").selectExpr("to_json(struct(*)) value").collect()
    ]


def main() -> None:
    jobs = Jobs(sys.argv[1], json.loads(sys.argv[2]))
    print(json.dumps({"answer": "ready"}), flush=True)
    for line in sys.stdin:
        job = json.loads(line)
        try:
            answer = {"answer": getattr(jobs, job.pop("do"))(**job)}
        except Exception as problem:
            answer = {"problem": str(problem)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
