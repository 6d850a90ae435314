"""What is not in memory of indexes and batches is read by a worker, and the loop does not wait for it."""

import errno

import pytest

from ottla.base.ports import ColdRead
from ottla.broker.partitions.cold_reads import MOST_ROUNDS
from ottla.log.disk import OsDisk
from ottla.log.producer_state import AppendOrigin
from ottla.records.control import EndTransactionMarker, build_end_transaction_marker
from ottla.testing.memory_disk import MemoryFile
from ottla.wire.errors import ErrorCode
from tests.unit.broker.brokers import NOW_MS, TestNode, batch, fetch_request, only, produced, values_in

FILES = [".log", ".index", ".txnindex"]


@pytest.fixture
def node() -> TestNode:
    """Four batches and an aborted transaction, in a closed segment of each of two partitions. Workers are held."""
    node = TestNode()
    node.create_topic("orders", partitions=2, index_interval_bytes="1")
    for index in range(2):
        append = node.partition("orders", index).append_as_leader
        for value in (b"a", b"b", b"c", b"d"):
            append(batch(value))
        append(produced(7, 0, b"aborted", transactional=True))
        append(build_end_transaction_marker(EndTransactionMarker(False, 0), 7, 0, NOW_MS), AppendOrigin.COORDINATOR)
        node.partition("orders", index).log.roll()
        append(batch(b"last"))
    node.workers.hold()
    return node


def cool(node: TestNode, index: int = 0, *suffixes: str) -> None:
    for suffix in suffixes or FILES:
        node.disk.cool(f"/data/orders-{index}/{0:020d}{suffix}")


def until_answered(node: TestNode, reply) -> int:
    """How often workers were asked."""
    rounds = 0
    while not reply.is_here:
        assert len(node.workers) > 0
        node.workers.step()
        rounds += 1
    return rounds


@pytest.mark.parametrize("suffix", FILES)
def test_a_fetch_waits_for_a_worker_and_others_go_on(node, suffix):
    cool(node, 0, suffix)
    reply = node.ask(fetch_request(1, isolation_level=1), 12)
    assert not reply.is_here
    assert not node.client.is_paused
    assert values_in(node.fetch(1, index=1))[:1] == [b"b"]
    node.produce(batch(b"more"), acks=1)
    assert until_answered(node, reply) == 1
    data = only(reply.message)
    assert values_in(data)[:2] == [b"b", b"c"]
    assert [one.producer_id for one in data.aborted_transactions] == [7]


def test_the_partitions_of_a_request_are_read_together(node):
    cool(node, 0)
    cool(node, 1)
    request = fetch_request(1, isolation_level=1)
    request.topics[0].partitions.append(fetch_request(1, index=1).topics[0].partitions[0])
    reply = node.ask(request, 12)
    assert until_answered(node, reply) <= len(FILES)
    assert [values_in(data)[0] for data in reply.message.responses[0].partitions] == [b"b", b"b"]


def test_a_topic_that_is_deleted_meanwhile_is_unknown(node):
    cool(node)
    reply = node.ask(fetch_request(1), 12)
    node.delete_topic()
    node.workers.let_go()
    assert only(reply.message).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_disk_that_fails_is_found_out(node):
    cool(node, 0, ".log")
    reply = node.ask(fetch_request(1), 12)
    node.disk.fail_read_at(node.disk.reads + 1, errno.EIO, times=10)
    node.workers.let_go()
    assert only(reply.message).error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_what_never_stays_in_memory_is_waited_for_in_the_end(node, monkeypatch):
    monkeypatch.setattr(MemoryFile, "_warm", lambda *_: None)
    cool(node, 0, ".log")
    reply = node.ask(fetch_request(1), 12)
    assert until_answered(node, reply) == MOST_ROUNDS
    assert values_in(only(reply.message))[:1] == [b"b"]


def test_a_waiting_fetch_that_is_woken_reads_the_cold_part_later(node):
    node.workers.let_go()
    reply = node.ask(fetch_request(1, max_wait_ms=1000, min_bytes=100_000), 12)
    assert not reply.is_here
    node.workers.hold()
    cool(node, 0, ".log")
    node.timers.advance(1000)
    assert not reply.is_here
    assert until_answered(node, reply) == 1
    assert values_in(only(reply.message))[:1] == [b"b"]


def test_the_real_disk_says_what_is_not_in_memory(tmp_path):
    """A file of which nothing was ever read may be cold or not; either way the bytes come."""
    disk = OsDisk()
    file = disk.open(str(tmp_path / "file"), create=True)
    file.write_at(0, b"0123456789")
    disk.reads_may_wait(False)
    try:
        for _ in range(3):
            try:
                assert file.read_at(2, 5) == b"23456"
                assert file.read_at(8, 5) == b"89", "at the end there are fewer"
                break
            except ColdRead as cold:
                cold.warm()
        else:
            pytest.fail("what was read is not in memory")
    finally:
        disk.reads_may_wait(True)
        file.close()
