"""One Spark session that does what it is told, one JSON line after the other; answers are JSON lines too.

It runs with our connector in our environment, and with Spark's own in another, so it imports PySpark alone.
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

from pyspark.sql import SparkSession

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.memory": "1g",
}

PATIENCE_S = 600.0
"""For one job: a benchmark that hangs must end."""


class Jobs:
    def __init__(self, source: str, settings: dict[str, str]) -> None:
        self._source = source
        builder = SparkSession.builder.appName(f"bench of {source}").master("local[2]")
        for name, value in {**SETTINGS, **settings}.items():
            builder = builder.config(name, value)
        self._spark = builder.getOrCreate()
        self._spark.sparkContext.setLogLevel("ERROR")

    def scan(self, servers: str, topic: str, **options: str) -> dict[str, float]:
        """Every row of a topic, to a sink that takes them all and keeps none."""
        frame = self._reader(self._spark.read, servers, topic).options(**options).load()
        began_s, cpu_s = perf_counter(), _cpu_seconds()
        frame.write.format("noop").mode("overwrite").save()
        return {"seconds": perf_counter() - began_s, "cpu_s": _cpu_seconds() - cpu_s}

    def avro(self, servers: str, topic: str, registry: str, schema: str) -> dict[str, float]:
        """Every value of a topic as columns, from Avro behind the id of its schema. Spark's connector has no registry:
        it is told the schema, and where the Avro begins."""
        reader = self._reader(self._spark.read, servers, topic)
        if self._source == "ottla":
            # Of its own connector, Spark reads the columns that are selected; a source in Python must be told them.
            reader = reader.option("columns", "value")
            frame = reader.option("value.format", "avro").option("schema.registry.url", registry).load()
        else:
            from pyspark.sql.avro.functions import from_avro
            from pyspark.sql.functions import expr

            frame = reader.load().select(from_avro(expr("substring(value, 6)"), schema).alias("value"))
        began_s, cpu_s = perf_counter(), _cpu_seconds()
        frame.select("value.*").write.format("noop").mode("overwrite").save()
        return {"seconds": perf_counter() - began_s, "cpu_s": _cpu_seconds() - cpu_s}

    def stream(self, servers: str, topic: str, rows_per_batch: int) -> dict[str, float]:
        """The same in micro-batches of so many rows, to the end of the topic."""
        reader = self._reader(self._spark.readStream, servers, topic).option("maxOffsetsPerTrigger", rows_per_batch)
        with _Checkpoint() as checkpoint:
            began_s, cpu_s = perf_counter(), _cpu_seconds()
            query = (
                reader.load()
                .writeStream.format("noop")
                .option("checkpointLocation", checkpoint)
                .trigger(availableNow=True)
                .start()
            )
            _run_out(query)
            seconds, cpu_s = perf_counter() - began_s, _cpu_seconds() - cpu_s
            progress = [one for one in query.recentProgress if one["numInputRows"]]
        steady = progress[1:] or progress
        return {
            "seconds": seconds,
            "cpu_s": cpu_s,
            "rows": sum(one["numInputRows"] for one in progress),
            "rows_per_s": sum(one["numInputRows"] for one in steady)
            / sum(one["durationMs"]["triggerExecution"] / 1000 for one in steady),
        }

    def small_batches(self, servers: str, topic: str, count: int) -> dict[str, Any]:
        """Micro-batches of one row for each partition, to see what a micro-batch costs; and what an idle query does."""
        reader = self._reader(self._spark.readStream, servers, topic).option("maxOffsetsPerTrigger", 1)
        with _Checkpoint() as checkpoint:
            query = reader.load().writeStream.format("noop").option("checkpointLocation", checkpoint).start()
            seen: dict[int, float] = {}
            deadline_s = perf_counter() + PATIENCE_S
            while len(seen) < count:
                if query.awaitTermination(0.05) or perf_counter() > deadline_s:
                    raise TimeoutError(f"{len(seen)} of {count} micro-batches in {PATIENCE_S:g} s")
                for one in query.recentProgress:
                    if one["numInputRows"]:
                        seen[one["batchId"]] = one["durationMs"]["triggerExecution"] / 1000
            query.stop()
        times = sorted(list(seen.values())[2:])
        return {"seconds": times[len(times) // 2]}

    def empty_runs(self, servers: str, topic: str, count: int) -> dict[str, Any]:
        """How long a query takes that is started, finds nothing new, and ends."""
        reader = self._reader(self._spark.readStream, servers, topic)
        times = []
        with _Checkpoint() as checkpoint:
            for _ in range(count + 1):
                began_s = perf_counter()
                writer = reader.load().writeStream.format("noop").option("checkpointLocation", checkpoint)
                _run_out(writer.trigger(availableNow=True).start())
                times.append(perf_counter() - began_s)
        times = sorted(times[1:])  # the first has read all
        return {"seconds": times[len(times) // 2]}

    def sink(self, servers: str, topic: str, target: str, rows_per_batch: int, **options: str) -> dict[str, float]:
        """Keys and values of a topic to another one, in micro-batches."""
        return self._copy(servers, topic, rows_per_batch, self._source, {**options, "topic": target})

    def floor(self, servers: str, topic: str, rows_per_batch: int) -> dict[str, float]:
        """The same with a sink in Python that takes all rows and keeps none: what PySpark itself costs."""
        self._spark.dataSource.register(_nothing())
        return self._copy(servers, topic, rows_per_batch, "nothing", {})

    def _copy(
        self, servers: str, topic: str, rows_per_batch: int, to: str, options: dict[str, str]
    ) -> dict[str, float]:
        reader = self._reader(self._spark.readStream, servers, topic).option("maxOffsetsPerTrigger", rows_per_batch)
        with _Checkpoint() as checkpoint:
            began_s, cpu_s = perf_counter(), _cpu_seconds()
            writer = reader.load().select("key", "value").writeStream.format(to).options(**options)
            writer = writer.option("kafka.bootstrap.servers", servers)
            query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
            _run_out(query)
            return {"seconds": perf_counter() - began_s, "cpu_s": _cpu_seconds() - cpu_s}

    def idle(self, servers: str, topic: str, seconds: float) -> dict[str, Any]:
        """How long a micro-batch takes that finds nothing, and how busy an idle query keeps this machine."""
        reader = self._reader(self._spark.readStream, servers, topic).option("startingOffsets", "latest")
        with _Checkpoint() as checkpoint:
            query = reader.load().writeStream.format("noop").option("checkpointLocation", checkpoint).start()
            query.processAllAvailable()
            sleep(2)
            before_s = _cpu_seconds()
            sleep(seconds)
            busy = (_cpu_seconds() - before_s) / seconds
            began_s = perf_counter()
            query.stop()
            stopped_s = perf_counter() - began_s
        return {"cores": busy, "stop_s": stopped_s}

    def _reader(self, reader: Any, servers: str, topic: str) -> Any:
        return (
            reader.format(self._source)
            .option("kafka.bootstrap.servers", servers)
            .option("subscribe", topic)
            .option("startingOffsets", "earliest")
        )


def _nothing() -> Any:
    """A data source whose sink does nothing. The PySpark of Spark's connector does not have all of its classes."""
    from pyspark.sql.datasource import DataSource, DataSourceStreamArrowWriter, WriterCommitMessage

    class Writer(DataSourceStreamArrowWriter):
        def write(self, iterator: Any) -> WriterCommitMessage:
            for _ in iterator:
                pass
            return WriterCommitMessage()

    class Nothing(DataSource):
        @classmethod
        def name(cls) -> str:
            return "nothing"

        def streamWriter(self, schema: Any, overwrite: bool) -> Writer:  # noqa: N802 - Spark's name
            return Writer()

    return Nothing


def _run_out(query: Any) -> None:
    """Waits for the end of a query with Trigger.AvailableNow. Raises what it failed with, or that it takes too long."""
    if not query.awaitTermination(PATIENCE_S):
        query.stop()
        raise TimeoutError(f"the query did not end within {PATIENCE_S:g} s")


class _Checkpoint:
    def __enter__(self) -> str:
        self._path = tempfile.mkdtemp()
        return self._path

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._path, ignore_errors=True)


def _cpu_seconds() -> float:
    """Of this process and all below it, so far."""
    import os

    parents: dict[int, int] = {}
    times: dict[int, float] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry.name)] = int(fields[1])
            times[int(entry.name)] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    ours = {os.getpid()}
    while added := {pid for pid, parent in parents.items() if parent in ours} - ours:
        ours |= added
    return sum(times.get(pid, 0.0) for pid in ours)


def main() -> None:
    source, settings = sys.argv[1], json.loads(sys.argv[2])
    jobs = Jobs(source, settings)
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        job = json.loads(line)
        print(json.dumps(getattr(jobs, job.pop("do"))(**job)), flush=True)


if __name__ == "__main__":
    main()
