"""A consumer's counts and times, under the names that Kafka's consumer has for them.

Totals count since the consumer was made, and so do averages and maxima; Kafka's move with a window of samples. For a
rate, read a total twice.
"""

from typing import Final

from ottla.client.consumer.subscription import Subscription

_MS: Final = 1000.0


class _Times:
    """How often something took place, and how long it took."""

    __slots__ = ("count", "most_ms", "total_ms")

    def __init__(self) -> None:
        self.count = 0
        self.total_ms = 0.0
        self.most_ms = 0.0

    def add(self, took_ms: float) -> None:
        self.count += 1
        self.total_ms += took_ms
        self.most_ms = max(self.most_ms, took_ms)

    @property
    def average_ms(self) -> float:
        return self.total_ms / self.count if self.count else 0.0


class ConsumerMetrics:
    def __init__(self) -> None:
        self.records_consumed = 0
        self._fetches = _Times()
        self._throttles = _Times()
        self._commits = _Times()
        self._rebalances = 0
        self._last_poll_s: float | None = None
        self._polls = _Times()
        """The time between polls."""

    def on_poll(self, now_s: float) -> None:
        if self._last_poll_s is not None:
            self._polls.add((now_s - self._last_poll_s) * _MS)
        self._last_poll_s = now_s

    def on_fetched(self, began_s: float, now_s: float, throttle_ms: int) -> None:
        self._fetches.add((now_s - began_s) * _MS)
        self._throttles.add(throttle_ms)

    def on_committed(self, began_s: float, now_s: float) -> None:
        self._commits.add((now_s - began_s) * _MS)

    def on_rebalanced(self) -> None:
        self._rebalances += 1

    def snapshot(self, subscription: Subscription, consumed_bytes: int, now_s: float) -> dict[str, float]:
        """The groups `consumer-metrics`, `consumer-fetch-manager-metrics` and `consumer-coordinator-metrics`."""
        states = list(subscription.partitions.values())
        lags = [lag for state in states if (lag := state.lag()) is not None]
        leads = [
            state.position.offset - state.log_start_offset
            for state in states
            if state.position is not None and state.log_start_offset is not None
        ]
        last_poll_s = self._last_poll_s
        metrics: dict[str, float] = {
            "records-consumed-total": self.records_consumed,
            "bytes-consumed-total": consumed_bytes,
            "fetch-total": self._fetches.count,
            "fetch-latency-avg": self._fetches.average_ms,
            "fetch-latency-max": self._fetches.most_ms,
            "fetch-size-avg": consumed_bytes / self._fetches.count if self._fetches.count else 0.0,
            "records-per-request-avg": self.records_consumed / self._fetches.count if self._fetches.count else 0.0,
            "fetch-throttle-time-avg": self._throttles.average_ms,
            "fetch-throttle-time-max": self._throttles.most_ms,
            "records-lag-max": max(lags, default=0),
            "records-lead-min": min(leads, default=0),
            "commit-total": self._commits.count,
            "commit-latency-avg": self._commits.average_ms,
            "commit-latency-max": self._commits.most_ms,
            "rebalance-total": self._rebalances,
            "assigned-partitions": len(states),
            "time-between-poll-avg": self._polls.average_ms,
            "time-between-poll-max": self._polls.most_ms,
            "last-poll-seconds-ago": -1.0 if last_poll_s is None else now_s - last_poll_s,
        }
        return metrics
