"""Nodes that are broken on purpose are found out: those that are quick to find always, the others in the long run.

Where in a run a fault comes follows from every message before it. So another seed may be the one that finds a canary
after a change of the product: it is looked for with the seed of the table first, then with a stated number of others.
"""

import re
from pathlib import Path

import pytest

from ottla.testing.sim.canaries.canaries import CANARIES
from ottla.testing.sim.simulated_run import SimulatedRun

PAGE = Path(__file__).parents[2] / "docs/simulator.md"
QUICK = [name for name, canary in CANARIES.items() if canary.is_quick]
QUICK_SEEDS = 8


def find(name: str, seeds: int) -> int:
    """The seed that finds a canary."""
    canary = CANARIES[name]
    for seed in dict.fromkeys((canary.seed, *range(1, seeds + 1))):
        with canary.broken():
            outcome = SimulatedRun(canary.plan(seed)).run()
        if not outcome.is_good:
            return seed
    pytest.fail(f"{name} was not found in {seeds} seeds")


@pytest.mark.parametrize("name", QUICK)
def test_a_broken_node_is_found_out(name: str) -> None:
    assert find(name, QUICK_SEEDS)


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in CANARIES if name not in QUICK])
def test_every_canary_is_found_within_its_seeds(name: str) -> None:
    assert find(name, CANARIES[name].within_seeds)


def test_the_page_lists_every_canary_with_its_seed() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \|.*\| ([^|]+) \|$", PAGE.read_text(), re.MULTILINE)
    assert dict(rows).items() >= {name: str(canary.seed) for name, canary in CANARIES.items()}.items()
