"""The scenes of `clients_fuzz`: a few seeds in every run, many in the long one. Those that found something stay."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("clients_fuzz.py")
TIMEOUT_S = 300


def fuzz(scene: str, seed: int, cases: int) -> None:
    """Runs it as a program: Ctrl-C strikes its main thread. What it printed is shown when it fails, or with `-s`."""
    command = [sys.executable, str(PROGRAM), scene, str(seed), str(cases)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
    print(run.stdout)
    assert run.returncode == 0, f"{' '.join(command[1:])}\n{run.stdout}{run.stderr[-4000:]}"
    assert f"{scene}, seed {seed}, {cases} cases: " in run.stdout


@pytest.mark.parametrize("seed", [1, 3, 6])
def test_threads_that_share_a_producer(seed: int) -> None:
    fuzz("shared_producer", seed, 2000)


@pytest.mark.parametrize("seed", [1])
def test_transactions_under_faults(seed: int) -> None:
    fuzz("transactions", seed, 12)


@pytest.mark.parametrize("seed", [1])
def test_any_calls_of_one_consumer(seed: int) -> None:
    fuzz("one_consumer", seed, 500)


@pytest.mark.parametrize("seed", [1, 2])
def test_groups_whose_members_come_and_go_while_replies_are_lost(seed: int) -> None:
    fuzz("groups", seed, 800)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1000, 1025))
@pytest.mark.parametrize(
    ("scene", "cases"), [("shared_producer", 40_000), ("transactions", 150), ("one_consumer", 8000), ("groups", 10_000)]
)
def test_many_seeds(scene: str, cases: int, seed: int) -> None:
    fuzz(scene, seed, cases)


def test_a_scene_that_fails_is_a_finding() -> None:
    """Else the tests above would hold for ever."""
    with pytest.raises(AssertionError, match="none_such 1 5"):
        fuzz("none_such", 1, 5)
