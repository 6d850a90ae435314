"""A machine that is no more than a map from names to numbers, under the driver of log-backed coordinators."""

from typing import Any

from ottla.broker.coordination.topic_coordinator import TopicCoordinator
from ottla.machines.coordinator_machine import (
    CoordinatorDecision,
    CoordinatorMachine,
    CoordinatorRecord,
    TransactionStamp,
)
from ottla.records.batch import batches
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message
from ottla.wire.messages import OffsetCommitKey, OffsetCommitValue
from ottla.wire.record_values import CoordinatorTopic
from tests.unit.broker.brokers import NODE_ID, TestNode

TOPIC = "numbers"
T = "a timer", "any key", None


class Numbers(CoordinatorMachine):
    """Keeps the number that was last put under each name; what a transaction puts counts when it is committed."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.open: dict[int, dict[str, int]] = {}
        self.waiting: list[Any] = []
        self.fired: list[str] = []
        self.refused: list[str] = []

    def replay(self, key: Message, value: Message | None) -> None:
        assert isinstance(key, OffsetCommitKey)
        if isinstance(value, OffsetCommitValue):
            self.numbers[key.group] = value.offset
        else:
            self.numbers.pop(key.group, None)

    def replay_in_transaction(self, stamp: TransactionStamp, key: Message, value: Message | None) -> None:
        assert isinstance(key, OffsetCommitKey)
        assert isinstance(value, OffsetCommitValue)
        self.open.setdefault(stamp.producer_id, {})[key.group] = value.offset

    def replay_end_of_transaction(self, stamp: TransactionStamp, *, committed: bool) -> None:
        numbers = self.open.pop(stamp.producer_id, {})
        if committed:
            self.numbers.update(numbers)

    def subject_of(self, key: Message) -> str | None:
        assert isinstance(key, OffsetCommitKey)
        return key.group

    def on_refused(
        self, decision: CoordinatorDecision[Any], error: ErrorCode, now_ms: int
    ) -> CoordinatorDecision[None]:
        self.refused += [key.group for key, _, _ in decision.records if isinstance(key, OffsetCommitKey)]
        return super().on_refused(decision, error, now_ms)

    def take_offline(self, subject: str) -> list[Any]:
        self.numbers.pop(subject, None)
        waiting, self.waiting = self.waiting, []
        return waiting

    def on_unloaded(self) -> list[Any]:
        return self.waiting

    # Commands

    def put(self, name: str, number: int, **more: Any) -> CoordinatorDecision[str]:
        old = self.numbers.get(name)
        return CoordinatorDecision(f"{name}: {old} -> {number}", [record(name, number)], **more)

    def get(self, name: str) -> int | None:
        return self.numbers.get(name)


class Told:
    """A waiter that remembers what it was told."""

    def __init__(self) -> None:
        self.replies: list[Any] = []
        self.errors: list[ErrorCode] = []

    def then(self, reply: Any) -> None:
        self.replies.append(reply)

    def failed(self, error: ErrorCode) -> None:
        self.errors.append(error)


def record(name: str, number: int | None) -> CoordinatorRecord:
    key = OffsetCommitKey(group=name, topic="t", partition=0)
    return CoordinatorRecord(key, None if number is None else OffsetCommitValue(offset=number), 3)


class Bench:
    """A node that leads a topic of one partition, and a coordinator of it."""

    def __init__(self, node: TestNode | None = None, *, linger_ms: int = -1, **topic: Any) -> None:
        self.node = node or TestNode()
        self.made: list[Numbers] = []
        self.coordinator: TopicCoordinator[Numbers] = TopicCoordinator(
            self.node.broker.partitions,
            self.node.broker.world,
            CoordinatorTopic.CONSUMER_OFFSETS,
            TOPIC,
            "offsets.topic.num.partitions",
            self._make,
            commit_timeout_ms=5000,
            linger_ms=linger_ms,
        )
        if node is None:
            self.node.create_topic(TOPIC, **topic)
        self.on_leadership()

    def _make(self, index: int, leader_epoch: int) -> Numbers:
        assert index == 0
        self.made.append(Numbers())
        return self.made[-1]

    @property
    def partition(self) -> Any:
        return self.node.partition(TOPIC)

    def on_leadership(self) -> None:
        self.coordinator.on_leadership(self.partition)

    def submit(self, decide: Any) -> Told:
        told = Told()
        self.coordinator.submit("any key", decide, told.then, told.failed)
        return told

    def put(self, name: str, number: int, **more: Any) -> Told:
        return self.submit(lambda machine, now_ms: machine.put(name, number, **more))

    def get(self, name: str) -> Told:
        told = Told()
        self.coordinator.query("any key", lambda machine, now_ms: machine.get(name), told.then, told.failed)
        return told

    def headers(self) -> list[Any]:
        log = self.partition.log
        return [header for _, header in batches(log.read(0, 1 << 20, log.log_end_offset).read())]

    def restarted(self) -> "Bench":
        """The same disk under a new node."""
        return Bench(self.stopped())

    def stopped(self, **settings: str) -> TestNode:
        self.node.logs.close(0)
        return TestNode(disk=self.node.disk, image=self.node.image, clock=self.node.clock, **settings)


def of_two_replicas() -> dict[str, Any]:
    return {"replicas": (NODE_ID, 2), "isr": (NODE_ID, 2)}


def follower_fetched(bench: Bench) -> None:
    """The other replica has everything."""
    partition = bench.partition
    if partition.state.on_fetched(2, partition.log.log_end_offset, 0, 0):
        partition.log.advance_high_watermark(partition.state.high_watermark)
    bench.node.broker.partitions.purgatory.wake(partition)
