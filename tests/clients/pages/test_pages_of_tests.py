"""Every example of the pages whose examples are tests runs, as it stands there."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[3] / "docs"
TESTING = DOCS / "testing.md"


def examples(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", [TESTING, DOCS / "clients" / "coming-from.md"], ids=lambda page: page.stem)
def test_the_examples_in_python_are_tests_that_pass(page: Path, tmp_path: Path) -> None:
    """One pytest for all of a page: they share a session's broker, as tests of one project do."""
    blocks = examples(page, "python")
    assert blocks
    for number, block in enumerate(blocks):
        assert "def test_" in block, "an example that is not a test would never run"
        (tmp_path / f"test_example_{number:02}.py").write_text(block)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OTTLA_")}
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert f"{len(blocks)} passed" in run.stdout


@pytest.mark.skipif(shutil.which("curl") is None, reason="the page uses curl")
def test_the_commands_in_the_shell_do_what_they_say() -> None:
    """The first starts a node, the others ask it for every fault; the last one kills it."""
    start, commands = examples(TESTING, "bash")
    words = [str(Path(sys.executable).parent / "ottla"), *start.split()[1:]]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as node:
        assert node.stdout is not None
        banner = "".join(node.stdout.readline() for _ in range(4))
        found = re.search(r"faults +(\S+) \(token (\S+)\)", banner)
        assert found, banner
        lines = re.findall(r"^curl(?:.*\\\n)*.*\n", commands, re.MULTILINE)
        *asked, kill = lines
        shell = {**os.environ, "FAULTS": found[1], "TOKEN": found[2]}
        for line in asked:
            run = subprocess.run(["bash", "-c", line], env=shell, capture_output=True, text=True, timeout=60)
            assert run.returncode == 0, line
            assert "error" not in json.loads(run.stdout) or "fail_next" in line, run.stdout
        subprocess.run(["bash", "-c", kill], env=shell, timeout=60, check=False)
        assert node.wait(20) == -signal.SIGKILL
