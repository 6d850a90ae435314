"""What a producer counts, under the names of Kafka's `producer-metrics` group."""

from ottla.client.producer.batch import ProducerBatch


class SendMetrics:
    """Plain sums: rates and averages are made when somebody asks."""

    __slots__ = (
        "_answers",
        "_batches",
        "_bytes",
        "_largest_batch",
        "_latency_s",
        "_longest_latency_s",
        "_longest_queue_s",
        "_longest_throttle_ms",
        "_queue_s",
        "_raw_bytes",
        "_records",
        "_requests",
        "_throttle_ms",
        "_throttle_times",
        "errors",
        "retries",
        "splits",
    )

    def __init__(self) -> None:
        self._requests = self._batches = self._records = self._bytes = self._raw_bytes = self._largest_batch = 0
        self._answers = self.errors = self.retries = self.splits = 0
        self._throttle_ms = self._throttle_times = self._longest_throttle_ms = 0
        self._queue_s = self._longest_queue_s = self._latency_s = self._longest_latency_s = 0.0

    def on_request(self, batches: list[ProducerBatch], now_s: float) -> None:
        self._requests += 1
        for batch in batches:
            waited_s = now_s - batch.created_s
            self._queue_s += waited_s
            self._longest_queue_s = max(self._longest_queue_s, waited_s)
            assert batch.encoded is not None, "what is sent has bytes"
            size = len(batch.encoded)
            self._batches += 1
            self._records += batch.record_count
            self._bytes += size
            self._raw_bytes += batch.raw_bytes
            if size > self._largest_batch:
                self._largest_batch = size

    def on_answer(self, took_s: float) -> None:
        self._answers += 1
        self._latency_s += took_s
        self._longest_latency_s = max(self._longest_latency_s, took_s)

    def on_throttle_time(self, throttle_ms: int) -> None:
        """A reply said how long the broker makes us wait (KIP-219); mostly 0."""
        self._throttle_times += 1
        self._throttle_ms += throttle_ms
        self._longest_throttle_ms = max(self._longest_throttle_ms, throttle_ms)

    def on_retried(self, batch: ProducerBatch) -> None:
        self.retries += batch.record_count

    def on_split(self) -> None:
        self.splits += 1

    def on_failed(self, batch: ProducerBatch) -> None:
        self.errors += batch.record_count

    def values(self) -> dict[str, float]:
        return {
            "request-total": self._requests,
            "record-send-total": self._records,
            "record-retry-total": self.retries,
            "record-error-total": self.errors,
            "byte-total": self._bytes,
            "batch-split-total": self.splits,
            "batch-size-avg": _part(self._bytes, self._batches),
            "batch-size-max": self._largest_batch,
            "records-per-request-avg": _part(self._records, self._requests),
            "record-size-avg": _part(self._raw_bytes, self._records),
            "compression-rate-avg": _part(self._bytes, self._raw_bytes),
            "record-queue-time-avg": _part(self._queue_s * 1000, self._batches),
            "record-queue-time-max": self._longest_queue_s * 1000,
            "produce-throttle-time-avg": _part(self._throttle_ms, self._throttle_times),
            "produce-throttle-time-max": self._longest_throttle_ms,
            "request-latency-avg": _part(self._latency_s * 1000, self._answers),
            "request-latency-max": self._longest_latency_s * 1000,
        }


def _part(total: float, count: float) -> float:
    return total / count if count else float("nan")
