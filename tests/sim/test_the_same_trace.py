"""A run of a cluster is the same again, whatever the order of sets, whichever kernel does the work per record, and
whether disk threads are greenlets or threads of the system's."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


def traced(seed: int, nodes: int, *, hash_seed: int, kernel: str) -> str:
    program = Path(__file__).parent / "trace_of_a_run.py"
    run = subprocess.run(
        [sys.executable, str(program), str(seed), str(nodes), "10", kernel],
        capture_output=True,
        text=True,
        timeout=180,
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.mark.parametrize("nodes", [1, 3])
def test_a_run_does_not_depend_on_hashes_or_on_the_kernel(nodes: int) -> None:
    first = traced(4, nodes, hash_seed=1, kernel="fast")
    assert first == traced(4, nodes, hash_seed=2, kernel="slow")
    assert first.split()[0] != traced(5, nodes, hash_seed=1, kernel="fast").split()[0]
