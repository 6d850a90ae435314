"""Clusters under faults, from fixed seeds: those that have failed once, and some of every profile.

`make sim` runs all profiles from new seeds, for as long as one likes.
"""

from functools import cache

import pytest

from ottla.testing.sim.marks import MARKS
from ottla.testing.sim.run_plan import draw_plan
from ottla.testing.sim.run_profiles import PROFILES
from ottla.testing.sim.simulated_run import Outcome, SimulatedRun
from tests.sim.failing_seeds import FAILED_ONCE, FailedOnce

MINUTE_MS = 60_000
LASTING_TIMES = 5
"""How many times as long a run is whose faults last long."""

LONGEST_MINUTES = 2
"""Of a run that has failed once and is in every `make test`."""

USUAL_SEEDS = (2, 7, 10)
SEEDS = {"files": 13, "moves": 3}
"""By profile: the seed that has most to show, if it is not the first."""
FIXED = (
    *(("usual", 3, seed, MINUTE_MS // 2, None) for seed in USUAL_SEEDS),
    ("rot", 3, 5, MINUTE_MS // 2, ("writer-1", "writer-2")),
    *(
        (name, profile.nodes, SEEDS.get(name, 1), MINUTE_MS // 4 * (LASTING_TIMES if profile.lasting > 1 else 1), None)
        for name, profile in PROFILES.items()
    ),
)
"""Profile, nodes, seed, how long, and programs if not the seed's own."""

MORE_SEEDS = 8
OFTEN_REACHED_IN = {
    "a reassignment was cancelled": "cuts",
    "a broker registered again": "cuts",
    "an eligible leader was elected": "leaders",
    "a damaged snapshot of the metadata was done without": "files",
    "the directory of a replica was reported again": "moves",  # The usual ones have one directory, and little to tell.
}
"""By mark: the profile whose runs get there more often than the usual ones."""


@cache
def outcome_of(profile: str, nodes: int, seed: int, duration_ms: int, actors: tuple[str, ...] | None = None) -> Outcome:
    return SimulatedRun(draw_plan(seed, nodes, duration_ms, profile).only(actors=actors)).run()


def check(profile: str, nodes: int, seed: int, duration_ms: int, actors: tuple[str, ...] | None = None) -> None:
    outcome = outcome_of(profile, nodes, seed, duration_ms, actors)
    assert outcome.is_good, f"{outcome.plan.command()} found {outcome.violations[0]}"
    assert outcome.acknowledged > 100, "the run shows something"


@pytest.mark.parametrize(
    "failed",
    [
        pytest.param(
            one, id=f"{one.profile} {one.seed}", marks=[pytest.mark.long] if one.minutes > LONGEST_MINUTES else []
        )
        for one in FAILED_ONCE
    ],
)
def test_what_has_failed_once_does_not_fail_again(failed: FailedOnce) -> None:
    check(failed.profile, failed.nodes, failed.seed, round(failed.minutes * MINUTE_MS), failed.actors)


@pytest.mark.parametrize("run", FIXED, ids=lambda run: f"{run[0]} {run[2]}")
def test_a_cluster_keeps_its_promises_under_faults(run: tuple[str, int, int, int, tuple[str, ...] | None]) -> None:
    check(*run)


def test_every_marked_path_is_reached() -> None:
    """By the fixed runs, or by one of a few more: which seed gets where follows from every message before it."""
    left = MARKS.keys() - frozenset[str]().union(*(outcome_of(*run).marks for run in FIXED))
    for seed in range(2, 2 + MORE_SEEDS):
        for profile in dict.fromkeys(OFTEN_REACHED_IN.get(mark, "usual") for mark in sorted(left)):
            left -= outcome_of(profile, PROFILES[profile].nodes, seed, MINUTE_MS // 2).marks
    assert sorted(left) == [], f"no run came there, nor any of {MORE_SEEDS} more"


@pytest.mark.parametrize("seed", [1, 2])
def test_a_node_keeps_its_promises_under_faults(seed: int) -> None:
    check("usual", 1, seed, MINUTE_MS)
