"""Nodes that are broken on purpose are found out: all of them in the long run, some that are quick always."""

import pytest

from ottla.testing.sim.canaries.canaries import CANARIES
from ottla.testing.sim.run_plan import draw_plan
from ottla.testing.sim.simulated_run import SimulatedRun

MINUTE_MS = 60_000
QUICK = ("drop-commits", "forget-sequences", "vote-twice")


def seeds_until_found(name: str) -> int:
    canary = CANARIES[name]
    for seed in range(1, canary.within_seeds + 1):
        with canary.broken():
            plan = draw_plan(seed, canary.nodes, MINUTE_MS, canary.profile).only(actors=canary.actors)
            outcome = SimulatedRun(plan).run()
        if not outcome.is_good:
            return seed
    pytest.fail(f"{name} was not found in {canary.within_seeds} seeds")


@pytest.mark.parametrize("name", QUICK)
def test_a_broken_node_is_found_out(name: str) -> None:
    assert seeds_until_found(name) <= 3


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in CANARIES if name not in QUICK])
def test_every_canary_is_found_within_its_seeds(name: str) -> None:
    assert seeds_until_found(name)
