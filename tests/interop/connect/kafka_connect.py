"""Runs Kafka Connect and MirrorMaker 2 beside us, from the jars on Maven Central.

    with ConnectCluster(directory, bootstrap, workers=2) as connect:
        connect.create("source", {"connector.class": FILE_SOURCE, "file": path, "topic": "lines"})
        connect.kill(1)     # as a crash would
        connect.start(1)

A worker is a Java process with a file of settings and a REST address. Workers of one `ConnectCluster` are one group,
whose offsets, settings and states are in three topics of the brokers. Every wait has a limit, and what the workers
printed is shown when something fails.
"""

import json
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from ottla.testing.free_ports import free_ports
from tests.interop.apache_kafka import VERSION, ApacheKafkaError, libraries

FILE_SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
FILE_SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
WAIT_S = 600.0
_POLL_S = 0.3
_REQUEST_S = 60.0
_POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion><groupId>ottla</groupId><artifactId>interop</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>connect-runtime</artifactId><version>{version}</version></dependency>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>connect-file</artifactId><version>{version}</version></dependency>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>connect-mirror</artifactId><version>{version}</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version></dependency>
  </dependencies>
</project>
"""
_JAVA = ("-Xms64m", "-Xmx400m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


def connect_libraries() -> Path:
    """Where Connect's jars are, fetched with Maven the first time."""
    return libraries(VERSION, _POM, "apache-kafka-connect")


def connect_process(main_class: str, settings: Mapping[str, object], path: Path) -> subprocess.Popen[bytes]:
    """Starts a program of Connect's jars with these settings, written to `path`. It prints to a file beside that."""
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    jars = connect_libraries()
    with path.with_suffix(".log").open("ab") as log:
        return subprocess.Popen(
            ["java", *_JAVA, "-cp", f"{jars}/*", main_class, str(path)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )


def end_of_output(path: Path) -> str:
    """What the program with these settings printed last, without the settings that its clients tell of themselves."""
    lines = path.with_suffix(".log").read_text(errors="replace").splitlines() if path.exists() else []
    return "\n".join([line for line in lines if " WARN " in line or " ERROR " in line or "xception" in line][-40:])


class ConnectCluster:
    """Distributed workers, numbered from 0, whose source connectors write exactly once.

    A worker that is gone is noticed after its session; its tasks are then given to the others at once.
    """

    def __init__(self, directory: Path, bootstrap: str, workers: int, *, replicas: int) -> None:
        ports = free_ports(workers)
        self._rest = [f"http://127.0.0.1:{port}" for port in ports]
        self._files = [directory / f"worker-{number}.properties" for number in range(workers)]
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._settings: dict[str, object] = {
            "bootstrap.servers": bootstrap,
            "group.id": "connect",
            "exactly.once.source.support": "enabled",
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
            "offset.storage.topic": "connect-offsets",
            "offset.storage.partitions": 3,
            "offset.storage.replication.factor": replicas,
            "config.storage.topic": "connect-configs",
            "config.storage.replication.factor": replicas,
            "status.storage.topic": "connect-status",
            "status.storage.partitions": 2,
            "status.storage.replication.factor": replicas,
            "offset.flush.interval.ms": 1000,
            "session.timeout.ms": 10000,
            "heartbeat.interval.ms": 1000,
            "scheduled.rebalance.max.delay.ms": 0,
            "consumer.isolation.level": "read_committed",
        }

    def __enter__(self) -> "ConnectCluster":
        try:
            for number in range(len(self._files)):
                self.start(number)
        except BaseException:
            self._close(has_failed=True)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close(has_failed=kind is not None)

    def _close(self, *, has_failed: bool) -> None:
        for number in list(self._processes):
            self.kill(number)
        if has_failed:
            for path in self._files:
                print(f"{path.stem} printed:\n{end_of_output(path)}")

    def start(self, number: int) -> None:
        """Starts a worker; `wait_until_serving` waits until it answers."""
        assert number not in self._processes, "the worker runs already"
        settings = {**self._settings, "listeners": self._rest[number], "client.id": f"worker-{number}"}
        self._processes[number] = connect_process(
            "org.apache.kafka.connect.cli.ConnectDistributed", settings, self._files[number]
        )

    @property
    def url(self) -> str:
        """Of the first worker's REST interface."""
        return self._rest[0]

    def kill(self, number: int) -> None:
        """As `kill -9`."""
        process = self._processes.pop(number)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """What some worker that runs answers; None if it has nothing to say or cannot yet."""
        for number in self._processes:
            request = urllib.request.Request(
                self._rest[number] + path,
                method=method,
                data=None if body is None else json.dumps(body).encode(),
                headers={"Content-Type": "application/json"},
            )
            try:
                with urllib.request.urlopen(request, timeout=_REQUEST_S) as response:
                    return json.loads(response.read() or "{}")
            except urllib.error.HTTPError as refused:
                text = refused.read().decode(errors="replace")
                if refused.code not in (404, 409, 500, 503):  # a rebalance, or a topic that is still being read
                    raise ApacheKafkaError(f"{method} {path}: {refused.code} {text}") from refused
            except OSError:
                pass
        return None

    def wait(self, look: Callable[[], object], what: str) -> Any:
        """What `look` returns as soon as that is true."""
        ends_s = time.monotonic() + WAIT_S
        while not (found := look()):
            for number, process in self._processes.items():
                assert process.poll() is None, f"worker {number} ended: {process.returncode}"
            assert time.monotonic() < ends_s, f"not after {WAIT_S:.0f} s: {what}"
            time.sleep(_POLL_S)
        return found

    def create(self, name: str, settings: Mapping[str, object]) -> None:
        """Creates a connector, and returns when its task runs."""
        given = {key: str(value) for key, value in settings.items()}
        self.wait(lambda: self.ask("PUT", f"/connectors/{name}/config", given), f"connector {name} is created")
        self.wait(lambda: self.worker_of(name), f"connector {name} runs")

    def worker_of(self, name: str) -> str:
        """The address of the worker that runs the connector's only task; "" if none does."""
        status = self.ask("GET", f"/connectors/{name}/status")
        tasks = status["tasks"] if status else []
        failed = [task["trace"] for task in tasks if task["state"] == "FAILED"]
        assert not failed, f"{name} failed: {failed[0]}"
        running = [task["worker_id"] for task in tasks if task["state"] == "RUNNING"]
        return running[0] if running else ""

    def offsets_of(self, name: str) -> list[dict[str, Any]]:
        """Where a connector is: `partition` and `offset` of each of its partitions."""
        found = self.ask("GET", f"/connectors/{name}/offsets")
        return found["offsets"] if found else []

    def number_of(self, worker: str) -> int:
        """Of the worker with that address."""
        return next(at for at, address in enumerate(self._rest) if address.endswith(worker))
