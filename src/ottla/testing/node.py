"""A real node in a process of its own, for tests: started, stopped, killed, and started again on the same data.

    with RunningNode() as node:
        producer = confluent_kafka.Producer({"bootstrap.servers": node.bootstrap})
        ...
        node.kill()     # as a crash would
        node.start()    # the same port, the same data: clients find their way back

Theory of operation: a node is a directory (`data/`, `node.log`) and at most one process on it. The first start lets the
node pick a port and reads it from what the node prints; later starts ask for the same one. A node counts as started
when it answers a request, not when it has printed something. Every wait has a limit, and what went wrong is reported
with the end of the node's log.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from ottla.base.errors import OttlaError
from ottla.wire.frame import encode_request
from ottla.wire.messages import ApiVersionsRequest

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 60.0
_ADDRESS = re.compile(r"127\.0\.0\.1:(\d+)")
_POLL_S = 0.005
_PROBE_S = 1.0


class NodeError(OttlaError):
    """A node did not start or stop; the message carries the end of what it printed."""


class RunningNode:
    """`config` are broker settings, given as `--set`, `options` more words for the command line, `environment` more
    variables for the process.

    A `directory` that is given outlives the node. Port 0 lets the node choose.
    """

    # One with thousands of partitions may be given more.
    start_timeout_s: float = START_TIMEOUT_S
    stop_timeout_s: float = STOP_TIMEOUT_S

    def __init__(
        self,
        directory: Path | None = None,
        *,
        config: Mapping[str, object] | None = None,
        port: int = 0,
        options: tuple[str, ...] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._temporary = directory is None
        self.directory = Path(tempfile.mkdtemp(prefix="ottla-node-")) if directory is None else directory
        self.data = self.directory / "data"
        self.config = dict(config or {})
        self.options = options
        self.environment = dict(environment or {})
        self._port = port
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> RunningNode:
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
    def bootstrap(self) -> str:
        assert self._port, "the node has not been started"
        return f"127.0.0.1:{self._port}"

    @property
    def address(self) -> tuple[str, int]:
        return "127.0.0.1", self._port

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> Path:
        """What the node prints, over all its starts."""
        return self.directory / "node.log"

    def start(self) -> None:
        """Starts the node and returns once it answers requests."""
        assert self._process is None, "the node is running already"
        self.directory.mkdir(parents=True, exist_ok=True)
        printed_before = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self._environment()
            )
        deadline = time.monotonic() + self.start_timeout_s
        while not self._answers(printed_before):
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise NodeError(f"the node did not start\n{self.end_of_log()}")
            time.sleep(_POLL_S)

    def stop(self) -> None:
        """Stops the node cleanly, as SIGTERM does."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Kills the node as a crash would: nothing is flushed or written."""
        self._end(signal.SIGKILL)

    def abandon(self) -> None:
        """Forgets a process that has ended by itself, so that the node can be started again."""
        assert not self.is_running, "the node is running"
        self._process = None

    def close(self) -> None:
        """Ends the node if it still runs; removes the directory if it was ours."""
        if self._process is not None:
            self.kill()
        if self._temporary:
            shutil.rmtree(self.directory, ignore_errors=True)

    def rss_bytes(self) -> int:
        """Resident memory of the process now (Linux)."""
        assert self.pid is not None, "the node is not running"
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise NodeError(f"process {self.pid} has no memory any more")

    def end_of_log(self, lines: int = 30) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:]) if self.log.exists() else ""

    def _command(self) -> list[str]:
        settings = [word for key, value in self.config.items() for word in ("--set", f"{key}={value}")]
        place = ["--data", str(self.data), "--port", str(self._port)]
        return [sys.executable, "-m", "ottla.cli.main", "start", *place, *settings, *self.options]

    def _environment(self) -> dict[str, str]:
        """The child imports the same ottla as we do, installed or not, and prints without delay."""
        source = str(Path(__file__).resolve().parents[2])
        path = os.pathsep.join(part for part in (source, os.environ.get("PYTHONPATH")) if part)
        return {**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1", **self.environment}

    def _answers(self, printed_before: int) -> bool:
        if not self._port:
            with self.log.open("rb") as log:
                log.seek(printed_before)
                found = _ADDRESS.search(log.read().decode(errors="replace"))
            if found is None:
                return False
            self._port = int(found[1])
        request = encode_request(ApiVersionsRequest(), 0, 1, None)
        try:
            with socket.create_connection(self.address, timeout=_PROBE_S) as probe:
                probe.sendall(request)
                return len(probe.recv(4)) > 0
        except OSError:
            return False

    def _end(self, how: signal.Signals) -> None:
        assert self._process is not None, "the node is not running"
        self._process.send_signal(how)
        try:
            self._process.wait(self.stop_timeout_s)
        except subprocess.TimeoutExpired as expired:
            self._process.kill()
            self._process.wait()
            raise NodeError(f"the node did not stop on {how.name}\n{self.end_of_log()}") from expired
        finally:
            self._process = None
