"""The two workers: Kafka Connect with Debezium's connectors, and ours. Both have the same REST interface."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.interop.apache_kafka import libraries
from tests.interop.connect import debezium
from tests.interop.connect.kafka_connect import connect_libraries

from ottla.testing.free_ports import free_ports

JDBC_SINK = "3.5.0.Final"
"""Debezium's sink of 3.6 needs debezium-sink, which is not on Maven Central in that version."""
_POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion><groupId>ottla</groupId><artifactId>bench</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>io.debezium</groupId><artifactId>debezium-connector-jdbc</artifactId><version>{version}</version></dependency>
  </dependencies>
</project>
"""
_WAIT_S = 300.0
_TICKS = os.sysconf("SC_CLK_TCK")


class Worker:
    """A worker's process, with what it started, and its REST interface."""

    name = ""

    def __init__(self, bootstrap: str, directory: Path) -> None:
        self._directory = directory / self.name
        self._directory.mkdir(parents=True, exist_ok=True)
        (self._port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{self._port}"
        self._process: subprocess.Popen[bytes] | None = None
        self._settings = {
            "bootstrap.servers": bootstrap,
            "group.id": f"bench-{self.name}",
            "key.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "key.converter.schemas.enable": "false",
            "value.converter.schemas.enable": "false",
            "config.storage.topic": f"{self.name}-configs",
            "offset.storage.topic": f"{self.name}-offsets",
            "status.storage.topic": f"{self.name}-status",
            "config.storage.replication.factor": "1",
            "offset.storage.replication.factor": "1",
            "status.storage.replication.factor": "1",
            "listeners": self.url,
        }

    def command(self, file: Path) -> list[str]:
        raise NotImplementedError

    @property
    def _log(self) -> Path:
        return self._directory / "worker.log"

    def start(self) -> None:
        """Returns when it can be asked for connectors."""
        file = self._directory / "worker.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in self._settings.items()))
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command(file), stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self._directory
            )
        self.wait(lambda: self.ask("GET", "/connectors")[0] == 200, "it answers")

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Status and body; 0 if nobody answered."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                return reply.status, json.loads(reply.read() or b"null")
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read()
        except OSError:
            return 0, None

    def wait(self, holds: Callable[[], object], what: str, wait_s: float = _WAIT_S, pause_s: float = 0.05) -> None:
        ends_s = time.monotonic() + wait_s
        while not holds():
            ended = self._process is not None and self._process.poll() is not None
            if ended or time.monotonic() > ends_s:
                raise SystemExit(f"{self.name}: not so after {wait_s:.0f} s: {what}\n{self.end_of_log()}")
            time.sleep(pause_s)

    def end_of_log(self) -> str:
        lines = self._log.read_text(errors="replace").splitlines()
        told = [
            line for line in lines if " WARN " in line or " ERROR " in line or "xception" in line or "Error" in line
        ]
        return "\n".join((told or lines)[-15:])

    def create(self, connector: str, config: Mapping[str, str]) -> None:
        """Returns when its task runs."""
        self.put(connector, config)
        self.wait(lambda: self.runs(connector), f"{connector} runs")

    def put(self, connector: str, config: Mapping[str, str]) -> None:
        answered: tuple[int, Any] = (0, None)

        def is_put() -> bool:
            nonlocal answered
            answered = self.ask("PUT", f"/connectors/{connector}/config", config)
            if answered[0] in (400, 500):
                raise SystemExit(f"{self.name}: {connector}: {answered}\n{self.end_of_log()}")
            return answered[0] in (200, 201)

        self.wait(is_put, f"{connector} is created")

    def runs(self, connector: str) -> bool:
        status, found = self.ask("GET", f"/connectors/{connector}/status")
        if status != 200:
            return False
        failed = [task for task in found["tasks"] if task["state"] == "FAILED"]
        if failed:
            raise SystemExit(f"{self.name}: {connector} failed: {failed[0]['trace'][-2000:]}")
        return bool(found["tasks"]) and all(task["state"] == "RUNNING" for task in found["tasks"])

    def delete(self, connector: str) -> None:
        self.ask("DELETE", f"/connectors/{connector}")
        self.wait(lambda: self.ask("GET", f"/connectors/{connector}/status")[0] == 404, f"{connector} is deleted")

    # --- what it costs ---

    def processes(self) -> list[int]:
        """It, and all below it."""
        assert self._process is not None
        parents: dict[int, int] = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal():
                try:
                    parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                except (OSError, IndexError):
                    continue
        found = {self._process.pid}
        while more := {pid for pid, parent in parents.items() if parent in found} - found:
            found |= more
        return sorted(found)

    def memory_mb(self) -> float:
        """Each page once: what several processes share counts as their parts of it."""
        total = 0
        for pid in self.processes():
            try:
                lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            except OSError:
                continue
            total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
        return total / 1000

    def processor_s(self) -> float:
        total = 0.0
        for pid in self.processes():
            try:
                words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            total += (int(words[11]) + int(words[12])) / _TICKS
        return total

    def stop(self, sign: int = signal.SIGTERM) -> None:
        if self._process is not None:
            below = self.processes()
            self._process.send_signal(sign)
            try:
                self._process.wait(120)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            for pid in below[1:]:
                try:
                    if Path(f"/proc/{pid}/stat").exists() and sign == signal.SIGKILL:
                        os.kill(pid, signal.SIGKILL)
                except OSError:
                    continue
            self._process = None


class Ottla(Worker):
    name = "ottla"

    def __init__(self, bootstrap: str, directory: Path, **settings: str) -> None:
        super().__init__(bootstrap, directory)
        self._settings |= {"file.allowed.paths": str(directory), **settings}

    def command(self, file: Path) -> list[str]:
        return [sys.executable, "-m", "ottla.cli.main", "connect", "start", "--config", str(file)]


class KafkaConnect(Worker):
    """With Debezium's plug-ins, each in its own directory, and a heap of 1 GB, as Spark's Java process has."""

    name = "kafka"

    def __init__(self, bootstrap: str, directory: Path) -> None:
        super().__init__(bootstrap, directory)
        plugins = self._directory / "plugins"
        plugins.mkdir()
        (plugins / "postgres").symlink_to(libraries(debezium.VERSION, debezium._POM, "debezium-postgres"))
        (plugins / "jdbc").symlink_to(libraries(JDBC_SINK, _POM, "debezium-jdbc"))
        self._settings |= {"plugin.path": str(plugins)}

    def command(self, file: Path) -> list[str]:
        options = ["-Xms256m", "-Xmx1g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
        main = "org.apache.kafka.connect.cli.ConnectDistributed"
        return ["java", *options, "-cp", f"{connect_libraries()}/*", main, str(file)]
