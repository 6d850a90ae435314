"""The Spark job of the demo: `python -m ottla.spark.demo.pipeline BOOTSTRAP DIRECTORY`.

Two queries, from topic to topic, exactly once:

- bids joined with their auctions while these are open, and of that the average price by category and window, emitted
  once
  when the window has closed;
- how much each bidder has bid, as a changelog: one record whenever it has changed.

Its state and its progress are under DIRECTORY, so that it continues where a killed one was. It prints a line of JSON
for each micro-batch, and ends when its standard input does.
"""

import json
import sys
from tempfile import gettempdir
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.listener import StreamingQueryListener

from ottla.spark.demo.failures import reason
from ottla.spark.demo.settings import BIDDERS, GRACE, PRICES, WINDOW_S
from ottla.spark.local_session import session
from ottla.spark.nexmark.records import AUCTIONS, BIDS, from_records
from ottla.spark.pipelines import aggregate_stream, stream_stream, table_to_records, to_records, tumbling

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery


def prices_by_category(auctions: DataFrame, bids: DataFrame) -> DataFrame:
    """Bids on open auctions, by category and window: how many, what they add up to, and the average."""
    opened = auctions.select("auction", "category", "expires", F.col("time").alias("opened"))
    placed = stream_stream(
        opened, bids, ["auction"], left_time="opened", right_time="time", after="15 seconds", grace=GRACE
    )
    while_open = placed.where(F.col("time") <= F.col("expires"))
    measures = F.count("*").alias("count"), F.sum("price").alias("total"), F.avg("price").alias("average")
    # The join has set the watermark, for both sides.
    windows = tumbling(while_open, f"{WINDOW_S} seconds", *measures, by=["category"], time="time", grace=None)
    return windows.select(F.col("window.start").alias("start"), "category", "count", "total", "average")


def bidders(bids: DataFrame) -> DataFrame:
    known = bids.where(F.col("bidder") >= 0)
    return aggregate_stream(known, F.col("bidder").cast("string"), {"total": F.col("price")}, buckets=4)


def start(spark: SparkSession, bootstrap: str, directory: str) -> "list[StreamingQuery]":
    def events(kind: str) -> DataFrame:
        records = (
            spark.readStream.format("ottla")
            .option("kafka.bootstrap.servers", bootstrap)
            .option("subscribe", kind)
            .option("startingOffsets", "earliest")
            .load()
        )
        return from_records(records, kind)

    def write(results: DataFrame, topic: str) -> "StreamingQuery":
        return (
            results.writeStream.format("ottla")
            .queryName(topic)
            .option("kafka.bootstrap.servers", bootstrap)
            .option("topic", topic)
            .option("checkpointLocation", f"{directory}/{topic}")
            .start()
        )

    prices = prices_by_category(events(AUCTIONS), events(BIDS))
    return [
        write(to_records(prices, ["start", "category"]), PRICES),
        write(table_to_records(bidders(events(BIDS))), BIDDERS),
    ]


class _Reports(StreamingQueryListener):
    """Prints what each micro-batch did."""

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - Spark's name
        _tell(query=event.name, state="started")

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802 - Spark's name
        progress = event.progress
        _tell(
            query=progress.name,
            batch=progress.batchId,
            rows=progress.numInputRows,
            rate=progress.processedRowsPerSecond,
            ms=progress.batchDuration,
        )

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """Nothing came."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802 - Spark's name
        if event.exception:
            print(event.exception, file=sys.stderr, flush=True)
            _tell(query=str(event.id), state="failed", why=reason(event.exception))


def _tell(**facts: object) -> None:
    print(json.dumps(facts), flush=True)


def main(bootstrap: str, directory: str) -> None:
    spark = session(
        "ottla demo",
        master="local[2]",
        **{
            "spark.sql.shuffle.partitions": 2,
            "spark.ui.enabled": False,
            "spark.ui.showConsoleProgress": False,
            # It lives for a minute: Java's second compiler would take more time than it saves. Java does not look at
            # TMPDIR by itself.
            "spark.driver.extraJavaOptions": (
                f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData -Djava.io.tmpdir={gettempdir()}"
            ),
        },
    )
    spark.sparkContext.setLogLevel("ERROR")
    spark.streams.addListener(_Reports())
    queries = start(spark, bootstrap, directory)
    _tell(state="ready")
    sys.stdin.read()
    for query in queries:
        query.stop()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
