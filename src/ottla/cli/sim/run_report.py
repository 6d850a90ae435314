"""What `ottla sim` prints of a run: a line if all is well; else what was violated, when, and how to see it again."""

from collections import Counter
from collections.abc import Iterator

from ottla.testing.sim.marks import MARKS
from ottla.testing.sim.run_plan import RunPlan
from ottla.testing.sim.simulated_run import Outcome

_MOST_VIOLATIONS = 5


def summary(outcome: Outcome) -> str:
    verdict = "ok" if outcome.is_good else "FAILED"
    pace = outcome.simulated_s / max(outcome.cpu_s, 0.001)
    return (
        f"seed {outcome.plan.seed}: {verdict}; {outcome.simulated_s:.0f} simulated s ({pace:.0f} per CPU s), "
        f"{len(outcome.plan.faults)} faults, {outcome.acknowledged:,} of {outcome.sent:,} records acknowledged, "
        f"{outcome.read:,} read, {outcome.transactions:,} transactions; trace {outcome.trace_hash}"
    )


def faults_of(plan: RunPlan) -> str:
    """How many of which kind."""
    counts = Counter(fault.kind for fault in plan.faults)
    return ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())) or "no faults"


def failure(found: Outcome, shortest: Outcome, canary: str | None = None) -> Iterator[str]:
    """What the run found, and the shortest one that finds the same; `canary` is how the nodes were broken for it."""
    broken = _broken(canary)
    for violation in found.violations[:_MOST_VIOLATIONS]:
        yield f"  violated: {violation}"
    yield f"  with {len(shortest.plan.faults)} faults and {', '.join(shortest.plan.actors) or 'no programs'}:"
    for line in shortest.log:
        yield f"    {line}"
    for violation in shortest.violations[:_MOST_VIOLATIONS]:
        yield f"    violated: {violation}"
    yield f"  again, whole:  {found.plan.command()}{broken}"
    yield f"  again, short:  {shortest.plan.command()}{broken}"


class Totals:
    """Of all runs. `failed` are those that found something."""

    def __init__(self) -> None:
        self.failed: list[RunPlan] = []
        self._runs = 0
        self._simulated_s = self._cpu_s = 0.0
        self._reached: set[str] = set()

    def add(self, outcome: Outcome) -> None:
        self._runs += 1
        self._simulated_s += outcome.simulated_s
        self._cpu_s += outcome.cpu_s
        self._reached |= outcome.marks
        if not outcome.is_good:
            self.failed.append(outcome.plan)

    def lines(self, canary: str | None = None) -> Iterator[str]:
        if self._runs < 2:
            return
        pace = self._simulated_s / max(self._cpu_s, 0.001)
        yield (
            f"{self._runs} runs, {len(self.failed)} failed; {self._simulated_s / 3600:.2f} simulated hours, "
            f"{pace:.0f} in an hour of a core"
        )
        missed = "; ".join(sorted(MARKS.keys() - self._reached)) or "none"
        yield f"{len(self._reached)} of {len(MARKS)} marked paths reached; missed: {missed}"
        for plan in self.failed:
            yield f"  failed: {plan.command()}{_broken(canary)}"


def _broken(canary: str | None) -> str:
    return "" if canary is None else f" --canary {canary}"
