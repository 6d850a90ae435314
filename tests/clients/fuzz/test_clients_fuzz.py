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


@pytest.mark.parametrize("seed", [1, 2])
def test_producers_that_ctrl_c_cuts_short(seed: int) -> None:
    fuzz("interrupted_producer", seed, 2000)


@pytest.mark.parametrize("seed", [1])
def test_transactions_under_faults(seed: int) -> None:
    fuzz("transactions", seed, 12)


@pytest.mark.parametrize("seed", [1])
def test_any_calls_of_one_consumer(seed: int) -> None:
    fuzz("one_consumer", seed, 500)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_groups_whose_members_come_and_go_while_replies_are_lost(seed: int) -> None:
    """Each seed has one of the protocols: eager, cooperative, and the new one (KIP-848)."""
    fuzz("groups", seed, 800)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_static_members_that_are_replaced_and_come_back_while_replies_are_lost(seed: int) -> None:
    fuzz("static_groups", seed, 800)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1000, 1025))
@pytest.mark.parametrize(
    ("scene", "cases"),
    [
        ("shared_producer", 40_000),
        ("interrupted_producer", 40_000),
        ("transactions", 150),
        ("one_consumer", 8000),
        ("groups", 10_000),
        ("static_groups", 10_000),
    ],
)
def test_many_seeds(scene: str, cases: int, seed: int) -> None:
    fuzz(scene, seed, cases)


def test_interrupts_harm_nothing_but_the_work_they_are_for() -> None:
    """As fast as they come: they strike in the work and in its end, and never behind it."""
    program = """if True:
    import random, signal, time
    from clients_fuzz import Interrupts

    signal.signal(signal.SIGINT, signal.default_int_handler)
    for seed in range(20):
        end_s = time.monotonic() + 0.05

        def work():
            interrupts.begin()
            while time.monotonic() < end_s:
                time.sleep(0.0001)
            interrupts.end()

        interrupts = Interrupts(random.Random(seed), 0.001)
        assert interrupts.in_spite_of(work) > 0
    """
    subprocess.run([sys.executable, "-c", program], check=True, timeout=TIMEOUT_S, cwd=PROGRAM.parent)


def test_a_scene_that_fails_is_a_finding() -> None:
    """Else the tests above would hold for ever."""
    with pytest.raises(AssertionError, match="none_such 1 5"):
        fuzz("none_such", 1, 5)
