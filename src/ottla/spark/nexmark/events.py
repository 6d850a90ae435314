"""People, auctions and bids, made from a seed: the same seed and numbers give the same events, in any chunks.

Of 50 events in a row the first is a person, the next three are auctions, and 46 are bids. What an event says follows
from its number alone, by a hash, so that generators of different ranges need not know of each other, and a checker
can make everything again. Whole columns are computed at once.

Bids and sellers prefer the hot ones, as the benchmark asks: half of the bids are on one of the newest auctions, and
three of four come from a few bidders.
"""

from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types

GROUP: Final = 50
PEOPLE: Final = 1
AUCTIONS: Final = 3
BIDS: Final = 46

FIRST_PERSON: Final = 1000
FIRST_AUCTION: Final = 1000
FIRST_CATEGORY: Final = 10
CATEGORIES: Final = 5
AUCTION_LASTS_MS: Final = 10_000
LOOK_BACK: Final = 100  # auctions and people before an event that it may be about

STATES: Final = ("AZ", "CA", "ID", "OR", "WA", "WY")
CITIES: Final = ("Phoenix", "Los Angeles", "Boise", "Portland", "Seattle", "Cheyenne")
CHANNELS: Final = ("apple", "google", "facebook", "baidu")

Numbers: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"
INSTANT: Final = pa.timestamp("us", tz="UTC")


class Events(NamedTuple):
    """Tables of the events of a range; each has its own columns, and the instant of the event as `time`."""

    people: pa.Table
    auctions: pa.Table
    bids: pa.Table

    @property
    def total(self) -> int:
        return int(self.people.num_rows + self.auctions.num_rows + self.bids.num_rows)


def events(first: int, count: int, *, seed: int, began_ms: int, rate: float) -> Events:
    """The events of these numbers. The event `n` happens `n / rate` seconds after `began_ms`."""
    numbers = np.arange(first, first + count, dtype=np.int64)
    kind = numbers % GROUP
    return Events(
        _people(numbers[kind < PEOPLE], seed, began_ms, rate),
        _auctions(numbers[(kind >= PEOPLE) & (kind < PEOPLE + AUCTIONS)], seed, began_ms, rate),
        _bids(numbers[kind >= PEOPLE + AUCTIONS], seed, began_ms, rate),
    )


def closing(at_ms: int) -> Events:
    """One event of each kind, of nobody, late enough that everything before it is over.

    The last windows of a stream stay open until something comes after them; no answer is about these events.
    """
    time = pa.array([at_ms * 1000], INSTANT)
    nobody, nothing = pa.array([-1], pa.int64()), pa.array([""], pa.string())
    return Events(
        pa.table(
            {"person": nobody, "name": nothing, "email": nothing, "city": nothing, "state": nothing, "time": time}
        ),
        pa.table(
            {
                "auction": nobody,
                "item": nothing,
                "first_price": nobody,
                "seller": pa.array([-2], pa.int64()),
                "category": nobody,
                "expires": time,
                "time": time,
            }
        ),
        pa.table({"auction": nobody, "bidder": nobody, "price": pa.array([0]), "channel": nothing, "time": time}),
    )


def _people(numbers: Numbers, seed: int, began_ms: int, rate: float) -> pa.Table:
    person = FIRST_PERSON + numbers // GROUP
    place = _chance(numbers, seed, 1) % len(STATES)
    names = pa.array(person).cast(pa.string())
    return pa.table(
        {
            "person": pa.array(person),
            "name": _text("person ", names),
            "email": _text("person", names, "@example.com"),
            "city": pa.array(np.array(CITIES, dtype=object)[place], pa.string()),
            "state": pa.array(np.array(STATES, dtype=object)[place], pa.string()),
            "time": _instants(numbers, began_ms, rate),
        }
    )


def _auctions(numbers: Numbers, seed: int, began_ms: int, rate: float) -> pa.Table:
    auction = _auction_of(numbers)
    lasts_us = (AUCTION_LASTS_MS // 2 + _chance(numbers, seed, 2) % AUCTION_LASTS_MS) * 1000
    time_us = _time_us(numbers, began_ms, rate)
    price = 1 + _chance(numbers, seed, 3) % 1000
    return pa.table(
        {
            "auction": pa.array(auction),
            "item": _text("item ", pa.array(auction).cast(pa.string())),
            "first_price": pa.array(price),
            "seller": pa.array(_person_before(numbers, seed, 4, hot=4)),
            "category": pa.array(FIRST_CATEGORY + _chance(numbers, seed, 5) % CATEGORIES),
            "expires": pa.array(time_us + lasts_us, INSTANT),
            "time": pa.array(time_us, INSTANT),
        }
    )


def _bids(numbers: Numbers, seed: int, began_ms: int, rate: float) -> pa.Table:
    # The newest auction that was opened before this bid: a group's three come before its bids.
    newest = numbers // GROUP * AUCTIONS + AUCTIONS - 1
    is_hot = _chance(numbers, seed, 6) % 2 == 0
    auction = np.where(is_hot, newest, np.maximum(newest - _chance(numbers, seed, 7) % LOOK_BACK, 0))
    # Prices spread over powers of ten, in cents.
    price = (10.0 ** (_chance(numbers, seed, 8) % 6000 / 1000.0) * 100).astype(np.int64)
    channel = np.array(CHANNELS, dtype=object)[_chance(numbers, seed, 9) % len(CHANNELS)]
    return pa.table(
        {
            "auction": pa.array(FIRST_AUCTION + auction),
            "bidder": pa.array(_person_before(numbers, seed, 10, hot=16)),
            "price": pa.array(price),
            "channel": pa.array(channel, pa.string()),
            "time": _instants(numbers, began_ms, rate),
        }
    )


def _auction_of(numbers: Numbers) -> Numbers:
    made: Numbers = FIRST_AUCTION + numbers // GROUP * AUCTIONS + numbers % GROUP - PEOPLE
    return made


def _person_before(numbers: Numbers, seed: int, salt: int, *, hot: int) -> Numbers:
    """Someone who is known at this event; three of four times the last whose number is a multiple of `hot`."""
    newest = numbers // GROUP
    is_hot = _chance(numbers, seed, salt) % 4 != 0
    someone = np.maximum(newest - _chance(numbers, seed, salt + 100) % LOOK_BACK, 0)
    made: Numbers = FIRST_PERSON + np.where(is_hot, newest // hot * hot, someone)
    return made


def _time_us(numbers: Numbers, began_ms: int, rate: float) -> Numbers:
    made: Numbers = began_ms * 1000 + (numbers * (1_000_000 / rate)).astype(np.int64)
    return made


def _instants(numbers: Numbers, began_ms: int, rate: float) -> pa.Array:
    return pa.array(_time_us(numbers, began_ms, rate), INSTANT)


def _text(*parts: "str | pa.Array") -> pa.Array:
    import pyarrow.compute as pc  # type: ignore[import-untyped]  # the same

    return pc.binary_join_element_wise(*parts, "")


def _chance(numbers: Numbers, seed: int, salt: int) -> Numbers:
    """A number between 0 and 2**62 for each event: splitmix64 of event, seed and what it is for."""
    mixed = numbers.astype(np.uint64) + np.uint64((seed * 1_000_003 + salt * 7_919) % 2**63)
    mixed = mixed * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    made: Numbers = ((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(2)).astype(np.int64)
    return made
