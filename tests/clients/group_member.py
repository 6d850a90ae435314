"""A member of a consumer group in a process of its own, so that it can be killed or paused: `GroupMember`.

Run as a program it is the member: it reads, commits what it has read, and prints what happens, a line of JSON each:

    {"has": [0, 1]}              its partitions, whenever they change
    {"read": [[0, 17, "x"]]}     partition, offset and value of records, printed before they are committed
    {"problem": "..."}           something that a member should not see

It leaves the group in order when its standard input ends.
"""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Any

SESSION_TIMEOUT_MS = 5000
WAIT_S = 40.0


class GroupMember:
    """The test's end: a child process and what it has said so far."""

    def __init__(self, client: str, bootstrap: str, group: str, topic: str, **options: Any) -> None:
        self.partitions: set[int] = set()
        self.read: list[tuple[int, int, str]] = []
        self.problems: list[str] = []
        self._is_over = False
        given = {"bootstrap": bootstrap, "group": group, "topic": topic, **options}
        self._process = subprocess.Popen(
            [sys.executable, __file__, client, json.dumps(given)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._lines: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._listen, daemon=True)
        self._reader.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            try:
                self._lines.put(json.loads(line))
            except ValueError:
                return  # Killed in the middle of a line.

    def listen(self) -> None:
        """Takes in what the member has said."""
        while not self._lines.empty():
            said = self._lines.get()
            if "has" in said:
                self.partitions = set(said["has"])
            self.read += [tuple(record) for record in said.get("read", [])]
            if "problem" in said:
                self.problems.append(said["problem"])

    @property
    def has_died(self) -> bool:
        """Ended without being told to."""
        return not self._is_over and self._process.poll() is not None

    def leave(self) -> None:
        """Ends in order."""
        self._is_over = True
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(WAIT_S)
        self._end()

    def kill(self) -> None:
        """As a crash: nothing is committed, nobody is told."""
        self._is_over = True
        self._process.kill()
        self._process.wait(WAIT_S)
        self._end()

    def pause(self) -> None:
        os.kill(self._process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self._process.pid, signal.SIGCONT)

    def _end(self) -> None:
        self._reader.join(WAIT_S)
        self.listen()
        self.partitions = set()

    def __enter__(self) -> "GroupMember":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait(WAIT_S)


# The member itself


def say(**said: Any) -> None:
    print(json.dumps(said), flush=True)


class Ending:
    """Whether the test has closed our standard input."""

    def __init__(self) -> None:
        self.is_here = False
        threading.Thread(target=self._wait, daemon=True).start()

    def _wait(self) -> None:
        sys.stdin.read()
        self.is_here = True


def be_confluent(ending: Ending, options: dict[str, Any]) -> None:
    from confluent_kafka import Consumer, KafkaException

    config = {
        "bootstrap.servers": options["bootstrap"],
        "group.id": options["group"],
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "topic.metadata.refresh.interval.ms": 1000,
        "reconnect.backoff.max.ms": 500,
        "log_level": 0,
    }
    if options.get("protocol") == "consumer":
        config["group.protocol"] = "consumer"
        if "assignor" in options:
            config["group.remote.assignor"] = options["assignor"]
    else:
        config["session.timeout.ms"] = options.get("session_ms", SESSION_TIMEOUT_MS)
        config["heartbeat.interval.ms"] = 300
        config["partition.assignment.strategy"] = options.get("strategy", "range")
    if "instance" in options:
        config["group.instance.id"] = options["instance"]
    consumer = Consumer(config)
    consumer.subscribe([options["topic"]])
    had: set[int] | None = None
    while not ending.is_here:
        messages = consumer.consume(100, 0.1)
        has = {place.partition for place in consumer.assignment()}
        if has != had:
            had = has
            say(has=sorted(has))
        read = [(m.partition(), m.offset(), m.value().decode()) for m in messages if m.error() is None]
        if read:
            say(read=read)
            try:
                consumer.commit(asynchronous=False)
            except KafkaException as problem:
                if not problem.args[0].retriable() and problem.args[0].name() not in EXPECTED:
                    say(problem=str(problem))
    consumer.close()


def be_kafka_python(ending: Ending, options: dict[str, Any]) -> None:
    from kafka import KafkaConsumer
    from kafka.errors import KafkaError

    consumer = KafkaConsumer(
        options["topic"],
        bootstrap_servers=options["bootstrap"],
        group_id=options["group"],
        group_instance_id=options.get("instance"),
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=options.get("session_ms", SESSION_TIMEOUT_MS),
        heartbeat_interval_ms=300,
        reconnect_backoff_max_ms=500,
    )
    had: set[int] | None = None
    while not ending.is_here:
        try:
            # Not for a shorter time: kafka-python 3.0.12 forgets the answer to its SyncGroup if that comes when `poll`
            # has run out of time, and then neither joins again nor is heard of.
            found = consumer.poll(timeout_ms=1000)
        except KafkaError as problem:
            if type(problem).__name__ not in EXPECTED:
                say(problem=repr(problem))
            continue
        has = {place.partition for place in consumer.assignment()}
        if has != had:
            had = has
            say(has=sorted(has))
        read = [(m.partition, m.offset, m.value.decode()) for messages in found.values() for m in messages]
        if read:
            say(read=read)
            try:
                consumer.commit()
            except KafkaError as problem:
                if type(problem).__name__ not in EXPECTED:
                    say(problem=repr(problem))
    consumer.close()


def be_aiokafka(ending: Ending, options: dict[str, Any]) -> None:
    import asyncio
    import logging

    from aiokafka import AIOKafkaConsumer
    from aiokafka.errors import KafkaError

    logging.disable()

    async def read_on() -> None:
        consumer = AIOKafkaConsumer(
            options["topic"],
            bootstrap_servers=options["bootstrap"],
            group_id=options["group"],
            group_instance_id=options.get("instance"),
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=options.get("session_ms", SESSION_TIMEOUT_MS),
            heartbeat_interval_ms=300,
        )
        await consumer.start()
        had: set[int] | None = None
        while not ending.is_here:
            found = await consumer.getmany(timeout_ms=100)
            has = {place.partition for place in consumer.assignment()}
            if has != had:
                had = has
                say(has=sorted(has))
            read = [(m.partition, m.offset, m.value.decode()) for messages in found.values() for m in messages]
            if read:
                say(read=read)
                try:
                    await consumer.commit()
                except KafkaError as problem:
                    if type(problem).__name__ not in EXPECTED:
                        say(problem=repr(problem))
        await consumer.stop()

    asyncio.run(read_on())


EXPECTED = {
    # A rebalance came between reading and committing: whoever has the partition now reads those records again.
    "REBALANCE_IN_PROGRESS", "ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "_NO_OFFSET", "STALE_MEMBER_EPOCH",
    "CommitFailedError", "RebalanceInProgressError", "IllegalGenerationError", "UnknownMemberIdError",
    # The node is being started again.
    "_TIMED_OUT", "_TRANSPORT", "_ALL_BROKERS_DOWN", "_WAIT_COORD", "NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS",
    "KafkaConnectionError", "NodeNotReadyError", "KafkaTimeoutError", "RequestTimedOutError", "NotCoordinatorError",
    "GroupCoordinatorNotAvailableError", "CoordinatorLoadInProgressError", "CoordinatorNotAvailableError",
}  # fmt: skip

MEMBERS = {"confluent-kafka": be_confluent, "kafka-python": be_kafka_python, "aiokafka": be_aiokafka}


def main() -> None:
    sys.path[:] = [path for path in sys.path if Path(path or ".").resolve() != Path(__file__).resolve().parent]
    client, options = sys.argv[1], json.loads(sys.argv[2])
    MEMBERS[client](Ending(), options)
    os._exit(0)  # Whatever threads the client has left behind.


if __name__ == "__main__":
    main()
