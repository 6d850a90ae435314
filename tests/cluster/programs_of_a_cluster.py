"""Programs that use a cluster while something happens to it, and Kafka's tools as an operator calls them."""

import time
from threading import Event, Thread
from typing import Any

import pytest

from ottla import Consumer, Producer
from ottla.cli.kafka import run
from tests.cluster.processes_of_a_cluster import ClusterOfProcesses, eventually

PARTITIONS = 3
"""Of the topics that `Writing` writes to."""


class Program:
    """Works in a thread of its own until it is told to stop. What it raises is among its `problems`."""

    def __init__(self, cluster: ClusterOfProcesses, topic: str) -> None:
        self.problems: list[BaseException] = []
        self._cluster = cluster
        self._topic = topic
        self._is_over = Event()
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as problem:
            self.problems.append(problem)

    def _work(self) -> None:
        """Until `_is_over` is set."""
        raise NotImplementedError

    def _end(self) -> None:
        self._is_over.set()
        self._thread.join(60)
        assert self.problems == []


class Writing(Program):
    """An idempotent producer with acks=all that numbers its records."""

    def __init__(self, cluster: ClusterOfProcesses, topic: str) -> None:
        self.acknowledged = 0
        super().__init__(cluster, topic)

    def _work(self) -> None:
        producer = Producer(
            bootstrap_servers=self._cluster.bootstrap,
            acks="all",
            enable_idempotence=True,
            request_timeout_ms=3000,
            delivery_timeout_ms=60_000,
        )
        number = 0
        with producer:
            while not self._is_over.is_set():
                producer.send(self._topic, b"%d" % number, partition=number % PARTITIONS, on_delivery=self._note)
                number += 1
                time.sleep(0.003)

    def _note(self, delivery: Any) -> None:
        problem = delivery.exception()
        if problem is None:
            self.acknowledged += 1
        else:
            self.problems.append(problem)

    def wait_for_more(self, count: int = 60) -> None:
        wanted = self.acknowledged + count
        eventually(lambda: self.acknowledged >= wanted or bool(self.problems), f"{count} more records are acknowledged")
        assert self.problems == []

    def stop(self) -> int:
        """How many were sent, all of which are acknowledged now."""
        self._end()
        return self.acknowledged


class Reading(Program):
    """A group of one that notes all it reads, and commits."""

    def __init__(self, cluster: ClusterOfProcesses, topic: str) -> None:
        self.numbers: list[int] = []
        super().__init__(cluster, topic)

    def _work(self) -> None:
        consumer = Consumer(
            bootstrap_servers=self._cluster.bootstrap,
            group_id=f"of {self._topic}",
            auto_offset_reset="earliest",
        )
        with consumer:
            consumer.subscribe([self._topic])
            while not self._is_over.is_set():
                self.numbers += [int(record.value) for record in consumer.poll(0.2)]

    def finish(self, count: int) -> list[int]:
        """Waits for so many records."""
        eventually(lambda: len(self.numbers) >= count or bool(self.problems), f"{count} records are read")
        self._end()
        return self.numbers


def tool(capsys: pytest.CaptureFixture[str], name: str, cluster: ClusterOfProcesses, *words: str) -> str:
    connection = ["--bootstrap-server", cluster.bootstrap]
    status = run(name, [*words, *connection] if name == "cluster" else [*connection, *words])
    out, err = capsys.readouterr()
    assert status == 0, out + err
    return out


def assert_nothing_is_lost_or_repeated(writing: Writing, reading: Reading) -> None:
    count = writing.stop()
    assert sorted(reading.finish(count)) == list(range(count))
