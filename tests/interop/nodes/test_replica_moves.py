"""Replicas move between the log directories of a node, with Apache Kafka's tools and from its directories to ours."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from ottla.testing.node import RunningNode
from tests.interop.apache_kafka import ApacheKafka
from tests.interop.nodes.test_node_tools import Tools

pytestmark = pytest.mark.interop

WAIT_S = 60.0
SLOW_BYTES_PER_S = 50_000


def log_dirs(directory: Path) -> dict[str, object]:
    return {"log.dirs": f"{directory}/data,{directory}/more"}


@contextmanager
def kafka_in(directory: Path) -> Iterator[Any]:
    with ApacheKafka(directory, config=log_dirs(directory)) as kafka:
        yield kafka


@contextmanager
def ottla_in(directory: Path) -> Iterator[Any]:
    with RunningNode(directory, config=log_dirs(directory)) as node:
        yield node


def eventually(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < deadline, "it did not come to be"
        time.sleep(0.2)


def reassign(tool: Tools, directory: Path, home: str, action: str, *options: str) -> str:
    """Runs kafka-reassign-partitions for the one partition of `orders`."""
    plan = {"topic": "orders", "partition": 0, "replicas": [1], "log_dirs": [f"{directory}/{home}"]}
    file = directory / "plan.json"
    file.write_text(json.dumps({"version": 1, "partitions": [plan]}))
    return tool("kafka-reassign-partitions", f"--reassignment-json-file {file} {action}", *options)


def replicas(tool: Tools, directory: Path) -> list[tuple[str, bool, bool]]:
    """Where kafka-log-dirs sees the partition: the directory, whether it is a future one, whether that is behind."""
    printed = tool("kafka-log-dirs", "--describe --topic-list orders").splitlines()
    (broker,) = json.loads(next(line for line in printed if line.startswith("{")))["brokers"]
    return sorted(
        (Path(place["logDir"]).name, replica["isFuture"], replica["offsetLag"] > 0)
        for place in broker["logDirs"]
        if not place["error"]
        for replica in place["partitions"]
        if replica["partition"] == "orders-0"
    )


def home_of(directory: Path) -> str:
    """The directory that has the partition now."""
    (home,) = (path.parent.name for path in directory.glob("*/orders-0"))
    return home


def elsewhere(home: str) -> str:
    return {"data": "more", "more": "data"}[home]


def write(bootstrap: str, first: int, count: int, size: int = 1000) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "compression.type": "none"})
    for number in range(first, first + count):
        producer.produce("orders", value=str(number).encode().ljust(size), partition=0)
        producer.poll(0)
    assert producer.flush(WAIT_S) == 0


def read(bootstrap: str) -> list[int]:
    """The numbers in all records of the partition, in the order of their offsets, which have no gaps."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "nobody", "enable.auto.commit": False})
    try:
        low, high = consumer.get_watermark_offsets(TopicPartition("orders", 0), timeout=WAIT_S)
        consumer.assign([TopicPartition("orders", 0, low)])
        messages: list[Any] = []
        while len(messages) < high - low:
            some = consumer.consume(min(high - low - len(messages), 10_000), timeout=WAIT_S)
            assert some, "records are missing"
            messages += some
        assert [message.offset() for message in messages] == list(range(low, high))
        return [int(message.value()) for message in messages]
    finally:
        consumer.close()


class BusyProducer(threading.Thread):
    """Writes numbers, one after the other, until it is told to stop."""

    def __init__(self, bootstrap: str, first: int) -> None:
        super().__init__(daemon=True)
        self.next = first
        self._producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 1})
        self._is_over = threading.Event()

    def run(self) -> None:
        while not self._is_over.is_set():
            self._producer.produce("orders", value=str(self.next).encode().ljust(100), partition=0)
            self._producer.poll(0)
            self.next += 1
            if self.next % 20 == 0:
                self._is_over.wait(0.01)

    def end(self) -> None:
        self._is_over.set()
        self.join(WAIT_S)
        assert self._producer.flush(WAIT_S) == 0


@pytest.mark.parametrize("target", [ottla_in, kafka_in], ids=["ottla", "apache-kafka"])
def test_a_topic_moves_while_a_producer_writes(tmp_path: Path, target: Any) -> None:
    with target(tmp_path) as node:
        tool = Tools(node.bootstrap)
        tool("kafka-topics", "--create --topic orders --config segment.bytes=1048576")
        write(node.bootstrap, 0, 5_000)
        old = home_of(tmp_path)
        busy = BusyProducer(node.bootstrap, 5_000)
        busy.start()
        slowly = ("--replica-alter-log-dirs-throttle", str(SLOW_BYTES_PER_S))
        printed = reassign(tool, tmp_path, elsewhere(old), "--execute", *slowly)
        assert "Successfully started" in printed, printed
        assert replicas(tool, tmp_path) == sorted([(old, False, False), (elsewhere(old), True, True)])
        assert "is still in progress" in reassign(tool, tmp_path, elsewhere(old), "--verify", "--preserve-throttles")
        fast = ("--additional", "--replica-alter-log-dirs-throttle", "1000000000")
        reassign(tool, tmp_path, elsewhere(old), "--execute", *fast)
        eventually(lambda: home_of_or_none(tmp_path) == elsewhere(old))
        busy.end()
        assert replicas(tool, tmp_path) == [(elsewhere(old), False, False)]
        assert "completed successfully" in reassign(tool, tmp_path, elsewhere(old), "--verify")
        assert read(node.bootstrap) == list(range(busy.next))
        assert not list(tmp_path.glob("*/orders-0.*-future"))


def home_of_or_none(directory: Path) -> str | None:
    """None in the moment in which two directories, or none, have the partition's name."""
    homes = [path.parent.name for path in directory.glob("*/orders-0")]
    return homes[0] if len(homes) == 1 else None


@pytest.mark.parametrize("ending", ["stop", "kill"])
def test_a_half_finished_move_goes_from_kafka_to_us_and_back(tmp_path: Path, ending: str) -> None:
    with kafka_in(tmp_path) as kafka:
        tool = Tools(kafka.bootstrap)
        tool("kafka-topics", "--create --topic orders --config segment.bytes=1048576")
        write(kafka.bootstrap, 0, 5_000)
        old = home_of(tmp_path)
        begin_slowly(tool, tmp_path, elsewhere(old))
        getattr(kafka, ending)()

    with ottla_in(tmp_path) as node:
        tool = Tools(node.bootstrap)
        assert home_of(tmp_path) == old
        write(node.bootstrap, 5_000, 1_000)
        lift_throttle(tool)
        eventually(lambda: home_of_or_none(tmp_path) == elsewhere(old))
        assert read(node.bootstrap) == list(range(6_000))
        begin_slowly(tool, tmp_path, old)
        getattr(node, ending)()

    with kafka_in(tmp_path) as kafka:
        tool = Tools(kafka.bootstrap)
        assert home_of(tmp_path) == elsewhere(old)
        write(kafka.bootstrap, 6_000, 1_000)
        lift_throttle(tool)
        eventually(lambda: home_of_or_none(tmp_path) == old)
        assert replicas(tool, tmp_path) == [(old, False, False)]
        assert read(kafka.bootstrap) == list(range(7_000))
        kafka.stop()

    with ottla_in(tmp_path) as node:
        assert read(node.bootstrap) == list(range(7_000))
        assert replicas(Tools(node.bootstrap), tmp_path) == [(old, False, False)]


def begin_slowly(tool: Tools, directory: Path, home: str) -> None:
    reassign(tool, directory, home, "--execute", "--replica-alter-log-dirs-throttle", str(SLOW_BYTES_PER_S))
    future = directory / home

    def has_begun() -> bool:
        return any(log.stat().st_size for log in future.glob("orders-0.*-future/*.log"))

    eventually(has_begun)


def lift_throttle(tool: Tools) -> None:
    name = "replica.alter.log.dirs.io.max.bytes.per.second"
    tool("kafka-configs", f"--alter --entity-type brokers --entity-name 1 --delete-config {name}")
