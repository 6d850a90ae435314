"""Every example of docs/testing.md runs, as it stands there."""

import os
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "testing.md"


def examples(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def test_the_examples_in_python_are_tests_that_pass(tmp_path: Path) -> None:
    """One pytest for all of them: they share a session's broker, as tests of one project do."""
    blocks = examples("python")
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
