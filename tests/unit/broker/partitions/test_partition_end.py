"""What follows an append, whoever appends: the one owner of a partition's end."""

import errno
from pathlib import Path

import pytest

import ottla.broker
from ottla.broker.partitions.partition_end import announce, append
from ottla.broker.partitions.purgatory import Operation, Place
from ottla.log.producer_state import AppendOrigin
from ottla.testing.memory_disk import MemoryDisk
from ottla.wire.errors import ErrorCode
from tests.unit.broker.brokers import TestNode, batch, fetch_request, only


class Waiting(Operation):
    def __init__(self, node: TestNode) -> None:
        super().__init__(node.client)
        self.looked: list[int] = []

    def is_done(self, place: Place) -> bool:
        self.looked.append(place.log.high_watermark)  # type: ignore[attr-defined]
        return False

    def complete(self) -> None:
        """Nobody is told."""


@pytest.fixture
def node() -> TestNode:
    node = TestNode()
    node.create_topic("orders")
    return node


@pytest.mark.parametrize("origin", AppendOrigin)
def test_an_append_moves_the_high_watermark_and_its_announcement_wakes_who_waits(node, origin):
    partition = node.broker.partitions["orders", 0]
    node.broker.partitions.has_news_for_checkpoints = False
    waiting = Waiting(node)
    node.broker.partitions.purgatory.park(waiting, [partition], 1000)
    assert append(node.broker.partitions, partition, bytearray(batch(b"one")), origin).base_offset == 0
    assert partition.log.high_watermark == 1
    assert node.broker.partitions.has_news_for_checkpoints
    assert waiting.looked == []
    announce(node.broker.partitions, partition)
    assert waiting.looked == [1]


def test_what_has_to_be_on_the_disk_first_is_announced_to_the_disk():
    node = TestNode()
    node.create_topic("orders", flush_messages="1")
    partition = node.broker.partitions["orders", 0]
    waiting = Waiting(node)
    node.broker.partitions.purgatory.park(waiting, [partition], 1000)
    append(node.broker.partitions, partition, bytearray(batch(b"one")))
    assert partition.log.high_watermark == 0
    announce(node.broker.partitions, partition)
    assert (partition.log.recovery_point, partition.log.high_watermark) == (1, 1)
    assert waiting.looked == [1]


def test_a_disk_that_fails_is_dealt_with_and_told_as_an_error(node):
    assert isinstance(node.disk, MemoryDisk)
    partition = node.broker.partitions["orders", 0]
    node.disk.fail_next("write", errno.EIO)
    assert append(node.broker.partitions, partition, bytearray(batch(b"one"))).error is ErrorCode.KAFKA_STORAGE_ERROR
    assert node.logs.online == {}


def test_nothing_else_in_the_broker_appends_to_a_partition_it_leads():
    appending = [
        path.name
        for path in Path(ottla.broker.__file__).parent.rglob("*.py")
        if "append_as_leader(" in (code := path.read_text()) or "partition.append(" in code
    ]
    assert sorted(appending) == ["partition.py", "partition_end.py"]


def test_an_append_that_breaks_takes_its_partition_offline_by_name_and_no_other(node, monkeypatch, caplog):
    node.create_topic("payments")
    node.produce(batch(b"one"))
    monkeypatch.setattr(node.partition().log, "append_as_leader", breaks)
    waiting = node.ask(fetch_request(offset=1, max_wait_ms=500), 12)
    assert node.produce(batch(b"two")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert "orders-0 failed, and is offline" in caplog.text
    assert "an invariant of the log" in caplog.text
    assert only(waiting.message).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert node.fetch().error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert node.produce(batch(b"fine"), topic="payments").error_code == ErrorCode.NONE
    node.change_partition(isr=[1])
    assert node.produce(batch(b"two")).error_code == ErrorCode.KAFKA_STORAGE_ERROR, "the metadata do not bring it back"


def breaks(*_: object) -> None:
    raise AssertionError("an invariant of the log")
