"""Copies that are killed at any step: a few from one seed in every run, many in the long one."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("copy_fuzz.py")
TIMEOUT_S = 600


def fuzz(seed: int, cases: int, *options: str) -> str:
    """Runs it as a program: it forks, and has to be without threads when it does."""
    command = [sys.executable, str(PROGRAM), str(seed), str(cases), *options]
    run = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
    print(run.stdout)
    assert run.returncode == 0, f"{' '.join(command[1:])}\n{run.stdout}{run.stderr[-4000:]}"
    return run.stdout


@pytest.mark.parametrize("seed", [1])
def test_copies_that_are_killed_are_complete_in_order_and_byte_for_byte(seed: int) -> None:
    printed = fuzz(seed, 8)
    assert f"copies, seed {seed}, 8 cases: " in printed
    assert "copier " in printed.partition("killed: ")[2]


def test_a_copy_that_keeps_its_place_too_early_is_found() -> None:
    """Else the test above would hold for ever."""
    with pytest.raises(AssertionError, match=r"are missing|comes before|records became"):
        fuzz(1, 12, "--canary")


def test_copies_between_clusters_whose_nodes_are_killed_are_complete() -> None:
    printed = fuzz(2, 4, "--nodes", "3")
    assert "copies on 3 nodes, seed 2, 4 cases: " in printed


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1000, 1010))
def test_many_seeds_of_copies_between_clusters(seed: int) -> None:
    fuzz(seed, 30, "--nodes", "3")


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1000, 1020))
def test_many_seeds_of_copies(seed: int) -> None:
    fuzz(seed, 60)
