"""Karapace as a process: the other registry in Python that keeps its schemas in `_schemas`.

It is not on PyPI, so nothing here fetches it. `KARAPACE_PYTHON` names the Python of an environment that has it:

    python3.12 -m venv karapace
    karapace/bin/pip install git+https://github.com/Aiven-Open/karapace    # this needs Go
    KARAPACE_PYTHON=karapace/bin/python pytest -m interop tests/interop/registry
"""

import os
import subprocess
import time
from pathlib import Path
from typing import Self

from ottla.testing.free_ports import free_ports

PYTHON = os.environ.get("KARAPACE_PYTHON")
START_TIMEOUT_S = 120.0


class Karapace:
    """Entering waits until it takes writes."""

    def __init__(self, bootstrap: str, directory: Path) -> None:
        self._bootstrap = bootstrap
        self._log = directory / "karapace.log"
        self._port = free_ports(1)[0]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def __enter__(self) -> Self:
        from tests.interop.registry.takeover import ask

        assert PYTHON is not None
        settings = {
            "bootstrap_uri": self._bootstrap,
            "host": "127.0.0.1",
            "port": self._port,
            "advertised_hostname": "127.0.0.1",
            "advertised_port": self._port,
            "karapace_registry": "true",
            "log_level": "WARNING",
        }
        environment = {f"KARAPACE_{name.upper()}": str(value) for name, value in settings.items()}
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [PYTHON, "-m", "karapace"], stdout=log, stderr=log, env={**os.environ, **environment}
            )
        deadline_s = time.monotonic() + START_TIMEOUT_S
        while True:
            try:
                if ask(self.url, "GET", "/master_available")[1] == {"master_available": True}:
                    return self
            except OSError:
                pass
            if self._process.poll() is not None or time.monotonic() > deadline_s:
                self.stop()
                raise RuntimeError("Karapace did not start:\n" + self._log.read_text(errors="replace")[-3000:])
            time.sleep(0.2)

    def __exit__(self, *problem: object) -> None:
        self.stop()

    def stop(self) -> None:
        assert self._process is not None
        self._process.terminate()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
