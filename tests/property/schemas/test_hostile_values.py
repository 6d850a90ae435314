"""The decoders of Protobuf and JSON Schema read or refuse what they are given, whatever that is, and outlive it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ptars")

PROGRAM = Path(__file__).with_name("hostile_values.py")
ROOT = Path(__file__).resolve().parents[3]


def run(first_seed: int, cases: int) -> None:
    command = [sys.executable, "-X", "faulthandler", str(PROGRAM), str(first_seed), str(cases)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stdout) == (0, f"{cases} cases\n"), done.stderr[-4000:]


def test_values_are_read_or_refused() -> None:
    run(0, 100)


@pytest.mark.long
@pytest.mark.parametrize("share", range(8))
def test_values_are_read_or_refused_in_the_long_run(share: int) -> None:
    run(100_000 + share * 10_000, 10_000)
