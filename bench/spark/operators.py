"""Rows a second of each operator of `ottla.spark.pipelines`, and a second of a core.

    python bench/spark/operators.py                   200,000 rows, 20,000 keys
    python bench/spark/operators.py --rows 50000 --only latest per_key

Rows come from files, in four micro-batches, and go nowhere. The first row of the table is what Spark itself does with a
call of Python for each key (`transformWithStateInPandas`), which is what state in buckets is compared with.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
import pyarrow as pa  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402
from compare import print_table  # noqa: E402
from pyspark.sql import Column, DataFrame  # noqa: E402
from pyspark.sql import functions as F  # noqa: E402
from pyspark.sql.streaming.stateful_processor import StatefulProcessor  # noqa: E402
from rates import run_to_the_end  # noqa: E402

import ottla.spark  # noqa: E402
from ottla.spark import pipelines as p  # noqa: E402

BATCHES = 4
CORES = 2
SCHEMA = "key string, value string, other string, offset long, timestamp timestamp"


def spark_by_key(rows: DataFrame) -> DataFrame:
    class Count(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self.state = handle.getValueState("n", "n long")

        def handleInputRows(self, key: Any, rows: Any, timers: Any) -> Iterator[pd.DataFrame]:  # noqa: N802
            before = self.state.get()
            n = (before[0] if before else 0) + sum(map(len, rows))
            self.state.update((n,))
            yield pd.DataFrame({"key": [key[0]], "n": [n]})

        def close(self) -> None:
            pass

    return rows.groupBy("key").transformWithStateInPandas(Count(), "key string, n long", "append", "None")


def custom(rows: DataFrame) -> DataFrame:
    class Count(p.Processor):
        def on_rows(self, key: Any, rows: Any, state: p.KeyState) -> Iterator[tuple[Any, ...]]:
            state.value = (state.value or 0) + len(rows)
            yield *key, state.value

    return p.per_key(rows.select("key", "value"), ["key"], Count(), "key string, n long")


def halves(rows: DataFrame) -> tuple[DataFrame, DataFrame]:
    return rows.where("offset % 2 = 0"), rows.where("offset % 2 = 1")


def near(rows: DataFrame) -> DataFrame:
    left, right = halves(rows)
    right = right.select("key", F.col("value").alias("found"), F.col("timestamp").alias("at"))
    return p.stream_stream(
        left, right, ["key"], left_time="timestamp", right_time="at", before="1 second", after="1 second"
    )


def count() -> Column:
    return F.count("*").alias("n")


OPERATORS: dict[str, tuple[Callable[[DataFrame], DataFrame], str]] = {
    "Spark: a call a key": (spark_by_key, "append"),
    "per_key": (custom, "append"),
    "latest": (p.latest, "update"),
    "aggregate_stream": (lambda rows: p.aggregate_stream(rows, F.col("key")), "append"),
    "aggregate_table": (lambda rows: p.aggregate_table(rows, F.col("other")), "append"),
    "tumbling": (lambda rows: p.tumbling(rows, "1 second", count(), by=["other"]), "append"),
    "hopping": (lambda rows: p.hopping(rows, "2 seconds", "1 second", count(), by=["other"]), "append"),
    "session": (lambda rows: p.session(rows, "1 second", count(), by=["key"]), "append"),
    "sliding": (lambda rows: p.sliding(rows, 1000), "append"),
    "stream_stream": (near, "append"),
    "stream_table": (lambda rows: p.stream_table(*halves(rows)), "append"),
    "table_table": (lambda rows: p.table_table(*halves(rows)), "append"),
    "foreign_key": (lambda rows: p.foreign_key(rows, rows, F.col("other")), "append"),
    "until_closed": (
        lambda rows: p.until_closed(rows.withColumn("closes", F.expr("timestamp + INTERVAL 1 second")), "closes"),
        "append",
    ),
    "deduplicate": (lambda rows: p.deduplicate(rows, ["key"], time="timestamp", within="1 second"), "append"),
}


def main() -> None:
    options = _parser().parse_args()
    spark = ottla.spark.session(
        "operators",
        master=f"local[{CORES}]",
        **{"spark.sql.shuffle.partitions": CORES, "spark.ui.enabled": False, "spark.ui.showConsoleProgress": False},
    )
    spark.sparkContext.setLogLevel("OFF")
    table = []
    with TemporaryDirectory() as folder:
        write(Path(folder), options.rows, options.keys)
        for name in options.only:
            operator, mode = OPERATORS[name]
            rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(folder)
            cost = run_to_the_end(operator(rows), mode)
            table.append([name, mode, f"{options.rows / cost.seconds:,.0f}", f"{options.rows / cost.cpu_s:,.0f}"])
            print(f"    {name}: {cost.seconds:.1f} s, {cost.cpu_s:.1f} of the processors", file=sys.stderr, flush=True)
    spark.stop()
    print_table(["operator", "output mode", "rows/s", "rows/s of a core"], table)


def write(folder: Path, rows: int, keys: int) -> None:
    chance = np.random.default_rng(1)
    for batch in range(BATCHES):
        offsets = np.arange(batch * rows // BATCHES, (batch + 1) * rows // BATCHES)
        columns = {
            "key": pa.array(chance.integers(0, keys, len(offsets))).cast(pa.string()),
            "value": pa.array(offsets).cast(pa.string()),
            "other": pa.array(chance.integers(0, keys // 10, len(offsets))).cast(pa.string()),
            "offset": pa.array(offsets),
            "timestamp": pa.array(1_700_000_000_000_000 + offsets * 50, pa.timestamp("us", tz="UTC")),
        }
        pq.write_table(pa.table(columns), folder / f"{batch}.parquet")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--keys", type=int, default=20_000)
    parser.add_argument("--only", nargs="+", choices=list(OPERATORS), default=list(OPERATORS))
    return parser


if __name__ == "__main__":
    main()
