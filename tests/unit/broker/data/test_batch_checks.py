"""Batches that are checked by a worker, and what waits for them."""

import pytest

from ottla.broker.data import batch_checks, produce
from ottla.records.batch import complete_batches
from ottla.records.header import Compression
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import ProduceRequest
from tests.unit.broker.brokers import TestNode, batch, only, produce_request, produced, values_in

CODECS = [Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD]
SMALL = b"s" * 1000
LARGE = bytes(range(256)) * (3 << 12)
"""Three megabytes that compress well: more than is decompressed on the loop."""


@pytest.fixture
def node() -> TestNode:
    node = TestNode(message_max_bytes="20000000")
    node.create_topic("orders", partitions=2)
    node.workers.hold()
    return node


@pytest.mark.parametrize("codec", CODECS)
def test_a_small_compressed_batch_is_taken_at_once(node, codec):
    reply = node.ask(produce_request(batch(SMALL, compression=codec)), 9)
    assert reply.is_here
    assert not node.client.is_paused
    assert only(reply.message).error_code == ErrorCode.NONE


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_that_expands_to_much_is_checked_by_a_worker(node, codec):
    reply = node.ask(produce_request(batch(LARGE, compression=codec)), 9)
    assert not reply.is_here
    assert node.client.is_paused, "what comes behind it on its connection must not overtake it"
    node.workers.let_go()
    assert not node.client.is_paused
    assert (only(reply.message).error_code, only(reply.message).base_offset) == (ErrorCode.NONE, 0)
    assert values_in(node.fetch()) == [LARGE]


@pytest.mark.parametrize(("codec", "is_later"), [("zstd", True), ("uncompressed", False)])
def test_a_conversion_of_much_is_a_workers(node, codec, is_later):
    node.configure_topic(compression_type=codec)
    node.ask(produce_request(batch(b"first", compression=Compression.LZ4)), 9)
    reply = node.ask(produce_request(batch(b"v" * 40_000)), 9)
    assert reply.is_here is not is_later
    node.workers.let_go()
    assert only(reply.message).base_offset == 1
    headers = [header for _, header in complete_batches(node.fetch().records)]
    assert {header.compression for header in headers} == {Compression.ZSTD if is_later else Compression.NONE}


def test_a_very_large_batch_is_a_workers(node):
    reply = node.ask(produce_request(batch(bytes(5 << 20))), 9)
    assert not reply.is_here
    node.workers.let_go()
    assert only(reply.message).error_code == ErrorCode.NONE


def test_a_batch_beyond_max_message_bytes_is_refused_without_a_look(node):
    node.configure_topic(max_message_bytes="100")
    reply = node.ask(produce_request(batch(LARGE, compression=Compression.GZIP)), 9)
    assert only(reply.message).error_code == ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.slow
def test_what_a_worker_refuses_is_refused(node):
    damaged = batch(LARGE, compression=Compression.GZIP)
    damaged[-1] ^= 1
    reply = node.ask(produce_request(damaged), 9)
    node.workers.let_go()
    assert only(reply.message).error_code == ErrorCode.CORRUPT_MESSAGE
    bomb = node.ask(produce_request(batch(bytes(130 << 20), compression=Compression.ZSTD)), 9)
    node.workers.let_go()
    assert only(bomb.message).error_code == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("settings", [{}, {"message_timestamp_type": "LogAppendTime"}, {"compression_type": "zstd"}])
def test_a_small_batch_that_waits_beside_a_large_one_is_stored_as_it_was_sent(node, codec, settings):
    """The small one is checked at once, the large one by a worker. Meanwhile the bytes that came are no longer lent."""
    node.configure_topic(**settings)
    request = produce_request(batch(SMALL, compression=codec))
    large = ProduceRequest.PartitionProduceData(index=1, records=batch(LARGE, compression=codec))
    request.topic_data[0].partition_data.append(large)
    reply = node.ask(request, 9)
    assert not reply.is_here
    node.workers.let_go()
    assert [answer.error_code for answer in reply.message.responses[0].partition_responses] == [0, 0]
    assert values_in(node.fetch()) == [SMALL]
    assert values_in(node.fetch(index=1)) == [LARGE]


def test_a_batch_that_changed_since_it_was_checked_is_refused_and_its_partition_goes_on(node, monkeypatch, caplog):
    """The log computes its checksum again. Nothing is written, and the client sends the batch again."""
    check = batch_checks.check

    def check_and_spoil(records, *rules):
        outcome = check(records, *rules)
        records[-1] ^= 1
        return outcome

    with monkeypatch.context() as spoiled:
        spoiled.setattr(produce, "check", check_and_spoil)
        spoiled.setattr(batch_checks, "check", check_and_spoil)
        refused = node.ask(produce_request(batch(SMALL, compression=Compression.LZ4)), 9)
    assert only(refused.message).error_code == ErrorCode.CORRUPT_MESSAGE
    assert "orders-0: a batch changed between its check and its write, and was refused" in caplog.text
    taken = node.ask(produce_request(batch(SMALL, compression=Compression.LZ4)), 9)
    assert (only(taken.message).error_code, only(taken.message).base_offset) == (ErrorCode.NONE, 0)
    assert values_in(node.fetch()) == [SMALL]


def test_the_other_partitions_of_the_request_wait_too_and_each_is_answered_for(node):
    parts = [
        ProduceRequest.PartitionProduceData(index=0, records=batch(b"plain")),
        ProduceRequest.PartitionProduceData(index=1, records=batch(LARGE, compression=Compression.LZ4)),
        ProduceRequest.PartitionProduceData(index=7, records=batch(LARGE, compression=Compression.LZ4)),
        ProduceRequest.PartitionProduceData(index=1, records=None),
    ]
    topics = [ProduceRequest.TopicProduceData(name="orders", partition_data=parts)]
    reply = node.ask(ProduceRequest(acks=1, timeout_ms=1000, topic_data=topics), 9)
    assert not reply.is_here
    node.workers.let_go()
    (topic,) = reply.message.responses
    assert [answer.error_code for answer in topic.partition_responses] == [
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_RECORD,
    ]
    assert values_in(node.fetch(index=0)) == [b"plain"]
    assert values_in(node.fetch(index=1)) == [LARGE]


def test_an_idempotent_producers_repetition_is_known_behind_a_worker(node):
    first = produced(5, 0, LARGE, compression=Compression.ZSTD)
    replies = [node.ask(produce_request(bytearray(first)), 9) for _ in range(2)]
    node.workers.let_go()
    assert [only(reply.message).base_offset for reply in replies] == [0, 0]
    assert values_in(node.fetch()) == [LARGE]


def test_a_topic_that_is_deleted_meanwhile_is_told_of(node):
    reply = node.ask(produce_request(batch(LARGE, compression=Compression.LZ4)), 9)
    node.delete_topic()
    node.workers.let_go()
    assert only(reply.message).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_without_acks_an_error_is_told_by_hanging_up_and_nothing_stays_held(node):
    request = produce_request(batch(LARGE, compression=Compression.LZ4))
    request.acks = 0
    reply = node.ask(request, 9)
    node.delete_topic()
    node.workers.let_go()
    assert (reply.is_here, reply.message) == (True, None)
    assert len(node.line.problems) == 1
    assert not node.client.is_paused


def test_log_append_time_is_that_of_the_check_in_the_log_and_in_the_reply(node):
    node.configure_topic(message_timestamp_type="LogAppendTime")
    reply = node.ask(produce_request(batch(LARGE, compression=Compression.LZ4)), 9)
    node.clock.advance(40)  # while the worker is busy
    node.workers.let_go()
    ((_, header),) = complete_batches(node.fetch().records)
    assert only(reply.message).log_append_time_ms == header.max_timestamp
