"""A transaction coordinator without a broker: commands are carried out at once, markers are written when a test says.

After every command the state is held against coordinators that know the log alone: all of it, or what is left of it
when it was cleaned.
"""

from collections.abc import Iterator
from itertools import count
from typing import Any

from ottla.base.ids import TopicPartition
from ottla.machines.coordinator_machine import CoordinatorDecision, CoordinatorRecord
from ottla.machines.transaction.initialising import Expected
from ottla.machines.transaction.replies import DecidedEnd, ProducerReply
from ottla.machines.transaction.settings import TransactionSettings
from ottla.machines.transaction.transaction import Transaction
from ottla.machines.transaction.transaction_coordinator import TransactionCoordinator
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import TransactionLogKey, TransactionLogValue
from ottla.wire.record_values import CoordinatorTopic, decode_key, decode_value, encode_key, encode_versioned

T0 = TopicPartition("t", 0)
T1 = TopicPartition("t", 1)
U0 = TopicPartition("u", 0)
OLD, NEW = 0, 2


class Markers:
    """The writer of markers: it is told of decided ends."""

    def __init__(self) -> None:
        self.told: list[DecidedEnd] = []

    def then(self, end: DecidedEnd) -> None:
        self.told.append(end)

    def failed(self, error: ErrorCode) -> None:
        raise AssertionError(error)


class Coordinator:
    """A machine, its log as bytes, and a clock."""

    def __init__(self, **settings: int) -> None:
        self.settings = TransactionSettings()
        for name, value in settings.items():
            setattr(self.settings, name, value)
        self.log: list[tuple[bytes, bytes | None]] = []
        self.markers = Markers()
        self.now_ms = 1_000
        self.ids: Iterator[int | None] = count(100)
        self.machine = self._made()

    def _made(self) -> TransactionCoordinator:
        return TransactionCoordinator(self.settings, lambda: next(self.ids), self.markers)

    def __getitem__(self, transactional_id: str) -> Transaction:
        return self.machine.transactions[transactional_id]

    def state(self, transactional_id: str = "x") -> str:
        one = self[transactional_id]
        return f"{one.state.public_name} {one.producer_id}/{one.producer_epoch}"

    # Commands

    def init(self, name: str = "x", timeout_ms: int = 60_000, has: tuple[int, int] | None = None) -> ProducerReply:
        expected = Expected(*has) if has else None
        return self.carry_out(self.machine.init_producer_id(name, timeout_ms, expected, self.now_ms))

    def add(self, producer: tuple[int, int], *partitions: TopicPartition, version: int = NEW, name: str = "x") -> str:
        decision = self.machine.add_partitions(name, *producer, partitions, version, self.now_ms)
        return self.carry_out(decision).name

    def end(
        self, producer: tuple[int, int], committed: bool, version: int = NEW, name: str = "x"
    ) -> tuple[str, int, int]:
        decision = self.machine.end(name, *producer, committed=committed, client_version=version, now_ms=self.now_ms)
        reply = self.carry_out(decision)
        return reply.error.name, reply.producer_id, reply.producer_epoch

    def commit(self, producer: tuple[int, int], version: int = NEW) -> tuple[str, int, int]:
        return self.end(producer, True, version)

    def abort(self, producer: tuple[int, int], version: int = NEW) -> tuple[str, int, int]:
        return self.end(producer, False, version)

    def write_markers(self) -> list[DecidedEnd]:
        """All that were told of by now are written everywhere."""
        written, self.markers.told = self.markers.told, []
        for end in written:
            self.carry_out(self.machine.complete(end, self.now_ms))
        return written

    def fire(self, timer: str) -> None:
        decision = getattr(self.machine, timer)(self.now_ms)
        assert [one.expire.__name__ for one in decision.timers] == [timer]
        self.carry_out(decision)

    # The driver's part

    def carry_out(self, decision: CoordinatorDecision[Any]) -> Any:
        for record in decision.records:
            self.log.append(_encoded(record))
            self.machine.replay(record.key, record.value)
        for answer in decision.answers:
            answer.waiter.then(answer.reply)
        assert self.replayed().transactions == self.machine.transactions
        cleaned = [(key, value) for key, value in dict(self.log).items() if value is not None]
        assert self.replayed(cleaned).transactions == self.machine.transactions
        return decision.reply

    def replayed(self, log: list[tuple[bytes, bytes | None]] | None = None) -> TransactionCoordinator:
        """A machine that has read the log and knows nothing else."""
        machine = self._made()
        for key, value in self.log if log is None else log:
            decoded = decode_key(CoordinatorTopic.TRANSACTION_STATE, key)
            machine.replay(decoded, None if value is None else decode_value(decoded, value))
        return machine

    def restart(self) -> None:
        """Another coordinator takes over, and is told of nothing but the log."""
        self.machine = self.replayed()
        self.markers = self.machine._markers = Markers()
        self.carry_out(self.machine.on_loaded(self.now_ms))


def coordinator_at(producer_epoch: int, **settings: int) -> Coordinator:
    """A coordinator in whose log the id `x` has come as far as this epoch of producer 7."""
    coordinator = Coordinator(**settings)
    before = Transaction(7, producer_epoch, 60_000, last_update_ms=1_000, previous_producer_id=7)
    version = coordinator.settings.log_version
    record = CoordinatorRecord(TransactionLogKey(transactional_id="x"), before.record(version), version)
    coordinator.carry_out(CoordinatorDecision(None, [record]))
    return coordinator


def _encoded(record: CoordinatorRecord) -> tuple[bytes, bytes | None]:
    assert record.value is None or isinstance(record.value, TransactionLogValue)
    return encode_key(record.key), None if record.value is None else encode_versioned(record.value, record.version)
