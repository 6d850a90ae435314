"""A streaming query without Spark: tasks and drivers as Spark would call them, each killed where a test says."""

import os
import signal
from collections.abc import Callable, Iterable, Sequence
from multiprocessing import get_context
from secrets import token_hex
from time import monotonic
from typing import Any
from unittest.mock import patch

import pyarrow as pa

import ottla
from ottla.client.admin.transaction_states import TransactionState
from ottla.spark.sink.cluster_access import ClusterAccess
from ottla.spark.sink.committer import Committer
from ottla.spark.sink.names import SinkNames
from ottla.spark.sink.rows import Routing
from ottla.spark.sink.task_writer import Task, TaskResult, stage_task, write_task
from ottla.testing import Broker

COLUMNS = ("key", "value")


class SinkScene:
    """One query. `run` counts its starts. `is_staged`: its tasks leave their rows in the staging topic."""

    def __init__(self, broker: Broker, topic: str, *, is_staged: bool = False) -> None:
        self.is_staged = is_staged
        self.broker = broker
        self.topic = topic
        self.query_id = f"query-{token_hex(6)}"
        self.run = 1
        self.settings: dict[str, object] = {"bootstrap.servers": broker.bootstrap}
        self.routing = Routing(COLUMNS, topic)
        self.names = SinkNames()

    # --- tasks ---

    def task(
        self, batch_id: int, index: int, values: Iterable[int], *, attempt: int = 0, inline_bytes: int = 0
    ) -> TaskResult:
        if self.is_staged:
            return stage_task(index, self.settings, self.routing, rows(values), inline_bytes=inline_bytes)
        task = Task(self.query_id, f"run-{self.run}", batch_id, index, attempt, self.names)
        return write_task(task, self.settings, self.routing, rows(values), inline_bytes=inline_bytes)

    def tasks(self, batch_id: int, values: Sequence[int], count: int, **options: Any) -> list[TaskResult]:
        """The values of a batch, divided among so many tasks."""
        return [self.task(batch_id, index, values[index::count], **options) for index in range(count)]

    # --- drivers ---

    def committer(self, **options: Any) -> Committer:
        return Committer(self.settings, self.query_id, self.routing, names=self.names, **options)

    def commit(self, batch_id: int, results: Sequence[TaskResult], **options: Any) -> None:
        committer = self.committer(**options)
        try:
            committer.commit(batch_id, f"run-{self.run}", results)
        finally:
            committer.close()

    def commit_and_be_killed(self, batch_id: int, results: Sequence[TaskResult], where: "Where") -> None:
        """A driver in a process of its own that is killed there, as `kill -9` does it."""

        def drive() -> None:
            with where.armed():
                self.commit(batch_id, results)
            os._exit(0)  # the test fails: it was not killed

        die(drive)
        self.run += 1

    # --- what there is ---

    def committed(self) -> list[int]:
        """The values that a read-committed reader sees, once nothing is open any more."""
        self.wait_for_markers()
        return sorted(read(self.broker, self.topic))

    def wait_for_markers(self) -> None:
        """Apache Kafka answers the end of a transaction before it has written that to the partitions."""
        ending = [TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT]
        deadline_s = monotonic() + 60
        with ClusterAccess(self.settings) as access:
            pattern = f"ottla-spark[.]({self.query_id}|write)[.].*"
            while access.list_transactions(states=ending, transactional_id_pattern=pattern):
                assert monotonic() < deadline_s, "a transaction does not end"

    def open_transactions(self) -> list[str]:
        with ClusterAccess(self.settings) as access:
            pattern = f"{self.names.task_prefix(self.query_id)}.*"
            found = access.list_transactions(states=[TransactionState.ONGOING], transactional_id_pattern=pattern)
        return [one.transactional_id for one in found]


class Where:
    """Before or after the nth call of a method, in the process that is to be killed."""

    def __init__(self, owner: type, name: str, *, nth: int = 1, after: bool = False) -> None:
        self.owner, self.name, self.nth, self.after = owner, name, nth, after

    def armed(self) -> Any:
        real = getattr(self.owner, self.name)
        calls = 0

        def deadly(*args: Any, **keywords: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == self.nth and not self.after:
                os.kill(os.getpid(), signal.SIGKILL)
            outcome = real(*args, **keywords)
            if calls == self.nth:
                os.kill(os.getpid(), signal.SIGKILL)
            return outcome

        return patch.object(self.owner, self.name, deadly)


def die(work: Callable[[], None]) -> None:
    """Does something in another process, which must be killed by it."""
    process = get_context("fork").Process(target=work)
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL, f"it ended with {process.exitcode}"


def rows(values: Iterable[int]) -> list[pa.RecordBatch]:
    texts = [str(value).encode() for value in values]
    return (
        [pa.record_batch({"key": pa.array(texts, pa.binary()), "value": pa.array(texts, pa.binary())})] if texts else []
    )


def read(broker: Broker, topic: str, isolation_level: str = "read_committed") -> list[int]:
    return [int(record.value) for record in records(broker, topic, isolation_level)]


def records(broker: Broker, topic: str, isolation_level: str = "read_committed") -> list[Any]:
    """All that is in a topic now."""
    with ottla.Consumer(bootstrap_servers=broker.bootstrap, isolation_level=isolation_level) as consumer:
        partitions = [ottla.TopicPartition(topic, one.partition) for one in consumer.partitions_for(topic)]
        consumer.assign(partitions)
        consumer.seek_to_beginning(*partitions)
        ends = consumer.end_offsets(partitions)
        found: list[Any] = []
        while any(consumer.position(one) < ends[one] for one in partitions):
            found += consumer.poll(0.2)
        return found
