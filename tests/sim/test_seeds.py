"""Clusters under faults, from seeds: those that have failed once, and some that are new every day."""

import time

import pytest
from failing_seeds import FAILED_ONCE, FailedOnce

from ottla.testing.sim.run_plan import RunPlan, draw_plan
from ottla.testing.sim.simulated_run import SimulatedRun

DAY_S = 86_400
FRESH = range(4)
MINUTE_MS = 60_000


def check(plan: RunPlan) -> None:
    outcome = SimulatedRun(plan).run()
    assert outcome.is_good, f"{plan.command()} found {outcome.violations[0]}"
    assert outcome.acknowledged > 100, "the run shows something"


@pytest.mark.parametrize("failed", FAILED_ONCE, ids=lambda one: f"seed {one.seed}")
def test_what_has_failed_once_does_not_fail_again(failed: FailedOnce) -> None:
    check(draw_plan(failed.seed, failed.nodes, round(failed.minutes * MINUTE_MS), failed.profile))


@pytest.mark.parametrize("seed", [2, 10])
def test_a_cluster_keeps_its_promises_under_faults(seed: int) -> None:
    check(draw_plan(seed, 3, MINUTE_MS // 2))


@pytest.mark.parametrize(
    ("profile", "nodes"), [("elections", 5), ("voters", 5), ("isolated", 6), ("directories", 3), ("rot", 3)]
)
def test_a_cluster_keeps_its_promises_where_one_thing_goes_wrong_often(profile: str, nodes: int) -> None:
    check(draw_plan(1, nodes, MINUTE_MS // 4, profile))


@pytest.mark.parametrize("number", FRESH)
def test_a_node_keeps_its_promises_under_faults(number: int) -> None:
    check(draw_plan(int(time.time()) // DAY_S * 1000 + number, 1, MINUTE_MS))
