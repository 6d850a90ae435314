"""`SchemaRegistry`: a real registry for one block of code, in a process of its own, on a free port, gone at the end.

    from ottla.testing import Broker
    from ottla.testing.registry.own_registry import SchemaRegistry

    with Broker() as broker, SchemaRegistry(broker.bootstrap) as registry:
        client = SchemaRegistryClient({"url": registry.url})

It counts as started when it can register a schema. Every wait has a limit, and what went wrong is reported with the end
of the registry's log.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from ottla.base.errors import OttlaError

START_TIMEOUT_S: Final = 60.0
STOP_TIMEOUT_S: Final = 60.0
_POLL_S: Final = 0.01
_ADDRESS: Final = re.compile(r"registry is ready at (https?)://127\.0\.0\.1:(\d+)")


class RegistryProblem(OttlaError):
    """A registry did not start or stop; the message carries the end of what it printed."""


class SchemaRegistry:
    """`settings` are a registry's, under Confluent's names. Port 0 is one of its choice, and stays over restarts.

    `ready` says whether `start` waits until changes can be made, and not only until it serves.
    """

    def __init__(
        self,
        bootstrap: str,
        settings: Mapping[str, object] | None = None,
        *,
        port: int = 0,
        ready: bool = True,
    ) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="ottla-registry-"))
        self._bootstrap = bootstrap
        self._settings = dict(settings or {})
        self._port = port
        self._waits_until_ready = ready
        self._scheme = "http"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @property
    def url(self) -> str:
        """What clients call `schema.registry.url`. It stays the same over restarts."""
        assert self._port, "the registry has not been started"
        return f"{self._scheme}://127.0.0.1:{self._port}"

    @property
    def port(self) -> int:
        return self._port

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def log(self) -> Path:
        """What the registry prints, over all its starts."""
        return self.directory / "registry.log"

    def start(self) -> None:
        assert self._process is None, "the registry is running already"
        printed_before = self.log.stat().st_size if self.log.exists() else 0
        command = [sys.executable, "-m", "ottla.cli.main", "registry", "start", "--log-level", "info"]
        command += ["--bootstrap-server", self._bootstrap]
        if "listeners" not in self._settings:
            command += ["--port", str(self._port)]
        for key, value in self._settings.items():
            command += ["--set", f"{key}={value}"]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**os.environ, "PYTHONUNBUFFERED": "1"}
            )
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._is_up(printed_before):
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RegistryProblem(f"the registry did not start\n{self.end_of_log()}")
            time.sleep(_POLL_S)

    def _is_up(self, printed_before: int) -> bool:
        with self.log.open("rb") as log:
            log.seek(printed_before)
            found = _ADDRESS.search(log.read().decode(errors="replace"))
        if found is None:
            return False
        self._scheme, self._port = found[1], int(found[2])
        return self._scheme == "https" or not self._waits_until_ready or self.is_ready()

    def is_ready(self) -> bool:
        """Whether schemas can be registered with it."""
        connection = HTTPConnection("127.0.0.1", self._port, timeout=5)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except (OSError, HTTPException):
            return False
        finally:
            connection.close()

    def stop(self) -> None:
        """In good order, as SIGTERM does it."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """As a crash would."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """Stops the process where it is, until `resume`."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGCONT)

    def _end(self, how: signal.Signals) -> None:
        assert self._process is not None, "the registry is not running"
        self._process.send_signal(how)
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise RegistryProblem(f"the registry did not stop\n{self.end_of_log()}") from None
        self._process = None

    def close(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None
        shutil.rmtree(self.directory, ignore_errors=True)

    def rss_bytes(self) -> int:
        """Resident memory of the process now (Linux)."""
        assert self.pid is not None, "the registry is not running"
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise RegistryProblem(f"process {self.pid} has no memory any more")

    def end_of_log(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-30:])
