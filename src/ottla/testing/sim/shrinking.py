"""Finds less that still fails: leaves out faults and programs of a failing run, as long as the same thing goes wrong.

Halves first, then single ones, as delta debugging does. A run with less in it takes other turns, so what is left out
may be needed for no deeper reason than timing; the result is short, not minimal.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from ottla.testing.sim.run_plan import RunPlan
from ottla.testing.sim.simulated_run import Outcome

T = TypeVar("T")


def shrink(failed: Outcome, run: Callable[[RunPlan], Outcome], most_runs: int) -> Outcome:
    """The shortest failing run that was found within so many runs."""
    best = failed
    runs = 0

    def still_fails(plan: RunPlan) -> bool:
        nonlocal best, runs
        if runs >= most_runs:
            return False
        runs += 1
        outcome = run(plan)
        if _kind_of(outcome) == _kind_of(failed):
            best = outcome
            return True
        return False

    # Programs first: a run with fewer of them takes less time.
    _less(failed.plan.actors, lambda actors: still_fails(best.plan._replace(actors=tuple(actors))))
    _less(failed.plan.faults, lambda faults: still_fails(best.plan._replace(faults=tuple(faults))))
    _less(best.plan.actors, lambda actors: still_fails(best.plan._replace(actors=tuple(actors))))
    return best


def _kind_of(outcome: Outcome) -> str:
    """Which invariant was violated first."""
    return outcome.violations[0].partition(":")[0] if outcome.violations else ""


def _less(items: Sequence[T], still_fails: Callable[[list[T]], bool]) -> None:
    kept = list(items)
    if kept and still_fails([]):
        return
    size = max(len(kept) // 2, 1)
    while kept:
        at = 0
        while at < len(kept):
            without = kept[:at] + kept[at + size :]
            if len(without) < len(kept) and still_fails(without):
                kept = without
            else:
                at += size
        if size == 1:
            return
        size //= 2
