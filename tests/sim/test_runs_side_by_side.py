"""Runs in processes side by side are the runs that one process would have done."""

import pytest

from ottla.cli.sim.runs import Task, side_by_side
from ottla.cli.sim.sim import main
from ottla.testing.sim.run_profiles import PROFILES

TASKS = [Task(seed, 1, 2_000, "usual") for seed in (1, 2, 3)]


def traces(processes: int) -> list[str]:
    return sorted(outcome.trace_hash for outcome, _ in side_by_side(iter(TASKS), processes))


def test_processes_side_by_side_do_the_same_runs() -> None:
    assert traces(2) == traces(1)


def test_all_profiles_are_run_from_each_seed_and_the_pace_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "1", "--profile", "all", "--nodes", "1", "--minutes", "0.01"]) == 0
    told = capsys.readouterr().out
    assert all(f"seed 1: 1 nodes, {profile}: " in told for profile in PROFILES)
    assert f"{len(PROFILES)} runs, 0 failed; " in told
    assert "in an hour of a core" in told


def test_runs_that_failed_are_listed_with_their_commands(capsys: pytest.CaptureFixture[str]) -> None:
    broken = ["--canary", "drop-commits", "--nodes", "1", "--minutes", "0.1"]
    assert main(["--seed", "1", "--seeds", "2", "--no-shrink", *broken]) == 1
    told = capsys.readouterr().out
    assert "  failed: ottla sim --seed 1 --nodes 1 --minutes 0.1 --canary drop-commits" in told.splitlines()
