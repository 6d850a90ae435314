"""quixstreams in an environment of its own: it asks for an older confluent-kafka than our tests are run with.

The virtual environment is made once, in `$XDG_CACHE_HOME`, and each question is answered by a process there.
"""

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

PACKAGE = "quixstreams>=3.20"
ANSWERED = (0, 1, 2)
"""The questions of quix_peer.py."""


def quix_rate(bootstrap: str, topic: str, number: int, count: int) -> float | None:
    """Events in a second of a core, or None for a question that quixstreams cannot answer."""
    if number not in ANSWERED:
        return None
    command = [_python(), Path(__file__).with_name("quix_peer.py"), bootstrap, topic, str(number), str(count)]
    hidden = {"PYTHONPATH", "VIRTUAL_ENV"}
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    return float(done.stdout.split()[-1])


@cache
def _python() -> Path:
    place = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ottla-quixstreams"
    python = place / "venv" / "bin" / "python"
    if not (place / "ready").exists():
        shutil.rmtree(place, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", place / "venv"], check=True)
        pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet"]
        subprocess.run([*pip, PACKAGE], check=True)
        (place / "ready").touch()
    return python
