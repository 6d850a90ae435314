"""A failing run is repeated with less, and what is left still fails in the same way."""

from ottla.testing.sim.run_plan import RunPlan, draw_plan
from ottla.testing.sim.shrinking import shrink
from ottla.testing.sim.simulated_run import Outcome

MINUTE_MS = 60_000
NEEDED_FAULTS = {3, 7}
NEEDED_ACTOR = "reader-2"


class Runs:
    """Runs that find something if two of the faults and one of the programs are in them; else maybe something else."""

    def __init__(self, otherwise: str = "") -> None:
        self.count = 0
        self._otherwise = otherwise

    def __call__(self, plan: RunPlan) -> Outcome:
        self.count += 1
        is_found = {fault.number for fault in plan.faults} >= NEEDED_FAULTS and NEEDED_ACTOR in plan.actors
        found = ("a record is lost: 17",) if is_found else tuple(filter(None, [self._otherwise]))
        return Outcome(plan, found, (), "", 0.0, 0.0, 0, 0, 0, 0, 0)


def failed(runs: Runs) -> Outcome:
    plan = draw_plan(1, 3, MINUTE_MS)
    assert {fault.number for fault in plan.faults} > NEEDED_FAULTS
    return runs(plan)


def test_what_is_needed_is_all_that_is_left() -> None:
    runs = Runs()
    shortest = shrink(failed(runs), runs, 1000)
    assert {fault.number for fault in shortest.plan.faults} == NEEDED_FAULTS
    assert shortest.plan.actors == (NEEDED_ACTOR,)
    assert shortest.violations == ("a record is lost: 17",)


def test_a_shorter_run_that_finds_something_else_is_no_shorter_one() -> None:
    runs = Runs(otherwise="a node raises: 4")
    shortest = shrink(failed(runs), runs, 1000)
    assert {fault.number for fault in shortest.plan.faults} == NEEDED_FAULTS
    assert shortest.violations == ("a record is lost: 17",)


def test_it_ends_after_so_many_runs_with_what_it_has() -> None:
    runs = Runs()
    found = failed(runs)
    runs.count = 0
    shortest = shrink(found, runs, 5)
    assert runs.count == 5
    assert not shortest.is_good
    assert len(shortest.plan.actors) <= len(found.plan.actors)
