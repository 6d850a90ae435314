"""Runs in processes side by side are the runs that one process would have done."""

import re
from itertools import pairwise

import pytest

from ottla.cli.sim.runs import Task, side_by_side
from ottla.cli.sim.sim import main
from ottla.testing.sim.marks import MARKS
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


def test_every_profile_is_run_for_so_many_simulated_hours_and_its_figures_are_a_row(
    capsys: pytest.CaptureFixture[str],
) -> None:
    hours = 0.0025
    of_two = ["--profile", "all", "--nodes", "1", "--minutes", "0.01", "--hours", str(hours), "--jobs", "2"]
    assert main(["--seed", "5", *of_two]) == 0
    told = capsys.readouterr().out
    simulated_s = dict.fromkeys(PROFILES, 0.0)
    seeds: dict[str, list[int]] = {name: [] for name in PROFILES}
    for first, second in pairwise(told.splitlines()):
        if found := re.match(r"seed (\d+): 1 nodes, (\w+): ", first):
            seeds[found[2]].append(int(found[1]))
            (seconds,) = re.findall(r"(\d+) simulated s", second)
            simulated_s[found[2]] += int(seconds)
    for name in PROFILES:
        assert simulated_s[name] >= hours * 3600 - len(seeds[name]), "each run's seconds are rounded"
        assert sorted(seeds[name]) == list(range(5, 5 + len(seeds[name]))), "from the first seed on, none left out"
        row = rf"^{name} +\d+\.\d\d +{len(seeds[name])} +5-{max(seeds[name])} +\d+ +\d+ +\d+ of {len(MARKS)} +0$"
        assert re.search(row, told, re.MULTILINE), name
    assert any(len(one) > 1 for one in seeds.values()), "one run is not enough for each"


def test_runs_that_failed_are_listed_with_their_commands(capsys: pytest.CaptureFixture[str]) -> None:
    broken = ["--canary", "drop-commits", "--nodes", "1", "--minutes", "0.1"]
    assert main(["--seed", "1", "--seeds", "2", "--no-shrink", *broken]) == 1
    told = capsys.readouterr().out
    assert "  failed: ottla sim --seed 1 --nodes 1 --minutes 0.1 --canary drop-commits" in told.splitlines()
