"""What an admin counts of its requests, under the names of Kafka's `admin-client-metrics`."""


class AdminMetrics:
    __slots__ = ("_latency_max_s", "_latency_sum_s", "_requests", "_responses")

    def __init__(self) -> None:
        self._requests = 0
        self._responses = 0
        self._latency_sum_s = 0.0
        self._latency_max_s = 0.0

    def on_request(self) -> None:
        self._requests += 1

    def on_response(self, latency_s: float) -> None:
        self._responses += 1
        self._latency_sum_s += latency_s
        self._latency_max_s = max(self._latency_max_s, latency_s)

    def values(self) -> dict[str, float]:
        """Totals since the admin was made; latencies in milliseconds."""
        return {
            "request-total": self._requests,
            "response-total": self._responses,
            "request-latency-avg": self._latency_sum_s * 1000 / self._responses if self._responses else 0.0,
            "request-latency-max": self._latency_max_s * 1000,
        }
