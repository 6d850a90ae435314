"""Java's consumer, librdkafka's and ours in one group: partitions change hands, and none is left unread.

With `OTTLA_TEST_TARGET=apache-kafka` the coordinator is Apache Kafka's.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.interop.apache_kafka import MAIN_CLASSES, QUICK_START, libraries
from tests.interop.groups.group_reader import SESSION_TIMEOUT_MS
from tests.interop.target import Target, a_target

pytestmark = pytest.mark.interop

PARTITIONS = 6
PATIENCE_S = 90
END_TIMEOUT_S = 30
JAVA_ASSIGNORS = {
    "range": "org.apache.kafka.clients.consumer.RangeAssignor",
    "roundrobin": "org.apache.kafka.clients.consumer.RoundRobinAssignor",
    "cooperative-sticky": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
}
QUICK_SESSIONS = {
    "group.consumer.min.session.timeout.ms": SESSION_TIMEOUT_MS,
    "group.consumer.session.timeout.ms": SESSION_TIMEOUT_MS,
    "group.consumer.min.heartbeat.interval.ms": 1000,
    "group.consumer.heartbeat.interval.ms": 1000,
    "group.initial.rebalance.delay.ms": 0,
    "group.consumer.migration.policy": "bidirectional",
}


@pytest.fixture(scope="module")
def node() -> Iterator[Target]:
    with a_target(**{name.replace(".", "_"): value for name, value in QUICK_SESSIONS.items()}) as running:
        yield running


class Reader:
    """One consumer's process. `read` is what it has read so far: (partition, offset) to value."""

    def __init__(self, kind: str, bootstrap: str, group: str, topic: str, strategy: str) -> None:
        self.kind = kind
        self.read: dict[tuple[int, int], str] = {}
        if kind == "java":
            command = _java_command(bootstrap, group, topic, strategy)
        else:
            script = Path(__file__).with_name("group_reader.py")
            command = [sys.executable, str(script), kind, bootstrap, group, topic, strategy]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self._thread = Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if self.kind == "java":
                told = json.loads(line)
                if told["name"] == "record_data":
                    self.read[told["partition"], told["offset"]] = told["value"]
            else:
                partition, offset, value = line.split()
                self.read[int(partition), int(offset)] = value

    def end(self, how: signal.Signals) -> None:
        """SIGTERM: it leaves its group. SIGKILL: it is missed after its session timeout."""
        self.process.send_signal(how)
        try:
            self.process.wait(END_TIMEOUT_S)
        finally:
            self.process.kill()
            self._thread.join(END_TIMEOUT_S)


def _java_command(bootstrap: str, group: str, topic: str, strategy: str) -> list[str]:
    words = f"--bootstrap-server {bootstrap} --topic {topic} --group-id {group} --reset-policy earliest --verbose"
    if strategy == "consumer":
        words += " --group-protocol consumer"
    else:
        words += f" --session-timeout {SESSION_TIMEOUT_MS} --assignment-strategy {JAVA_ASSIGNORS[strategy]}"
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"
    return [
        "java",
        *QUICK_START,
        quiet,
        "-cp",
        f"{libraries()}/*",
        MAIN_CLASSES["kafka-verifiable-consumer"],
        *words.split(),
    ]


class MixedGroup:
    """A topic, and the readers of one group on it."""

    def __init__(self, bootstrap: str, strategy: str, topic: str) -> None:
        self.bootstrap = bootstrap
        self.strategy = strategy
        self.topic = topic
        admin = AdminClient({"bootstrap.servers": bootstrap})
        admin.create_topics([NewTopic(self.topic, PARTITIONS, 1)])[self.topic].result(END_TIMEOUT_S)
        self.readers: list[Reader] = []
        self.gone: list[Reader] = []
        self._producer = Producer({"bootstrap.servers": bootstrap})
        self._rounds = 0

    def start(self, kind: str, strategy: str | None = None) -> Reader:
        reader = Reader(kind, self.bootstrap, f"group-of-{self.topic}", self.topic, strategy or self.strategy)
        self.readers.append(reader)
        return reader

    def end_one(self, kind: str, how: signal.Signals) -> None:
        self.end(next(one for one in self.readers if one.kind == kind), how)

    def end(self, reader: Reader, how: signal.Signals) -> None:
        self.readers.remove(reader)
        self.gone.append(reader)
        reader.end(how)

    def is_read(self) -> None:
        """Writes a record to every partition, and waits until all are read by those that are there now."""
        value = f"round-{self._rounds}"
        self._rounds += 1
        for partition in range(PARTITIONS):
            self._producer.produce(self.topic, value, partition=partition)
        assert self._producer.flush(END_TIMEOUT_S) == 0
        deadline_s = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline_s:
            found = {
                partition
                for reader in self.readers
                for (partition, _), read in list(reader.read.items())
                if read == value
            }
            if len(found) == PARTITIONS:
                return
            assert all(reader.process.poll() is None for reader in self.readers), "a reader has ended"
            time.sleep(0.1)
        missing = set(range(PARTITIONS)) - found
        raise AssertionError(f"nobody reads partitions {sorted(missing)} in {value}")

    def wait_until_all_read(self) -> None:
        """Every reader has partitions: it has read something of a round."""
        deadline_s = time.monotonic() + PATIENCE_S
        while any(not reader.read for reader in self.readers):
            assert time.monotonic() < deadline_s, f"{[one.kind for one in self.readers if not one.read]} read nothing"
            self.is_read()

    def check_nothing_is_missed(self) -> None:
        read: dict[int, set[int]] = {partition: set() for partition in range(PARTITIONS)}
        for reader in (*self.readers, *self.gone):
            for partition, offset in reader.read:
                read[partition].add(offset)
        assert read == {partition: set(range(self._rounds)) for partition in range(PARTITIONS)}

    def close(self) -> None:
        for reader in self.readers:
            reader.end(signal.SIGKILL)


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky", "consumer"])
def test_a_mixed_group_reads_on_through_joins_leaves_and_kills(node: Target, strategy: str) -> None:
    group = MixedGroup(node.bootstrap, strategy, f"mixed-{strategy}")
    try:
        for kind in ("java", "ottla", "confluent"):
            group.start(kind)
        group.wait_until_all_read()
        for first, second in (("java", "ottla"), ("ottla", "confluent"), ("confluent", "java")):
            group.start(first)
            group.wait_until_all_read()
            group.end_one(first, signal.SIGKILL)
            group.is_read()
            group.end_one(second, signal.SIGTERM)
            group.is_read()
            group.start(second)
            group.wait_until_all_read()
        assert {reader.kind for reader in group.readers} == {"java", "ottla", "confluent"}
        group.check_nothing_is_missed()
    finally:
        group.close()


def test_a_group_changes_its_protocol_under_members_of_both(node: Target) -> None:
    """From classic to new when the first member speaks that, and back when the last one has gone."""
    group = MixedGroup(node.bootstrap, "cooperative-sticky", "migrated")
    try:
        classic = [group.start("ottla"), group.start("java")]
        group.wait_until_all_read()
        new = []
        for kind in ("ottla", "java"):
            new.append(group.start(kind, "consumer"))
            group.wait_until_all_read()
        group.end(classic[0], signal.SIGKILL)
        group.is_read()
        group.end(classic[1], signal.SIGTERM)
        group.is_read()
        group.start("ottla")
        group.wait_until_all_read()
        for reader in new:
            group.end(reader, signal.SIGTERM)
            group.is_read()
        group.check_nothing_is_missed()
    finally:
        group.close()
