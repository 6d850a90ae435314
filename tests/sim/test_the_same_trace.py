"""A run of a cluster is the same again, whatever the order of sets, whichever kernel does the work per record, and
whether disk threads are greenlets or threads of the system's."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


def traced(seed: int, nodes: int, *, hash_seed: int, kernel: str, protection: str = "plain") -> str:
    program = Path(__file__).parent / "trace_of_a_run.py"
    run = subprocess.run(
        [sys.executable, str(program), str(seed), str(nodes), "10", kernel, protection],
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


def test_an_encrypted_run_depends_on_them_no_more_and_not_on_openssls_chance() -> None:
    first = traced(4, 3, hash_seed=1, kernel="fast", protection="tls")
    assert first == traced(4, 3, hash_seed=2, kernel="slow", protection="tls")
    assert first.endswith("()\n"), "nothing is wrong"
    assert int(first.split()[2]) > 50, "records are acknowledged"
    assert first.split()[0] != traced(4, 3, hash_seed=1, kernel="fast").split()[0]
