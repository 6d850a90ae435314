"""`ottla sim` as a person sees it: the seed, the faults, a summary; and a failure with the command that repeats it."""

import re

import pytest

from ottla.cli.sim.sim import main
from ottla.testing.sim.run_plan import draw_plan

SHORT = ["--seed", "1", "--minutes", "0.1"]


def test_a_good_run_is_told_in_two_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SHORT, "--nodes", "3"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    kinds = {fault.kind for fault in draw_plan(1, 3, 6_000).faults}
    assert first.startswith("seed 1: 3 nodes, ")
    assert all(kind in first for kind in kinds)
    assert re.fullmatch(
        r"seed 1: ok; \d+ simulated s \(\d+ per CPU s\), \d+ faults, [\d,]+ of [\d,]+ records acknowledged, "
        r"[\d,]+ read, [\d,]+ transactions; trace [0-9a-f]+",
        second,
    )


def test_a_failure_is_shortened_and_its_command_fails_again(capsys: pytest.CaptureFixture[str]) -> None:
    canary = ["--canary", "drop-commits"]
    assert main([*SHORT, "--nodes", "1", *canary]) == 1
    told = capsys.readouterr().out
    (violation,) = re.findall(r"^  violated: (.*)", told, re.MULTILINE)[:1]
    (command,) = re.findall(r"again, short:  ottla sim (.*)", told)
    assert command.endswith("--canary drop-commits")
    assert "--actors" in command, "fewer programs than at first"
    assert re.search(r"^    .*\d", told, re.MULTILINE), "what happened in it"
    assert main([*command.split(), "--no-shrink"]) == 1
    assert violation.partition(":")[0] in capsys.readouterr().out


@pytest.mark.parametrize("option", ["--canary", "--profile"])
def test_what_there_is_to_choose_from_is_listed(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([option, "list"]) == 0
    assert len(capsys.readouterr().out.splitlines()) >= (10 if option == "--canary" else 4)
    assert main([option, "none such"]) == 2
    assert f"`{option} list` lists them" in capsys.readouterr().err
