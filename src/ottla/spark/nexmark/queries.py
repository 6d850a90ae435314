"""The questions of Nexmark, each a function from the three streams to a DataFrame.

They say the same of streams and of tables that are complete, so that a batch run of the same function on the same
events checks a streaming one; question 4 alone has a plan of its own for each (`closing.py`). Windows are as long as
ten seconds, where the benchmark has hours or leaves it open, and rows may be late by `GRACE`.
"""

from collections.abc import Callable
from typing import Final, Literal, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ottla.spark.nexmark.closing import average_closing_price
from ottla.spark.nexmark.records import Streams
from ottla.spark.pipelines.windows import hopping, session, tumbling

WINDOW: Final = "10 seconds"
ADVANCE: Final = "2 seconds"
GRACE: Final = "2 seconds"
DOLLARS_TO_EUROS: Final = 0.908


class Query(NamedTuple):
    """A question; `output_mode` is the one that its streaming plan is made for."""

    asks: str
    answer: Callable[[Streams], DataFrame]
    output_mode: Literal["append", "update"]
    reads: tuple[str, ...]


def pass_through(of: Streams) -> DataFrame:
    return of.bids


def in_euros(of: Streams) -> DataFrame:
    return of.bids.withColumn("price", F.round(F.col("price") * DOLLARS_TO_EUROS, 3))


def some_auctions(of: Streams) -> DataFrame:
    return of.bids.where(F.col("auction") % 123 == 0).select("auction", "price")


def local_items(of: Streams) -> DataFrame:
    """Who sells in category 10 in three states. Both sides are kept for ever: an old person may sell tomorrow."""
    sellers = of.people.where(F.col("state").isin("OR", "ID", "CA")).drop("time")
    offers = of.auctions.where(F.col("category") == 10).select("auction", "seller")
    joined = offers.join(sellers, offers["seller"] == sellers["person"])
    return joined.select("name", "city", "state", "auction")


def hot_auctions(of: Streams) -> DataFrame:
    """The auctions with the most bids in each of the overlapping windows; several, if they have as many."""
    counts = hopping(of.bids, WINDOW, ADVANCE, F.count("*").alias("bids"), by=["auction"], time="time", grace=GRACE)
    # Of a window's counts the highest is known when all are: a second aggregation over the same windows.
    by_window = counts.groupBy("window").agg(F.collect_list(F.struct("bids", "auction")).alias("counts"))
    ranked = by_window.withColumn("most", F.array_max(F.transform("counts", lambda one: one["bids"])))
    best = F.explode(F.filter("counts", lambda one: one["bids"] == F.col("most")))
    return ranked.select("window", best.alias("best")).select("window", "best.auction", "best.bids")


def highest_bids(of: Streams) -> DataFrame:
    """The highest bid of each window; of equal ones, that with the highest numbers."""
    bid = F.struct("price", "auction", "bidder", "time")
    return tumbling(of.bids, WINDOW, F.max(bid).alias("bid"), time="time", grace=GRACE).select("window", "bid.*")


def new_sellers(of: Streams) -> DataFrame:
    """People who opened an auction in the window in which they came."""
    people = of.people.withWatermark("time", GRACE).select("person", "name", F.window("time", WINDOW).alias("window"))
    auctions = of.auctions.withWatermark("time", GRACE).select("seller", F.window("time", WINDOW).alias("opened"))
    joined = people.join(auctions, (F.col("person") == F.col("seller")) & (F.col("window") == F.col("opened")))
    return joined.select("person", "name", "window").dropDuplicates(["person", "window"])


def bidding_sessions(of: Streams) -> DataFrame:
    """How many bids each bidder made without a pause as long as a window."""
    return session(of.bids, WINDOW, F.count("*").alias("bids"), by=["bidder"], time="time", grace=GRACE)


def bids_by_the_clock(of: Streams) -> DataFrame:
    """Bids of each bidder in windows of the machine's time: when they were read, not when they were made."""
    read = of.bids.select("bidder", F.current_timestamp().alias("read"))
    return tumbling(read, WINDOW, F.count("*").alias("bids"), by=["bidder"], time="read", grace=None)


QUERIES: Final = {
    0: Query("all bids", pass_through, "append", ("bids",)),
    1: Query("all bids, in euros", in_euros, "append", ("bids",)),
    2: Query("bids on some auctions", some_auctions, "append", ("bids",)),
    3: Query("local items of a category", local_items, "append", ("people", "auctions")),
    4: Query("average closing price by category", average_closing_price, "append", ("auctions", "bids")),
    5: Query("hot auctions, in overlapping windows", hot_auctions, "append", ("bids",)),
    7: Query("the highest bid of each window", highest_bids, "append", ("bids",)),
    8: Query("people who sell as soon as they came", new_sellers, "append", ("people", "auctions")),
    11: Query("bidding sessions", bidding_sessions, "append", ("bids",)),
    12: Query("bids by the clock", bids_by_the_clock, "update", ("bids",)),
}
