"""Programs that use the cluster, each in a thread, with our clients; all that they ask and hear goes into the history.

A client that fails is closed, and the program goes on with a new one, which is another process to the checker.
"""

from collections import Counter
from collections.abc import Callable
from itertools import count
from random import Random
from threading import BoundedSemaphore, Event, Thread
from typing import Any

from ottla import Consumer, Producer, RebalanceListener, TopicPartition
from ottla.errors import KafkaError
from ottla.testing.chaos.operations import Operation, Outcome, Polled, Sent
from tests.chaos.recorder import Recorder

TOPICS = ("orders", "clicks")
PARTITIONS = 2
ALL_PARTITIONS = [TopicPartition(topic, index) for topic in TOPICS for index in range(PARTITIONS)]
_PAUSE_S = 0.004
_MOST_IN_FLIGHT = 100
_MOST_RECORDS_OF_A_TRANSACTION = 5
_ABORTED = 0.2
_CLOSE_S = 5.0


def name_of(partition: TopicPartition) -> str:
    return f"{partition.topic}-{partition.partition}"


class Program:
    """Lives one life after the other, until it is told to stop."""

    def __init__(self, name: str, bootstrap: str, recorder: Recorder, seed: int, over: Event) -> None:
        self.name = name
        self.bootstrap = bootstrap
        self.recorder = recorder
        self.random = Random(f"{seed} {name}")
        self.over = over
        self.problems: Counter[str] = Counter()
        self._lives = count(1)
        self.thread = Thread(target=self._run, name=name, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        while not self.over.is_set():
            try:
                self.live(f"{self.name}.{next(self._lives)}")
            except (KafkaError, TimeoutError) as problem:
                self.problems[type(problem).__name__] += 1
                self.over.wait(0.2)

    def live(self, process: str) -> None:
        raise NotImplementedError


class IdempotentWriter(Program):
    """Sends without waiting for answers. Whatever is not acknowledged may have been written."""

    def live(self, process: str) -> None:
        producer = Producer(
            bootstrap_servers=self.bootstrap,
            acks="all",
            request_timeout_ms=3000,
            delivery_timeout_ms=30_000,
            max_block_ms=20_000,
            linger_ms=2,
        )
        failed = Event()
        room = BoundedSemaphore(_MOST_IN_FLIGHT)
        try:
            while not self.over.wait(_PAUSE_S) and not failed.is_set():
                room.acquire()
                self._send(producer, process, failed, room)
        finally:
            producer.close()

    def _send(self, producer: Producer, process: str, failed: Event, room: BoundedSemaphore) -> None:
        partition, value = self.random.choice(ALL_PARTITIONS), self.recorder.next_value()
        began_us = self.recorder.now_us()

        def note(delivery: Any) -> None:
            room.release()
            problem = delivery.exception()
            offset = None if problem else delivery.result().offset
            if problem:
                self.problems[type(problem).__name__] += 1
                failed.set()
            outcome = Outcome.UNKNOWN if problem else Outcome.OK
            sent = Sent(name_of(partition), value, offset)
            self.recorder.note(Operation(process, outcome, began_us, self.recorder.now_us(), (sent,)))

        producer.send(partition.topic, b"%d" % value, partition=partition.partition, on_delivery=note)


class _Assigned(RebalanceListener):
    """Remembers what a consumer was assigned, until the poll in which that happened is noted."""

    def __init__(self) -> None:
        self._partitions: list[str] = []

    def on_partitions_assigned(self, partitions: Any) -> None:
        self._partitions += [name_of(partition) for partition in partitions]

    def take(self) -> tuple[str, ...]:
        taken, self._partitions = tuple(self._partitions), []
        return taken


def _polled(records: Any) -> tuple[Polled, ...]:
    return tuple(Polled(f"{one.topic}-{one.partition}", one.offset, int(one.value)) for one in records)


class GroupReader(Program):
    """A member of a group of one of the protocols, which now and then leaves and comes back."""

    def __init__(self, *arguments: Any, protocol: str) -> None:
        self._protocol = protocol
        super().__init__(*arguments)

    def live(self, process: str) -> None:
        consumer = group_consumer(self.bootstrap, f"readers of {self._protocol}", self._protocol, commits=True)
        assigned = _Assigned()
        try:
            consumer.subscribe(TOPICS, listener=assigned)
            for _ in range(self.random.randrange(50, 400)):
                if self.over.is_set():
                    return
                began_us = self.recorder.now_us()
                polls, given = _polled(consumer.poll(0.1)), assigned.take()
                if polls or given:
                    ended_us = self.recorder.now_us()
                    self.recorder.note(Operation(process, Outcome.OK, began_us, ended_us, polls=polls, assigned=given))
        finally:
            consumer.close(_CLOSE_S)


def group_consumer(bootstrap: str, group: str, protocol: str, *, commits: bool) -> Consumer:
    of_classic = {"session_timeout_ms": 6000, "heartbeat_interval_ms": 1000} if protocol == "classic" else {}
    return Consumer(
        bootstrap_servers=bootstrap, group_id=group, group_protocol=protocol, auto_offset_reset="earliest",
        isolation_level="read_committed", enable_auto_commit=commits, auto_commit_interval_ms=500,
        request_timeout_ms=6000, default_api_timeout_ms=15_000, **of_classic,
    )  # fmt: skip


class TransactionalCopier(Program):
    """Reads as a member of a group and writes, with its offsets, in transactions to the same topics; aborts some."""

    def __init__(self, *arguments: Any, protocol: str) -> None:
        self._protocol = protocol
        super().__init__(*arguments)

    def live(self, process: str) -> None:
        producer = Producer(
            bootstrap_servers=self.bootstrap,
            transactional_id=self.name,
            transaction_timeout_ms=10_000,
            request_timeout_ms=3000,
            delivery_timeout_ms=9000,
            max_block_ms=20_000,
        )
        consumer = group_consumer(self.bootstrap, f"copiers of {self._protocol}", self._protocol, commits=False)
        assigned = _Assigned()
        try:
            consumer.subscribe(TOPICS, listener=assigned)
            while not self.over.wait(_PAUSE_S):
                self._transact(process, producer, consumer, assigned)
        finally:
            producer.close(0)
            consumer.close(_CLOSE_S)

    def _transact(self, process: str, producer: Producer, consumer: Consumer, assigned: _Assigned) -> None:
        began_us = self.recorder.now_us()
        outcome, commit_began_us = Outcome.FAIL, None  # nobody can commit it but this program
        sent: list[tuple[TopicPartition, int, Any]] = []
        polls: tuple[Polled, ...] = ()
        try:
            producer.begin()
            polls = _polled(consumer.poll(0.02, max_records=20))
            for _ in range(self.random.randrange(1, _MOST_RECORDS_OF_A_TRANSACTION)):
                partition, value = self.random.choice(ALL_PARTITIONS), self.recorder.next_value()
                sent.append((partition, value, None))
                delivery = producer.send(partition.topic, b"%d" % value, partition=partition.partition)
                sent[-1] = partition, value, delivery
            if polls:
                positions = {partition: consumer.position(partition) for partition in consumer.assignment()}
                producer.send_offsets(positions, consumer.group_metadata())
            if self.random.random() < _ABORTED:
                producer.abort()
            else:
                commit_began_us = self.recorder.now_us()
                outcome = Outcome.UNKNOWN
                producer.commit()
                outcome = Outcome.OK
        finally:
            sends = tuple(Sent(name_of(partition), value, _offset(delivery)) for partition, value, delivery in sent)
            self.recorder.note(
                Operation(
                    process, outcome, began_us, self.recorder.now_us(), sends, polls, commit_began_us,
                    assigned.take(), is_transaction=True,
                )
            )  # fmt: skip


def _offset(delivery: Any) -> int | None:
    if delivery is None or not delivery.done() or delivery.exception() is not None:
        return None
    offset: int = delivery.result().offset
    return offset


def read_to_the_end(bootstrap: str, recorder: Recorder, is_late: Callable[[], bool]) -> bool:
    """Everything that the cluster has. False if a transaction stays open, or the end is not reached in time."""
    began_us = recorder.now_us()
    with Consumer(bootstrap_servers=bootstrap, isolation_level="read_committed") as consumer:
        consumer.assign(ALL_PARTITIONS)
        consumer.seek_to_beginning(*ALL_PARTITIONS)
        polls: list[Polled] = []
        while not _is_at_the_end(bootstrap, consumer):
            if is_late():
                return False
            polls += _polled(consumer.poll(0.5))
        names = tuple(map(name_of, ALL_PARTITIONS))
        recorder.note(
            Operation(
                "last reader", Outcome.OK, began_us, recorder.now_us(), polls=tuple(polls), assigned=names,
                reads_to_the_end=True,
            )
        )  # fmt: skip
    return True


def _is_at_the_end(bootstrap: str, consumer: Consumer) -> bool:
    """The end without regard to transactions, so that one that hangs is noticed."""
    with Consumer(bootstrap_servers=bootstrap) as other:
        ends = other.end_offsets(ALL_PARTITIONS)
    return all(consumer.position(partition) >= end for partition, end in ends.items())
