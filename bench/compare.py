"""Compares callables within one run: rounds are interleaved, so that a slow moment of the machine hits all alike.

A ratio is taken within each round and the median over rounds is reported, with the spread from the lower to the upper
quartile: what a shared machine does to absolute times mostly cancels out.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median, quantiles
from time import perf_counter


@dataclass(frozen=True, slots=True)
class Comparison:
    """Seconds per call of each contender, and how they compare: `ratio` is ours over theirs, below 1 is faster."""

    ours: float
    theirs: float
    ratio: float
    ratio_low: float
    ratio_high: float

    @property
    def spread(self) -> str:
        return f"{self.ratio_low:.2f}-{self.ratio_high:.2f}"


def compare(
    ours: Callable[[], object], theirs: Callable[[], object], rounds: int = 21, round_seconds: float = 0.01
) -> Comparison:
    """Times two callables in `rounds` alternating rounds of about `round_seconds` each."""
    calls = [_calls_per_round(contender, round_seconds) for contender in (ours, theirs)]
    times: list[tuple[float, float]] = []
    for number in range(rounds):
        pair = [(ours, calls[0]), (theirs, calls[1])]
        if number % 2:
            pair.reverse()
        timed = [_seconds_per_call(contender, count) for contender, count in pair]
        if number % 2:
            timed.reverse()
        times.append((timed[0], timed[1]))
    low, ratio, high = quantiles([mine / other for mine, other in times], n=4)
    return Comparison(median(mine for mine, _ in times), median(other for _, other in times), ratio, low, high)


def seconds(duration: float) -> str:
    """A duration with the unit that suits it."""
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if duration * scale >= 1:
            return f"{duration * scale:.2f} {unit}"
    return f"{duration * 1e9:.0f} ns"


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]
    for row in (header, ["-" * width for width in widths], *rows):
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip(), flush=True)


def _calls_per_round(contender: Callable[[], object], round_seconds: float) -> int:
    contender()
    return max(1, round(round_seconds / _seconds_per_call(contender, 3)))


def _seconds_per_call(contender: Callable[[], object], count: int) -> float:
    start = perf_counter()
    for _ in range(count):
        contender()
    return (perf_counter() - start) / count
