"""What the pipeline has written, as a reader of committed records sees it.

`repeated` counts what exactly once rules out: a window that is emitted twice, a bidder's record that says nothing new.
"""

import json
from typing import TYPE_CHECKING, NamedTuple

from ottla.base.ids import TopicPartition
from ottla.spark.demo.settings import BIDDERS, PARTITIONS, PRICES

if TYPE_CHECKING:
    from ottla.client.blocking.consumer import Consumer
    from ottla.records.kernel import ConsumerRecord


class Bids(NamedTuple):
    """How many, and what they add up to."""

    number: int
    total: int


Prices = dict[tuple[str, int], Bids]
Bidders = dict[str, Bids]


class Answers:
    """Both topics from their beginning."""

    def __init__(self, consumer: "Consumer") -> None:
        self._consumer = consumer
        consumer.assign([TopicPartition(topic, index) for topic in (PRICES, BIDDERS) for index in range(PARTITIONS)])
        self.prices: Prices = {}
        self.bidders: Bidders = {}
        self.records = 0
        self.repeated = 0

    def take(self, timeout_s: float) -> None:
        """Takes what has come, waiting so long if nothing has."""
        for record in self._consumer.poll(timeout_s):
            self.take_one(record)

    def take_one(self, record: "ConsumerRecord") -> None:
        self.records += 1
        assert record.key is not None and record.value is not None
        value = json.loads(record.value)
        bids = Bids(value["count"], value["total"])
        if record.topic == PRICES:
            of = json.loads(record.key)
            window = of["start"], of["category"]
            self.repeated += window in self.prices
            self.prices[window] = bids
        else:
            bidder = record.key.decode()
            self.repeated += self.bidders.get(bidder) == bids
            self.bidders[bidder] = bids

    def last_window(self) -> list[tuple[int, Bids]]:
        """Categories and prices of the newest window, for the screen."""
        if not self.prices:
            return []
        newest = max(start for start, _ in self.prices)
        return sorted((category, bids) for (start, category), bids in self.prices.items() if start == newest)

    def top_bidders(self, count: int = 5) -> list[tuple[str, Bids]]:
        return sorted(self.bidders.items(), key=lambda entry: entry[1].total, reverse=True)[:count]
