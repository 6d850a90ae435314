"""The questions that quixstreams can answer from the same topic: those about bids alone and without state.

    python bench/spark/quixstreams_peer.py BOOTSTRAP TOPIC QUESTION COUNT     prints events a second of a core

It runs in an environment of its own (peers.py). Windows by bidder would need the topic to be written again by another
key; joins and sessions it does not have.
"""

import logging
import sys
import time
from collections.abc import Callable
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

from quixstreams import Application

DOLLARS_TO_EUROS = 0.908

PEERS: dict[int, Callable[[Any], Any]] = {
    0: lambda bids: bids,
    1: lambda bids: bids.apply(lambda bid: {**bid, "price": round(bid["price"] * DOLLARS_TO_EUROS, 3)}),
    # Not `filter`: what it drops does not count for the end of the run.
    2: lambda bids: bids.apply(
        lambda bid: {"auction": bid["auction"], "price": bid["price"]} if bid["auction"] % 123 == 0 else None
    ),
}


def rate_of(bootstrap: str, topic: str, number: int, count: int) -> float:
    """Events in a second of this process's time on the processors, its threads included."""
    logging.getLogger("quixstreams").setLevel(logging.ERROR)
    with TemporaryDirectory() as state:
        app = Application(
            broker_address=bootstrap,
            consumer_group=f"nexmark-{uuid4()}",
            auto_offset_reset="earliest",
            state_dir=state,
        )
        PEERS[number](app.dataframe(app.topic(topic, value_deserializer="json")))
        began_s = time.process_time()
        app.run(count=count, timeout=60.0)
        return count / (time.process_time() - began_s)


if __name__ == "__main__":
    print(rate_of(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
