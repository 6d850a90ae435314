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


class ProfileTotals:
    """Of all runs of one profile."""

    def __init__(self) -> None:
        self.seeds: list[int] = []
        self.simulated_s = self.cpu_s = 0.0
        self.faults = self.failed = 0
        self.reached: set[str] = set()

    def add(self, outcome: Outcome) -> None:
        self.seeds.append(outcome.plan.seed)
        self.simulated_s += outcome.simulated_s
        self.cpu_s += outcome.cpu_s
        self.faults += len(outcome.plan.faults)
        self.reached |= outcome.marks
        self.failed += not outcome.is_good

    def row(self, profile: str) -> str:
        seeds = f"{min(self.seeds)}-{max(self.seeds)}"
        return (
            f"{profile:12} {self.simulated_s / 3600:8.2f} {len(self.seeds):6,} {seeds:>23} {self.cpu_s:9,.0f} "
            f"{self.faults:8,} {len(self.reached):3} of {len(MARKS)} {self.failed:7,}"
        )


_HEADING = "profile         hours   runs                   seeds    core s   faults     marks  failed"


class Totals:
    """Of all runs. `failed` are those that found something."""

    def __init__(self) -> None:
        self.failed: list[RunPlan] = []
        self._of: dict[str, ProfileTotals] = {}

    def add(self, outcome: Outcome) -> None:
        self._of.setdefault(outcome.plan.profile, ProfileTotals()).add(outcome)
        if not outcome.is_good:
            self.failed.append(outcome.plan)

    def simulated_s(self, profile: str) -> float:
        """Of this profile's runs that are over."""
        return self._of[profile].simulated_s if profile in self._of else 0.0

    def lines(self, canary: str | None = None) -> Iterator[str]:
        runs = sum(len(one.seeds) for one in self._of.values())
        if runs < 2:
            return
        simulated_s = sum(one.simulated_s for one in self._of.values())
        pace = simulated_s / max(sum(one.cpu_s for one in self._of.values()), 0.001)
        yield _HEADING
        for profile, one in self._of.items():
            yield one.row(profile)
        yield (
            f"{runs} runs, {len(self.failed)} failed; {simulated_s / 3600:.2f} simulated hours, "
            f"{pace:.0f} in an hour of a core"
        )
        reached = set[str]().union(*(one.reached for one in self._of.values()))
        missed = "; ".join(sorted(MARKS.keys() - reached)) or "none"
        yield f"{len(reached)} of {len(MARKS)} marked paths reached; missed: {missed}"
        for plan in self.failed:
            yield f"  failed: {plan.command()}{_broken(canary)}"


def _broken(canary: str | None) -> str:
    return "" if canary is None else f" --canary {canary}"
