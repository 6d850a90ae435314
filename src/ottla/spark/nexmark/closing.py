"""Question 4: the average price at which auctions of a category closed.

An auction closes when its time is over; the highest bid that was made while it was open wins. On a stream that is state
with timers: an auction waits for its bids until the watermark has passed its end, and only then adds its price to the
average of its category. A bid may come before its auction: they are in two topics.
"""

from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, LongType, StructField, StructType

from ottla.spark.nexmark.records import Streams
from ottla.spark.pipelines.buckets import Bucket, Now, Operator, Rows, in_buckets

GRACE: Final = "2 seconds"
PATIENCE_MS: Final = 20_000  # a bid whose auction has not come by then is forgotten: no auction lasts as long

_CLOSED: Final = StructType([StructField("category", LongType()), StructField("price", LongType())])
_AVERAGE: Final = StructType(
    [StructField("category", LongType()), StructField("price", DoubleType()), StructField("auctions", LongType())]
)


def average_closing_price(of: Streams) -> DataFrame:
    """`category`, `price` and the number of `auctions`; streaming, a category comes again whenever one has closed."""
    if not of.bids.isStreaming:
        return _of_complete(of)
    opened = of.auctions.withWatermark("time", GRACE).select(
        "auction",
        F.unix_millis("time").alias("time_ms"),
        F.unix_millis("expires").alias("expires_ms"),
        "category",
        F.lit(-1).cast("long").alias("price"),
    )
    bid = of.bids.withWatermark("time", GRACE).select(
        "auction",
        F.unix_millis("time").alias("time_ms"),
        F.lit(-1).cast("long").alias("expires_ms"),
        F.lit(-1).cast("long").alias("category"),
        "price",
    )
    closed = in_buckets(opened.unionByName(bid), F.col("auction"), _Auctions(), _CLOSED, time_mode="EventTime")
    return in_buckets(closed, F.col("category"), _Averages(), _AVERAGE, buckets=8)


def _of_complete(of: Streams) -> DataFrame:
    bids = of.bids.select(F.col("auction").alias("on"), "price", F.unix_millis("time").alias("bid_ms"))
    is_open = F.col("bid_ms").between(F.unix_millis("time"), F.unix_millis("expires"))
    won = (
        of.auctions.join(bids, (F.col("auction") == F.col("on")) & is_open)
        .groupBy("auction", "category")
        .agg(F.max("price").alias("price"))
    )
    return won.groupBy("category").agg(
        (F.sum("price") / F.count("*")).alias("price"), F.count("*").alias("auctions")
    )  # fmt: skip


class _Auctions(Operator):
    """An auction's entry is [when it opened, when it ends, its category, its bids so far]: of bids on an auction that
    is known, the highest only.
    """

    def on_rows(self, bucket: Bucket, rows: list[tuple[Any, ...]], now: Now) -> Rows:
        entries, due_ms = bucket.entries, bucket.due_ms
        for auction, time_ms, expires_ms, category, price in rows:
            entry = entries.get(auction)
            if entry is None:
                entry = entries[auction] = [None, None, None, []]
                due_ms[auction] = time_ms + PATIENCE_MS
            if price < 0:
                entry[:3] = time_ms, expires_ms, category
                entry[3] = [bid for bid in entry[3] if time_ms <= bid[1] <= expires_ms]
                due_ms[auction] = expires_ms + 1
            elif entry[0] is None:
                entry[3].append((price, time_ms))
            elif entry[0] <= time_ms <= entry[1] and (not entry[3] or price > entry[3][0][0]):
                entry[3] = [(price, time_ms)]
        return ()

    def on_due(self, bucket: Bucket, keys: list[Any], now: Now) -> Rows:
        for auction in keys:
            _, expires_ms, category, bids = bucket.entries.pop(auction)
            if expires_ms is not None and bids:
                yield category, max(bids)[0]


class _Averages(Operator):
    def on_rows(self, bucket: Bucket, rows: list[tuple[Any, ...]], now: Now) -> Rows:
        touched = set()
        for category, price in rows:
            total, count = bucket.entries.get(category, (0, 0))
            bucket.entries[category] = (total + price, count + 1)
            touched.add(category)
        for category in touched:
            total, count = bucket.entries[category]
            yield category, total / count, count
