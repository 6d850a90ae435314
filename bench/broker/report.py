"""A row of the report: both figures, their ratio round by round, what was expected, and whether it came true."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median, quantiles

from compare import print_table

HEADER = ["what", "kafka", "ottla", "ratio", "quartiles", "target", "verdict"]


@dataclass(frozen=True, slots=True)
class Row:
    what: str
    kafka: str
    ottla: str
    ratio: str = ""
    spread: str = ""
    target: str = ""
    verdict: str = ""

    @property
    def cells(self) -> list[str]:
        return [self.what, self.kafka, self.ottla, self.ratio, self.spread, self.target, self.verdict]


def compared(
    what: str,
    results: dict[str, list[float]],
    show: Callable[[float], str],
    *,
    at_least: float | None = None,
    at_most: float | None = None,
) -> Row:
    """`results` by contender; the ratio is ottla's over Kafka's, taken within each round."""
    shown = {name: show(median(values)) for name, values in results.items()}
    kafka, ottla = shown.get("kafka", "-"), shown.get("ottla", "-")
    target = f">= {at_least:g}" if at_least is not None else f"<= {at_most:g}" if at_most is not None else ""
    if len(results) < 2:
        return Row(what, kafka, ottla, target=target)
    ratios = [ours / theirs for ours, theirs in zip(results["ottla"], results["kafka"], strict=True)]
    return Row(
        what,
        kafka,
        ottla,
        f"{median(ratios):.2f}",
        spread_of(ratios),
        target,
        verdict(median(ratios), at_least, at_most),
    )


def limited(
    what: str,
    ottla: str,
    value: float,
    *,
    at_least: float | None = None,
    at_most: float | None = None,
    unit: str = "",
    kafka: str = "",
) -> Row:
    """A figure of ours held against a bound of its own, not against Kafka's."""
    target = f">= {at_least:g}{unit}" if at_least is not None else f"<= {at_most:g}{unit}"
    return Row(what, kafka, ottla, target=target, verdict=verdict(value, at_least, at_most))


def verdict(value: float, at_least: float | None, at_most: float | None) -> str:
    if at_least is None and at_most is None:
        return ""
    good = (at_least is None or value >= at_least) and (at_most is None or value <= at_most)
    return "ok" if good else "short"


def spread_of(ratios: Sequence[float]) -> str:
    if len(ratios) < 2:
        return ""
    low, _, high = quantiles(ratios, n=4)
    return f"{low:.2f}-{high:.2f}"


def print_rows(title: str, rows: Sequence[Row]) -> None:
    print(f"\n{title}")
    print_table(HEADER, [row.cells for row in rows])


def summed_up(rows: Sequence[Row]) -> int:
    """Prints what fell short of its target; the exit status that says whether anything did."""
    short = [row.what for row in rows if row.verdict == "short"]
    print(f"\n{len(short)} short of their target" + "".join(f"\n  {what}" for what in short))
    return 1 if short else 0
