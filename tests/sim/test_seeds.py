"""Clusters under faults, from fixed seeds: those that have failed once, and some of every profile.

Together they take less than a minute of a core. `make sim` runs all profiles from new seeds, for as long as one likes.
"""

import pytest
from failing_seeds import FAILED_ONCE, FailedOnce

from ottla.testing.sim.run_plan import RunPlan, draw_plan
from ottla.testing.sim.run_profiles import PROFILES
from ottla.testing.sim.simulated_run import SimulatedRun

MINUTE_MS = 60_000
SEEDS = dict.fromkeys(PROFILES, (1,))
USUAL_SEEDS = (1, 10)
LASTING_TIMES = 5
"""How many times as long a run is whose faults last long."""


def check(plan: RunPlan) -> None:
    outcome = SimulatedRun(plan).run()
    assert outcome.is_good, f"{plan.command()} found {outcome.violations[0]}"
    assert outcome.acknowledged > 100, "the run shows something"


@pytest.mark.parametrize("failed", FAILED_ONCE, ids=lambda one: f"seed {one.seed}")
def test_what_has_failed_once_does_not_fail_again(failed: FailedOnce) -> None:
    check(draw_plan(failed.seed, failed.nodes, round(failed.minutes * MINUTE_MS), failed.profile))


@pytest.mark.parametrize("seed", USUAL_SEEDS)
def test_a_cluster_keeps_its_promises_under_faults(seed: int) -> None:
    check(draw_plan(seed, 3, MINUTE_MS // 2))


@pytest.mark.parametrize(("profile", "seed"), [(name, seed) for name, seeds in SEEDS.items() for seed in seeds])
def test_a_cluster_keeps_its_promises_whatever_goes_wrong_often(profile: str, seed: int) -> None:
    duration_ms = MINUTE_MS // 4 * (LASTING_TIMES if PROFILES[profile].lasting > 1 else 1)
    check(draw_plan(seed, PROFILES[profile].nodes, duration_ms, profile))


@pytest.mark.parametrize("seed", [1, 2])
def test_a_node_keeps_its_promises_under_faults(seed: int) -> None:
    check(draw_plan(seed, 1, MINUTE_MS))
