"""Latencies of many records: all together, and since the last report. Lines are those of kafka-producer-perf-test."""

import time

_MB = 1024 * 1024
_MAX_SAMPLES = 500_000


class Latencies:
    """`steady`: the second summary, of what came after the records that only warm up."""

    def __init__(self, count: int, report_ms: int, *, is_steady: bool = False) -> None:
        self._began_s = self._window_s = time.monotonic()
        self._report_s = report_ms / 1000
        self._every = max(1, count // _MAX_SAMPLES)
        self._is_steady = is_steady
        self._samples: list[int] = []
        self._count = self._bytes = self._total_ms = self._max_ms = 0
        self._window_count = self._window_bytes = self._window_total_ms = self._window_max_ms = 0

    def add(self, latency_ms: int, size_bytes: int) -> None:
        if not self._count % self._every:
            self._samples.append(latency_ms)
        self._count += 1
        self._bytes += size_bytes
        self._total_ms += latency_ms
        self._window_count += 1
        self._window_bytes += size_bytes
        self._window_total_ms += latency_ms
        if latency_ms > self._window_max_ms:
            self._window_max_ms = latency_ms
            self._max_ms = max(self._max_ms, latency_ms)
        if time.monotonic() - self._window_s >= self._report_s:
            if not self._is_steady:
                print(self.window_line(), flush=True)
            self._begin_window()

    def window_line(self) -> str:
        seconds = max(time.monotonic() - self._window_s, 0.001)
        count, size = self._window_count, self._window_bytes
        return (
            f"{count} records sent, {count / seconds:.1f} records/sec ({size / seconds / _MB:.2f} MB/sec), "
            f"{self._window_total_ms / max(count, 1):.1f} ms avg latency, {self._window_max_ms:.1f} ms max latency."
        )

    def summary_line(self) -> str:
        seconds = max(time.monotonic() - self._began_s, 0.001)
        shown = " ".join(f"{value} ms {name}," for name, value in self._percentiles().items())
        kind = " steady state" if self._is_steady else ""
        return (
            f"{self._count}{kind} records sent, {self._count / seconds:f} records/sec "
            f"({self._bytes / seconds / _MB:.2f} MB/sec), {self._total_ms / max(self._count, 1):.2f} ms avg latency, "
            f"{self._max_ms:.2f} ms max latency, {shown[:-1]}."
        )

    def _percentiles(self) -> dict[str, int]:
        samples = sorted(self._samples) or [0]
        shares = {"50th": 0.5, "95th": 0.95, "99th": 0.99, "99.9th": 0.999}
        return {name: samples[int(share * len(samples))] for name, share in shares.items()}

    def _begin_window(self) -> None:
        self._window_s = time.monotonic()
        self._window_count = self._window_bytes = self._window_total_ms = self._window_max_ms = 0
