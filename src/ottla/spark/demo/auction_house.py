"""Events as they happen: whatever is due by now is sent, a chunk at a time."""

import time
from typing import TYPE_CHECKING

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types

from ottla.spark.demo.settings import SEED, DemoSettings
from ottla.spark.nexmark.events import GROUP, Events, closing, events
from ottla.spark.nexmark.records import to_records

if TYPE_CHECKING:
    from ottla.client.blocking.producer import Producer

LONG_AFTER_MS = 3_600_000


class AuctionHouse:
    """Sends events in the order of their numbers, none before its time."""

    def __init__(self, producer: "Producer", settings: DemoSettings) -> None:
        self._producer = producer
        self._settings = settings
        self._started_s = time.monotonic()
        self.began_ms = time.time_ns() // 1_000_000
        self.sent = 0

    @property
    def is_over(self) -> bool:
        return self.sent == self._settings.events

    def send_due(self) -> None:
        """Sends what has happened since the last call. Returns when the producer has taken it."""
        elapsed_s = time.monotonic() - self._started_s
        due = min(int(elapsed_s * self._settings.rate) // GROUP * GROUP, self._settings.events)
        if due > self.sent:
            self._send(events(self.sent, due - self.sent, seed=SEED, began_ms=self.began_ms, rate=self._settings.rate))
            self.sent = due

    def close_doors(self) -> None:
        """After this everything that happened is in the past, and all windows close."""
        self._send(closing(self.began_ms + LONG_AFTER_MS))
        self._producer.flush(60.0)

    def _send(self, of: Events) -> None:
        for topic, (keys, values) in to_records(of).items():
            if len(values):
                rows = pa.table({"key": keys.cast(pa.binary()), "value": values.cast(pa.binary())})
                self._producer.send_arrow(topic, rows)
