"""The compiled kernel never reads past the end of what it is given, whatever that is."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ottla.records._fast", reason="this installation has no compiled kernel")

PROGRAM = Path(__file__).with_name("guarded_kernel.py")


def run(first_seed: int, cases: int) -> None:
    command = [sys.executable, "-X", "faulthandler", str(PROGRAM), str(first_seed), str(cases)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"{cases} cases\n"), done.stderr[-4000:]


def test_nothing_is_read_past_the_end() -> None:
    run(0, 5_000)


@pytest.mark.long
@pytest.mark.parametrize("share", range(8))
def test_nothing_is_read_past_the_end_in_the_long_run(share: int) -> None:
    run(100_000 + share * 200_000, 200_000)


def test_the_guard_would_notice() -> None:
    """A canary: a read of one byte past the end ends the process."""
    code = (
        "import ctypes; from tests.property.records import guarded_memory as g; view = g.Guarded().hold(b'x');"
        "ctypes.string_at(ctypes.addressof(ctypes.c_char.from_buffer(view)), 2)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode < 0
