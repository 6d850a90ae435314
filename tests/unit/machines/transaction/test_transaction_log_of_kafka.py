"""What Apache Kafka 4.3.1 wrote to `__transaction_state` is read, and written again byte for byte."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.base.ids import TopicPartition
from ottla.machines.transaction.replies import DecidedEnd
from ottla.machines.transaction.settings import TransactionSettings
from ottla.machines.transaction.states import MAY_FOLLOW, TransactionState
from ottla.machines.transaction.transaction import Transaction
from ottla.machines.transaction.transaction_coordinator import TransactionCoordinator
from ottla.records.batch import complete_batches
from ottla.records.reader import read_records
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message
from ottla.wire.messages import TransactionLogKey, TransactionLogValue
from ottla.wire.record_values import CoordinatorTopic, decode_key, decode_value, encode_versioned

GOLDEN = Path(__file__).resolve().parents[3] / "golden" / "kafka-4.3.1"
DIRECTORIES = sorted(path.parent.name for path in GOLDEN.glob("*/__transaction_state-0"))

each_directory = pytest.mark.parametrize("directory", DIRECTORIES)


class Nobody:
    def then(self, end: DecidedEnd) -> None:
        raise AssertionError(end)

    def failed(self, error: ErrorCode) -> None:
        raise AssertionError(error)


def logged(directory: str) -> Iterator[tuple[Message, bytes | None]]:
    for segment in sorted((GOLDEN / directory / "__transaction_state-0").glob("*.log")):
        data = segment.read_bytes()
        for position, header in complete_batches(data):
            for record in read_records(data, position, header):
                assert record.key is not None
                value = None if record.value is None else bytes(record.value)
                yield decode_key(CoordinatorTopic.TRANSACTION_STATE, record.key), value


def test_kafka_has_written_logs_to_read() -> None:
    assert len(DIRECTORIES) >= 3


@each_directory
def test_every_value_is_written_again_byte_for_byte(directory: str) -> None:
    for key, data in logged(directory):
        assert data is not None
        value = decode_value(key, data)
        assert isinstance(value, TransactionLogValue)
        version = int.from_bytes(data[:2], "big")
        assert encode_versioned(Transaction.of_record(value).record(version), version) == data


@each_directory
def test_kafkas_transitions_are_ours(directory: str) -> None:
    """Each record, made from the one before it by the transition that it stands for."""
    now: dict[str, Transaction] = {}
    for key, data in logged(directory):
        assert isinstance(key, TransactionLogKey)
        assert data is not None
        value = decode_value(key, data)
        assert isinstance(value, TransactionLogValue)
        after = Transaction.of_record(value)
        before = now.get(key.transactional_id)
        if before is not None:
            assert before.state in MAY_FOLLOW[after.state]
            assert made_again(before, after) == after
        now[key.transactional_id] = after


def made_again(before: Transaction, after: Transaction) -> Transaction:
    now_ms = after.last_update_ms
    match after.state:
        case TransactionState.EMPTY:
            return before.with_epoch(after.producer_id, after.producer_epoch, after.timeout_ms, now_ms)
        case TransactionState.ONGOING:
            return before.with_partitions(after.partitions, after.client_version, now_ms)
        case TransactionState.COMPLETE_COMMIT | TransactionState.COMPLETE_ABORT:
            return before.completed(now_ms)
        case _:
            return before.prepared(after.state, after.producer_epoch, now_ms, client_version=after.client_version)


@each_directory
def test_a_coordinator_takes_over_from_kafka(directory: str) -> None:
    machine = TransactionCoordinator(TransactionSettings(), lambda: None, Nobody())
    for key, data in logged(directory):
        machine.replay(key, None if data is None else decode_value(key, data))
    open_ones = [one for one in machine.transactions.values() if one.state is TransactionState.ONGOING]
    assert open_ones, "Kafka was stopped within a transaction"
    assert all(TopicPartition("transactions", 0) in one.partitions for one in open_ones)
    assert not machine.on_loaded(0).answers, "all ends that were decided are complete"
