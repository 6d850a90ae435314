"""What the pipeline must have written, computed directly from the events: without Spark, topics or windows that
close.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types

from ottla.spark.demo.answers import Bidders, Bids, Prices
from ottla.spark.demo.settings import SEED, WINDOW_S, DemoSettings
from ottla.spark.nexmark.events import FIRST_AUCTION, events

if TYPE_CHECKING:
    from ottla.spark.demo.answers import Answers

K = TypeVar("K")
WINDOW_US = WINDOW_S * 1_000_000


def expected(settings: DemoSettings, began_ms: int) -> tuple[Prices, Bidders]:
    """All events again, from their seed."""
    happened = events(0, settings.events, seed=SEED, began_ms=began_ms, rate=settings.rate)
    auctions, bids = happened.auctions, happened.bids
    # Auctions are numbered in their order: a number is a row.
    row = bids["auction"].to_numpy() - FIRST_AUCTION
    time_us = _micros(bids["time"])
    is_open = time_us <= _micros(auctions["expires"])[row]
    placed = pa.table(
        {
            "start": (time_us // WINDOW_US * WINDOW_US)[is_open],
            "category": auctions["category"].to_numpy()[row][is_open],
            "price": bids["price"].to_numpy()[is_open],
        }
    )
    sums = [("price", "count"), ("price", "sum")]
    prices = placed.group_by(["start", "category"]).aggregate(sums).to_pylist()
    by_bidder = bids.group_by(["bidder"]).aggregate(sums).to_pylist()
    return (
        {(_instant(one["start"]), one["category"]): Bids(one["price_count"], one["price_sum"]) for one in prices},
        {str(one["bidder"]): Bids(one["price_count"], one["price_sum"]) for one in by_bidder},
    )


def differences(answers: "Answers", prices: Prices, bidders: Bidders) -> list[str]:
    """What is wrong, in a line each; empty if everything is there, once, and right."""
    found = [*_compared("windows", answers.prices, prices), *_compared("bidders", answers.bidders, bidders)]
    if answers.repeated:
        found.append(f"{answers.repeated} results were written twice")
    return found


def _compared(what: str, seen: Mapping[K, Bids], wanted: Mapping[K, Bids]) -> Iterator[str]:
    missing, foreign = wanted.keys() - seen.keys(), seen.keys() - wanted.keys()
    wrong = {key for key in wanted.keys() & seen.keys() if seen[key] != wanted[key]}
    for problem, keys in (("are missing", missing), ("should not be there", foreign), ("are wrong", wrong)):
        if keys:
            yield f"{len(keys)} {what} of {len(wanted)} {problem}, {next(iter(keys))} for example"


def _micros(instants: Any) -> "np.ndarray[Any, np.dtype[np.int64]]":
    return np.asarray(instants.cast(pa.int64()).to_numpy(), dtype=np.int64)


def _instant(micros: int) -> str:
    """As `to_records` writes the start of a window."""
    return datetime.fromtimestamp(micros / 1_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
