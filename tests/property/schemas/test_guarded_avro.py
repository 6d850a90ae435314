"""The compiled decoder of Avro never reads past the end of what it is given, whatever that is."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ottla.schemas.avro._fast", reason="this installation has no compiled decoder")

PROGRAM = Path(__file__).with_name("guarded_avro.py")


def run(first_seed: int, cases: int) -> None:
    command = [sys.executable, "-X", "faulthandler", str(PROGRAM), str(first_seed), str(cases)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"{cases} cases\n"), done.stderr[-4000:]


def test_nothing_is_read_past_the_end() -> None:
    run(0, 600)


@pytest.mark.long
@pytest.mark.parametrize("share", range(8))
def test_nothing_is_read_past_the_end_in_the_long_run(share: int) -> None:
    run(100_000 + share * 100_000, 100_000)
