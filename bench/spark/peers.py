"""Peers from PyPI, each in an environment of its own: quixstreams asks for an older confluent-kafka than our tests do.

A virtual environment is made once, in `$XDG_CACHE_HOME`, and each question is answered by a process there. A peer that
cannot be installed or does not come to an end is told and left out: it is not what is measured.
"""

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

PEERS = {"quixstreams": "quixstreams>=3.20", "bytewax": "bytewax[kafka]>=0.21"}
ANSWERED = (0, 1, 2)
"""The questions about bids alone, without state: what NAME_peer.py has."""
TIMEOUT_S = 180.0


def peer_rate(peer: str, bootstrap: str, topic: str, number: int, count: int) -> float | None:
    """Events in a second of a core, or None for a question that the peer has no answer to."""
    python = _python(peer)
    if number not in ANSWERED or python is None:
        return None
    command = [python, Path(__file__).with_name(f"{peer}_peer.py"), bootstrap, topic, str(number), str(count)]
    hidden = {"PYTHONPATH", "VIRTUAL_ENV"}
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, text=True, check=True, env=environment, timeout=TIMEOUT_S
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as problem:
        print(f"    {peer} did not answer question {number}: {problem}", file=sys.stderr, flush=True)
        return None
    return float(done.stdout.split()[-1])


@cache
def _python(peer: str) -> Path | None:
    """The interpreter of a peer's environment; None if it cannot be made."""
    place = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / f"ottla-{peer}"
    python = place / "venv" / "bin" / "python"
    if not (place / "ready").exists():
        shutil.rmtree(place, ignore_errors=True)
        pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", PEERS[peer]]
        try:
            subprocess.run([sys.executable, "-m", "venv", "--without-pip", place / "venv"], check=True)
            subprocess.run(pip, check=True, timeout=TIMEOUT_S)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as problem:
            print(f"    {peer} cannot be installed: {problem}", file=sys.stderr, flush=True)
            return None
        (place / "ready").touch()
    return python
