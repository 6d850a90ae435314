"""Java's console consumers of both protocols in one group on a node of ours, which migrates there and back (KIP-848).

With `OTTLA_TEST_TARGET=apache-kafka` they run against Apache Kafka, which is how these tests are tested.
"""

import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from types import TracebackType

import pytest
from confluent_kafka import Producer

from ottla.wire.messages import ConsumerGroupDescribeRequest, DescribeGroupsRequest, ListGroupsRequest
from tests.interop.apache_kafka import MAIN_CLASSES, QUICK_START, libraries
from tests.interop.group_scenes import Talk
from tests.interop.target import Target, a_target

pytestmark = pytest.mark.interop

WITHIN_S = 60.0
PARTITIONS = 2
GROUP = "java readers"


@pytest.fixture(scope="module")
def node() -> Iterator[Target]:
    with a_target(
        group_initial_rebalance_delay_ms=0,
        group_consumer_min_heartbeat_interval_ms=500,
        group_consumer_heartbeat_interval_ms=500,
    ) as running:
        yield running


class ConsoleConsumer:
    """A process that reads on until it is told to end, in the order of what it prints."""

    def __init__(self, bootstrap: str, protocol: str) -> None:
        options = {"group.id": GROUP, "group.protocol": protocol, "auto.commit.interval.ms": "200"}
        if protocol == "classic":
            options["heartbeat.interval.ms"] = "500"
        given = [word for item in options.items() for word in ("--command-property", "=".join(item))]
        quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
        tool = MAIN_CLASSES["kafka-console-consumer"]
        where = ("--bootstrap-server", bootstrap, "--topic", "lines", "--from-beginning")
        self._process = subprocess.Popen(
            ["java", *QUICK_START, quiet, "-cp", f"{libraries()}/*", tool, *where, *given],
            stdout=subprocess.PIPE,
            text=True,
        )
        self.read: list[str] = []
        self._reader = threading.Thread(target=self._listen, daemon=True)
        self._reader.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        self.read.extend(line.rstrip("\n") for line in iter(self._process.stdout.readline, ""))

    def end(self) -> None:
        """In order: it commits and leaves."""
        self._process.terminate()
        self._process.wait(WITHIN_S)
        self._reader.join(WITHIN_S)

    def __enter__(self) -> "ConsoleConsumer":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait(WITHIN_S)


class Scene:
    def __init__(self, node: Target, stack: ExitStack) -> None:
        self._bootstrap = node.bootstrap
        self._stack = stack
        self._talk = Talk(node.bootstrap)
        stack.callback(self._talk.close)
        self._talk.create_topics(lines=PARTITIONS)
        self._consumers: list[ConsoleConsumer] = []
        self._written: list[str] = []

    def consumer(self, protocol: str) -> ConsoleConsumer:
        self._consumers.append(ConsoleConsumer(self._bootstrap, protocol))
        return self._stack.enter_context(self._consumers[-1])

    def write(self) -> None:
        producer = Producer({"bootstrap.servers": self._bootstrap})
        for partition in range(PARTITIONS):
            for _ in range(10):
                line = f"line {len(self._written)}"
                self._written.append(line)
                producer.produce("lines", line, partition=partition)
        assert producer.flush(WITHIN_S) == 0

    def read_all(self) -> None:
        """Whatever was written, by whoever; the same line twice only from two."""
        self.until(lambda: set(self._written) <= {line for consumer in self._consumers for line in consumer.read})
        for consumer in self._consumers:
            assert len(consumer.read) == len(set(consumer.read))

    def until_shared(self, kind: str, *protocols: int) -> None:
        """The group is of this kind, has members of these types, and each has as many partitions as another."""

        def is_shared() -> bool:
            listed = self._talk.ask(ListGroupsRequest(), 5).groups
            if [group.group_type for group in listed if group.group_id == GROUP] != [kind]:
                return False
            if kind == "classic":
                (group,) = self._talk.ask(DescribeGroupsRequest(groups=[GROUP]), 5).groups
                return group.group_state == "Stable" and len(group.members) == len(protocols)
            (group,) = self._talk.ask(ConsumerGroupDescribeRequest(group_ids=[GROUP]), 1).groups
            shares = [
                sum(len(topic.partitions) for topic in member.assignment.topic_partitions) for member in group.members
            ]
            types = sorted(member.member_type for member in group.members)
            return (
                group.group_state == "Stable"
                and types == sorted(protocols)
                and shares == [PARTITIONS // len(types)] * len(types)
            )

        self.until(is_shared)

    def until(self, is_so: Callable[[], bool]) -> None:
        deadline = time.monotonic() + WITHIN_S
        while not is_so():
            assert time.monotonic() < deadline, [consumer.read for consumer in self._consumers]
            time.sleep(0.1)


CLASSIC, CONSUMER = 0, 1


def test_java_consumers_of_both_protocols_share_a_group(node: Target) -> None:
    with ExitStack() as stack:
        scene = Scene(node, stack)
        old = scene.consumer("classic")
        scene.until_shared("classic", CLASSIC)
        scene.write()
        scene.read_all()
        new = scene.consumer("consumer")
        scene.until_shared("consumer", CLASSIC, CONSUMER)
        scene.write()
        scene.read_all()
        assert new.read, "it has its part"
        old.end()
        scene.until_shared("consumer", CONSUMER)
        scene.write()
        scene.read_all()
        back = scene.consumer("classic")
        scene.until_shared("consumer", CLASSIC, CONSUMER)
        scene.write()
        scene.read_all()
        new.end()
        scene.until_shared("classic", CLASSIC)
        scene.write()
        scene.read_all()
        assert len(back.read) >= PARTITIONS * 10
