"""Runs the oldest Apache Kafka that our clients speak to, with the ZooKeeper that it needs.

    with OldKafka() as kafka:
        ottla.Producer(bootstrap_servers=kafka.bootstrap)

Both processes live in one temporary directory, which goes with them. A broker of that time opens its listener before it
has registered, so it counts as started when its metadata names a broker.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from ottla import Admin
from ottla.client.errors import KafkaError
from ottla.testing.free_ports import free_ports
from tests.interop.apache_kafka import START_TIMEOUT_S, ApacheKafkaError, libraries

VERSION = "2.1.1"
_POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion><groupId>ottla</groupId><artifactId>interop</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.12</artifactId><version>{version}</version></dependency>
    <dependency><groupId>org.apache.zookeeper</groupId><artifactId>zookeeper</artifactId><version>3.5.9</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version></dependency>
  </dependencies>
</project>
"""
"""A newer ZooKeeper than that Kafka came with, whose client does not find `127.0.0.1` with a Java of today."""
_SETTINGS = """\
broker.id=1
listeners=PLAINTEXT://{bootstrap}
zookeeper.connect={zookeeper}
zookeeper.connection.timeout.ms=60000
log.dirs={directory}/data
num.partitions=2
offsets.topic.num.partitions=4
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
"""


class OldKafka:
    """One broker."""

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="old-kafka-"))
        port, zookeeper_port = free_ports(2)
        self.bootstrap = f"127.0.0.1:{port}"
        self._zookeeper_port = zookeeper_port
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> OldKafka:
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for process in reversed(self._processes):
            process.kill()
            process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _start(self) -> None:
        zookeeper = f"127.0.0.1:{self._zookeeper_port}"
        server_main = "org.apache.zookeeper.server.ZooKeeperServerMain"
        self._run(server_main, str(self._zookeeper_port), str(self.directory / "zookeeper"))
        properties = self.directory / "server.properties"
        properties.write_text(_SETTINGS.format(bootstrap=self.bootstrap, zookeeper=zookeeper, directory=self.directory))
        self._run("kafka.Kafka", str(properties))
        deadline_s = time.monotonic() + START_TIMEOUT_S
        with Admin(bootstrap_servers=self.bootstrap, default_api_timeout_ms=2000, request_timeout_ms=1000) as admin:
            while not self._has_registered(admin):
                is_gone = any(process.poll() is not None for process in self._processes)
                if is_gone or time.monotonic() > deadline_s:
                    raise ApacheKafkaError(f"Kafka {VERSION} did not start\n{self._log.read_text()[-3000:]}")
                time.sleep(0.1)

    @property
    def _log(self) -> Path:
        return self.directory / "node.log"

    def _run(self, *words: str) -> None:
        options = ["-Xmx256m", "-XX:+UseSerialGC", "-Dzookeeper.admin.enableServer=false"]
        command = ["java", *options, "-cp", f"{libraries(VERSION, _POM)}/*", *words]
        with self._log.open("ab") as log:
            self._processes.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log))

    def _has_registered(self, admin: Admin) -> bool:
        try:
            return admin.describe_cluster().controller is not None
        except KafkaError:
            return False
