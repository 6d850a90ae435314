"""A real Prometheus and its promtool, for tests: from PATH, or out of Debian's package.

    with Prometheus(directory, configuration) as prometheus:
        prometheus.query("up")              # [({"instance": …}, 1.0)]
        prometheus.alerts()                 # {"OttlaNodeDown": "firing"}

The package is unpacked once, into the cache in `$XDG_CACHE_HOME`; nothing is installed. Where there is neither the
program nor `apt-get`, a test fails and says so.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from functools import cache
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import quote
from urllib.request import urlopen

from ottla.testing.free_ports import free_ports

START_TIMEOUT_S = 60.0
Series = tuple[dict[str, str], float]


class PrometheusError(RuntimeError):
    """Prometheus is not there, or did not do what was asked; the message carries what it printed."""


@cache
def program(name: str) -> Path:
    """`prometheus` or `promtool`."""
    on_path = shutil.which(name)
    if on_path is not None:
        return Path(on_path)
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "debian-prometheus"
    found = home / "usr" / "bin" / name
    if not found.exists():
        _unpack(home)
    return found


def _unpack(home: Path) -> None:
    for needed in ("apt-get", "dpkg"):
        if shutil.which(needed) is None:
            raise PrometheusError(
                f"prometheus is not on PATH, and there is no `{needed}` to fetch Debian's package with"
            )
    shutil.rmtree(home, ignore_errors=True)
    making = home.with_name(f"{home.name}-{os.getpid()}")
    making.mkdir(parents=True)
    try:
        download = ["apt-get", "download", "prometheus"]
        if subprocess.run(download, cwd=making, capture_output=True, timeout=600).returncode != 0:
            _run(["apt-get", "update"], making)  # Its lists are old, or not there.
            _run(download, making)
        (package,) = making.glob("prometheus_*.deb")
        _run(["dpkg", "-x", str(package), str(making)], making)
        package.unlink()
        if not home.exists():
            making.rename(home)
    finally:
        shutil.rmtree(making, ignore_errors=True)


def _run(command: list[str], directory: Path) -> None:
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        raise PrometheusError(f"{' '.join(command)} exited with {done.returncode}\n{done.stdout}{done.stderr}")


def promtool(*words: str | Path) -> str:
    """What it printed. Raises `PrometheusError` with it when it is not content."""
    command = [str(program("promtool")), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise PrometheusError(f"{' '.join(command)} exited with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


class Prometheus:
    """Runs from when it is entered. `configuration` is the text of its file, which names others by whole paths."""

    def __init__(self, directory: Path, configuration: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        (port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{port}"
        self._log = directory / "prometheus.log"
        file = directory / "prometheus.yml"
        file.write_text(configuration)
        self._command = [
            str(program("prometheus")),
            f"--config.file={file}",
            f"--storage.tsdb.path={directory / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ]
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Prometheus:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=subprocess.STDOUT)
        ends_s = time.monotonic() + START_TIMEOUT_S
        while True:
            try:
                with urlopen(f"{self.url}/-/ready", timeout=5):
                    return self
            except (URLError, ConnectionError, TimeoutError) as problem:
                if self._process.poll() is not None or time.monotonic() > ends_s:
                    self.__exit__()
                    raise PrometheusError(f"Prometheus did not start: {self._log.read_text()[-4000:]}") from problem
            time.sleep(0.1)

    def __exit__(self, *_problem: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def query(self, expression: str) -> list[Series]:
        """The samples of now; a plain number is one without labels. Raises `PrometheusError` for what is no
        expression."""
        found = self._get(f"query?query={quote(expression)}")
        if found["resultType"] == "scalar":
            return [({}, float(found["result"][1]))]
        return [(one["metric"], float(one["value"][1])) for one in found["result"]]

    def alerts(self) -> dict[str, str]:
        """The state of alerts that are not silent: `pending` or `firing`, by name."""
        states: dict[str, str] = {}
        for one in self._get("alerts")["alerts"]:
            name = one["labels"]["alertname"]
            if states.get(name) != "firing":
                states[name] = one["state"]
        return states

    def firing(self) -> set[str]:
        return {name for name, state in self.alerts().items() if state == "firing"}

    def _get(self, what: str) -> Any:
        try:
            with urlopen(f"{self.url}/api/v1/{what}", timeout=30) as reply:
                return json.load(reply)["data"]
        except URLError as problem:
            told = problem.read().decode() if hasattr(problem, "read") else str(problem)
            raise PrometheusError(f"{what}: {told}") from problem
