"""Runs Apache Kafka beside us: the real node and the real tools, from the jars on Maven Central.

    with ApacheKafka(config={"num.partitions": 3}) as kafka:
        kafka.tool("kafka-topics", "--bootstrap-server", kafka.bootstrap, "--create", "--topic", "orders")

Theory of operation: a node is a directory (`server.properties`, `data/`, `node.log`) and at most one Java process on
it. Entering formats `data/` unless it already holds a formatted directory, so the same directory can be started,
stopped or killed, handed to another implementation, and started again. A node counts as started once it accepts a
connection: KRaft brokers open their listener last. Every wait has a limit, and what went wrong is told with the end
of the node's own log.

Needs `java` (17 or later), and `mvn` once per version to fill the cache in `$XDG_CACHE_HOME`.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import TracebackType

from ottla.testing.free_ports import free_ports

VERSION = "4.3.1"
CLUSTER_ID = "b3R0bGEtaW50ZXJvcC0wMQ"
START_TIMEOUT_S = 300
STOP_TIMEOUT_S = 300
TOOL_TIMEOUT_S = 300
QUICK_START = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")  # for a tool that is done before the compiler has begun

POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion><groupId>ottla</groupId><artifactId>interop</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{version}</version></dependency>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId><version>{version}</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version></dependency>
  </dependencies>
</project>
"""

MAIN_CLASSES = {
    "kafka-acls": "org.apache.kafka.tools.AclCommand",
    "kafka-broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "kafka-cluster": "org.apache.kafka.tools.ClusterTool",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-console-share-consumer": "org.apache.kafka.tools.consumer.ConsoleShareConsumer",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-consumer-perf-test": "org.apache.kafka.tools.ConsumerPerformance",
    "kafka-delegation-tokens": "org.apache.kafka.tools.DelegationTokenCommand",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "kafka-e2e-latency": "org.apache.kafka.tools.EndToEndLatency",
    "kafka-features": "org.apache.kafka.tools.FeatureCommand",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-groups": "org.apache.kafka.tools.GroupsCommand",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "kafka-producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-replica-verification": "org.apache.kafka.tools.ReplicaVerificationTool",
    "kafka-share-groups": "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
    "kafka-storage": "kafka.tools.StorageTool",
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-transactions": "org.apache.kafka.tools.TransactionsCommand",
    "kafka-verifiable-consumer": "org.apache.kafka.tools.VerifiableConsumer",
    "kafka-verifiable-producer": "org.apache.kafka.tools.VerifiableProducer",
}


class ApacheKafkaError(RuntimeError):
    """A node or a tool did not do what was asked; the message carries what it printed."""


@cache
def libraries(version: str = VERSION, pom: str = POM, name: str = "apache-kafka") -> Path:
    """The directory of the version's jars, downloaded with Maven the first time.

    `pom` has a place for the version. `name` is what these jars are kept as: every pom has one of its own.
    """
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / f"{name}-{version}"
    ready, jars = home / "ready", home / "libs"
    if not ready.exists():
        if shutil.which("mvn") is None:
            raise ApacheKafkaError(f"{name} {version} is not in {home}, and there is no `mvn` to download it with")
        home.mkdir(parents=True, exist_ok=True)
        with (home / "lock").open("w") as lock:  # Several workers may come here at once; the last to write would win.
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not ready.exists():
                (home / "pom.xml").write_text(pom.format(version=version))
                copy = ["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={jars}"]
                subprocess.run(copy, cwd=home, check=True, timeout=900)
                ready.touch()
    return jars


def java(
    *arguments: str,
    version: str = VERSION,
    input: str | None = None,
    check: bool = True,
    cwd: Path | None = None,
    timeout_s: float = TOOL_TIMEOUT_S,
    java_options: tuple[str, ...] = QUICK_START,
) -> subprocess.CompletedProcess[str]:
    """Runs Java with Kafka's jars on the class path; raises `ApacheKafkaError` on a bad exit unless told not to."""
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
    command = ["java", *java_options, quiet, "-cp", f"{libraries(version)}/*", *arguments]
    done = subprocess.run(command, input=input, capture_output=True, text=True, cwd=cwd, timeout=timeout_s)
    if check and done.returncode != 0:
        raise ApacheKafkaError(f"{' '.join(arguments)} exited with {done.returncode}\n{done.stdout}{done.stderr}")
    return done


class ApacheKafka:
    """One combined broker and controller.

    `config` overrides or adds settings, and None takes one away. A given `directory` outlives the node.
    """

    # One with thousands of partitions may be given more.
    start_timeout_s: float = START_TIMEOUT_S
    stop_timeout_s: float = STOP_TIMEOUT_S

    def __init__(
        self,
        directory: Path | None = None,
        *,
        config: Mapping[str, object] | None = None,
        version: str = VERSION,
        java_options: tuple[str, ...] = ("-Xms256m", "-Xmx512m", "-XX:+UseG1GC"),
    ) -> None:
        self._temporary = directory is None
        self.directory = Path(tempfile.mkdtemp(prefix="apache-kafka-")) if directory is None else directory
        self.data = self.directory / "data"
        self.version = version
        self.java_options = java_options
        port, controller_port = free_ports(2)
        self.bootstrap = f"127.0.0.1:{port}"
        self._port = port
        self._process: subprocess.Popen[bytes] | None = None
        self.config: dict[str, object] = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
            "listeners": f"PLAINTEXT://{self.bootstrap},CONTROLLER://127.0.0.1:{controller_port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": self.data,
            "offsets.topic.replication.factor": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "share.coordinator.state.topic.replication.factor": 1,
            "share.coordinator.state.topic.min.isr": 1,
            "group.initial.rebalance.delay.ms": 0,
            **(config or {}),
        }

    def __enter__(self) -> ApacheKafka:
        try:
            self.format()
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
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def _properties(self) -> Path:
        return self.directory / "server.properties"

    @property
    def _log(self) -> Path:
        return self.directory / "node.log"

    def format(self, *options: str) -> None:
        """Writes the settings, and formats the data directory unless it is formatted already."""
        self.directory.mkdir(parents=True, exist_ok=True)
        given = ((key, value) for key, value in self.config.items() if value is not None)
        self._properties.write_text("".join(f"{key}={value}\n" for key, value in given))
        if not (self.data / "meta.properties").exists():
            self.tool("kafka-storage", "format", "-t", CLUSTER_ID, "-c", str(self._properties), *options)

    def start(self) -> None:
        """Starts the node and returns once it serves clients."""
        assert self._process is None, "the node is running already"
        command = ["java", *self.java_options, "-cp", f"{libraries(self.version)}/*"]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "kafka.Kafka", str(self._properties)], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        deadline = time.monotonic() + self.start_timeout_s
        while not self._accepts_connections():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise ApacheKafkaError(f"the node did not start\n{self._end_of_log()}")
            time.sleep(0.05)

    def stop(self) -> None:
        """Stops the node cleanly: it flushes, writes its checkpoints and the clean-shutdown marker."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Kills the node as a crash would: nothing is flushed or written."""
        self._end(signal.SIGKILL)

    def close(self) -> None:
        """Ends the node if it still runs; removes the directory if it was ours."""
        if self._process is not None:
            self.kill()
        if self._temporary:
            shutil.rmtree(self.directory, ignore_errors=True)

    def tool(
        self,
        name: str,
        *arguments: str,
        input: str | None = None,
        check: bool = True,
        cwd: Path | None = None,
        timeout_s: float = TOOL_TIMEOUT_S,
    ) -> subprocess.CompletedProcess[str]:
        """Runs one of Kafka's command-line tools by the name of its script."""
        main_class = MAIN_CLASSES[name]
        return java(
            main_class, *arguments, version=self.version, input=input, check=check, cwd=cwd, timeout_s=timeout_s
        )

    def _accepts_connections(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self._port), timeout=1).close()
        except OSError:
            return False
        return True

    def _end(self, how: signal.Signals) -> None:
        assert self._process is not None, "the node is not running"
        self._process.send_signal(how)
        try:
            self._process.wait(self.stop_timeout_s)
        except subprocess.TimeoutExpired as expired:
            self._process.kill()
            self._process.wait()
            raise ApacheKafkaError(f"the node did not stop on {how.name}\n{self._end_of_log()}") from expired
        finally:
            self._process = None

    def _end_of_log(self) -> str:
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-20:])
