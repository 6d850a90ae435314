"""The release before this one, installed in an environment of its own, for tests that run both.

It is taken out of the repository's history, so it needs the history and PyPI, once: the environment is kept in
`build/previous-release`, under the commit's name.
"""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
COMMIT = "7f286c04"
"""What counts as the release before. With every release: the tag of the one before it."""


def previous_python() -> Path:
    """The interpreter of an environment that has the previous release, made if it is not there."""
    kept = ROOT / "build" / "previous-release" / COMMIT
    python = kept / "bin" / "python"
    done = kept / "installed"
    if done.exists():
        return python
    shutil.rmtree(kept, ignore_errors=True)
    source = kept / "source"
    source.mkdir(parents=True)
    archive = subprocess.run(["git", "archive", COMMIT], cwd=ROOT, check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x"], cwd=source, input=archive, check=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", kept], check=True)
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    subprocess.run([*pip, str(source)], check=True)
    done.touch()
    return python
