"""What `ottla sim` prints of a run: a line if all is well; else what was violated, when, and how to see it again."""

from collections import Counter
from collections.abc import Iterator

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
    broken = "" if canary is None else f" --canary {canary}"
    for violation in found.violations[:_MOST_VIOLATIONS]:
        yield f"  violated: {violation}"
    yield f"  with {len(shortest.plan.faults)} faults and {', '.join(shortest.plan.actors) or 'no programs'}:"
    for line in shortest.log:
        yield f"    {line}"
    for violation in shortest.violations[:_MOST_VIOLATIONS]:
        yield f"    violated: {violation}"
    yield f"  again, whole:  {found.plan.command()}{broken}"
    yield f"  again, short:  {shortest.plan.command()}{broken}"
