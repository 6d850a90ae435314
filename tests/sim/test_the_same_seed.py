"""A seed is a run: everything that a node sends and writes is the same the next time, in another process too."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sim.life_of_a_node import live

SEEDS = [1, 2]


def lived_in_another_process(seed: int, hash_seed: int) -> list[str]:
    """Strings, bytes and objects have other hashes there, so that sets of them are in another order."""
    program = Path(__file__).parent / "life_of_a_node.py"
    run = subprocess.run(
        [sys.executable, str(program), str(seed)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


def first_difference(some: list[str], others: list[str]) -> tuple[str, str] | None:
    for one, other in zip([*some, "the end"], [*others, "the end"], strict=False):
        if one != other:
            return one, other
    return None


@pytest.mark.parametrize("seed", SEEDS)
def test_a_life_is_the_same_again(seed: int) -> None:
    first, second = live(seed), live(seed)
    assert first_difference(first.lines, second.lines) is None
    assert first.digest() == second.digest()


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_depends_on_the_order_of_a_set(seed: int) -> None:
    first = lived_in_another_process(seed, hash_seed=1)
    assert first_difference(first, lived_in_another_process(seed, hash_seed=2)) is None
    assert len(first) > 500


def test_another_seed_is_another_life() -> None:
    assert live(1).digest() != live(2).digest()
