"""Damaged messages are refused or read, alike by every decoder, within bounded time and memory."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def fuzz(seed: int, cases: int) -> str:
    """In its own process, for its own memory limit; a failure shows the seed, the case and the bytes."""
    command = [sys.executable, "-m", "tests.property.wire.wire_fuzz", str(seed), str(cases)]
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=600)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def test_damaged_messages_are_refused_or_read_alike() -> None:
    print(fuzz(seed=20_251_115, cases=30_000))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(8))
def test_damaged_messages_are_refused_or_read_alike_in_the_long_run(seed: int) -> None:
    print(fuzz(seed, cases=50_000))
