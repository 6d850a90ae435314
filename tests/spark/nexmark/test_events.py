"""The generator: proportions, determinism, and what events may be about."""

import json

import numpy as np
import pyarrow.compute as pc

from ottla.spark.nexmark.events import Events, events
from ottla.spark.nexmark.records import to_records

BEGAN_MS = 1_700_000_000_000


def made(first: int = 0, count: int = 5000, seed: int = 7) -> Events:
    return events(first, count, seed=seed, began_ms=BEGAN_MS, rate=1000.0)


def test_of_fifty_events_one_is_a_person_and_three_are_auctions() -> None:
    some = made()
    assert (some.people.num_rows, some.auctions.num_rows, some.bids.num_rows) == (100, 300, 4600)


def test_the_same_seed_makes_the_same_events_in_any_chunks() -> None:
    whole, chunks = made(), [made(first, 1250) for first in range(0, 5000, 1250)]
    for kind in range(3):
        joined = [row for chunk in chunks for row in chunk[kind].to_pylist()]
        assert whole[kind].to_pylist() == joined
    assert made(seed=8).bids.to_pylist() != whole.bids.to_pylist()


def test_bids_are_on_auctions_that_are_open_to_the_bidder_by_people_who_have_come() -> None:
    some = made()
    opened = dict(zip(some.auctions["auction"].to_pylist(), some.auctions["time"].to_pylist(), strict=True))
    came = dict(zip(some.people["person"].to_pylist(), some.people["time"].to_pylist(), strict=True))
    for bid in some.bids.to_pylist():
        assert opened[bid["auction"]] <= bid["time"]
        assert came[bid["bidder"]] <= bid["time"]
        assert bid["price"] >= 100
    assert all(came[row["seller"]] <= row["time"] < row["expires"] for row in some.auctions.to_pylist())


def test_prices_and_categories_are_spread() -> None:
    some = made(count=50_000)
    assert sorted(pc.unique(some.auctions["category"]).to_pylist()) == [10, 11, 12, 13, 14]
    assert np.percentile(some.bids["price"].to_numpy(), 90) > 100 * np.percentile(some.bids["price"].to_numpy(), 10)


def test_records_are_json_with_microseconds() -> None:
    some = made(count=50)
    keys, values = to_records(some)["bids"]
    first, bid = json.loads(values[0].as_py()), some.bids.to_pylist()[0]
    assert keys[0].as_py() == str(bid["auction"])
    assert first == {**bid, "time": bid["time"].strftime("%Y-%m-%dT%H:%M:%S.%fZ")}
