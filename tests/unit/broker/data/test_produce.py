"""Produce, request by request."""

import errno

import pytest

from ottla.broker.data import produce
from ottla.broker.data.plain_produce import append_none
from ottla.records.batch import complete_batches
from ottla.records.header import Compression
from ottla.testing.memory_disk import MemoryDisk
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import ProduceRequest
from tests.unit.broker.brokers import (
    NOW_MS,
    TestNode,
    batch,
    fetch_request,
    only,
    produce_request,
    produced,
    topic_id_of,
    values_in,
)

HOUR_MS = 3_600_000
VERSIONS = range(3, 14)


@pytest.fixture(autouse=True, params=["compiled", "in Python"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain batches are appended by compiled code, where there is any. `Produce` must answer the same."""
    if request.param == "in Python":
        monkeypatch.setattr(produce, "append_all_plain", append_none)


@pytest.fixture
def node() -> TestNode:
    node = TestNode()
    node.create_topic("orders", partitions=2)
    return node


@pytest.mark.parametrize("version", VERSIONS)
def test_a_batch_gets_the_next_offsets(node, version):
    node.produce(batch(b"a", b"b"))
    request = produce_request(batch(b"c"))
    if version >= 13:
        request.topic_data[0].name, request.topic_data[0].topic_id = "", topic_id_of("orders")
    reply = node.send(request, version)
    answer = only(reply)
    assert (answer.error_code, answer.base_offset, answer.index) == (ErrorCode.NONE, 2, 0)
    assert answer.log_append_time_ms == -1
    assert answer.log_start_offset == (0 if version >= 5 else -1)
    (topic,) = reply.responses
    assert (topic.name, topic.topic_id) == (("", topic_id_of("orders")) if version >= 13 else ("orders", bytes(16)))
    assert values_in(node.fetch()) == [b"a", b"b", b"c"]


def test_every_partition_of_a_request_is_answered_for_on_its_own(node):
    parts = [
        ProduceRequest.PartitionProduceData(index=1, records=batch(b"a")),
        ProduceRequest.PartitionProduceData(index=7, records=batch(b"b")),
        ProduceRequest.PartitionProduceData(index=0, records=b"\0" * 70),
    ]
    topics = [ProduceRequest.TopicProduceData(name="orders", partition_data=parts)]
    reply = node.send(ProduceRequest(acks=1, timeout_ms=1000, topic_data=topics), 9)
    (topic,) = reply.responses
    assert [(answer.index, answer.error_code) for answer in topic.partition_responses] == [
        (1, ErrorCode.NONE),
        (7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (0, ErrorCode.INVALID_RECORD),
    ]


# Whom the records are for


def test_an_unknown_topic(node):
    answer = node.produce(batch(), topic="nobody")
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert (answer.base_offset, answer.log_start_offset) == (-1, -1)


def test_an_unknown_topic_id(node):
    request = produce_request(batch(), topic="")
    request.topic_data[0].topic_id = topic_id_of("nobody")
    assert only(node.send(request, 13)).error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_a_partition_that_another_node_leads_comes_with_a_hint_where(node):
    node.register_broker(2, "other.example", 9092)
    node.create_topic("theirs", replicas=(1, 2), leader=2, leader_epoch=4)
    reply = node.send(produce_request(batch(), "theirs"), 10)
    answer = only(reply)
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (answer.current_leader.leader_id, answer.current_leader.leader_epoch) == (2, 4)
    (endpoint,) = reply.node_endpoints
    assert (endpoint.node_id, endpoint.host, endpoint.port) == (2, "other.example", 9092)


def test_a_partition_that_this_node_does_not_hold(node):
    node.create_topic("theirs", replicas=(2,), leader=2)
    assert node.produce(batch(), "theirs").error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_internal_topics_are_not_for_clients(node):
    node.create_topic("__consumer_offsets")
    assert node.produce(batch(), "__consumer_offsets").error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    request = produce_request(batch(), "__consumer_offsets")
    assert only(node.send(request, 12, client_id="__admin_client")).error_code == ErrorCode.NONE


# Acknowledgements


@pytest.mark.parametrize("acks", [-2, 2, 100])
def test_acks_can_only_be_none_the_leader_or_all(node, acks):
    assert node.produce(batch(), acks=acks).error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert node.fetch().high_watermark == 0


def test_acks_none_has_no_reply(node):
    reply = node.ask(produce_request(batch(b"a"), acks=0), 9)
    assert reply.is_here
    assert reply.message is None
    assert values_in(node.fetch()) == [b"a"]


def test_an_error_with_acks_none_can_only_be_told_by_hanging_up(node):
    node.ask(produce_request(batch(), "nobody", acks=0), 9)
    assert len(node.line.problems) == 1


def test_what_was_written_next_to_an_error_with_acks_none_is_seen(node):
    waiting = node.ask(fetch_request(0, max_wait_ms=500), 12)
    request = produce_request(batch(b"a"), acks=0)
    request.topic_data[0].partition_data.append(ProduceRequest.PartitionProduceData(index=9, records=batch()))
    node.ask(request, 9)
    assert len(node.line.problems) == 1
    assert values_in(only(waiting.message)) == [b"a"]


def test_a_partition_named_twice_is_answered_for_twice(node):
    node.create_topic("shared", replicas=(1, 2))
    request = produce_request(batch(b"a"), "shared")
    request.topic_data[0].partition_data.append(ProduceRequest.PartitionProduceData(index=0, records=batch(b"b")))
    reply = node.ask(request, 9)
    node.timers.advance(30_000)
    answers = reply.message.responses[0].partition_responses
    assert [answer.base_offset for answer in answers] == [0, 1]
    assert {answer.error_code for answer in answers} == {ErrorCode.REQUEST_TIMED_OUT}


def test_acks_all_waits_for_the_followers_in_sync(node):
    node.create_topic("shared", replicas=(1, 2), min_insync_replicas="2")
    reply = node.ask(produce_request(batch(b"a"), "shared"), 9)
    assert not reply.is_here
    node.send(fetch_request(1, "shared", replica_id=2), 12)
    assert only(reply.message).error_code == ErrorCode.NONE
    assert only(reply.message).base_offset == 0


def test_acks_leader_does_not_wait_for_followers(node):
    node.create_topic("shared", replicas=(1, 2))
    assert node.produce(batch(b"a"), "shared", acks=1).error_code == ErrorCode.NONE
    assert node.fetch(topic="shared").high_watermark == 0


def test_acks_all_gives_up_after_the_timeout(node):
    node.create_topic("shared", replicas=(1, 2))
    reply = node.ask(produce_request(batch(b"a"), "shared"), 9)
    node.timers.advance(29_999)
    assert not reply.is_here
    node.timers.advance(1)
    assert only(reply.message).error_code == ErrorCode.REQUEST_TIMED_OUT
    assert len(node.timers) == 0


def test_too_few_replicas_in_sync_and_nothing_is_written(node):
    node.create_topic("shared", replicas=(1, 2, 3), isr=(1,), min_insync_replicas="2")
    assert node.produce(batch(), "shared").error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert node.produce(batch(), "shared", acks=1).error_code == ErrorCode.NONE
    assert node.partition("shared").log.log_end_offset == 1


def test_replicas_lost_while_a_write_waits_for_them(node):
    node.create_topic("shared", replicas=(1, 2), min_insync_replicas="2")
    reply = node.ask(produce_request(batch(), "shared"), 9)
    node.change_partition("shared", isr=(1,))
    assert not reply.is_here, "with too few in sync the high watermark stays (KIP-966)"
    node.configure_topic("shared", min_insync_replicas="1")
    assert only(reply.message).error_code == ErrorCode.NONE


def test_leadership_lost_while_a_write_waits(node):
    node.create_topic("shared", replicas=(1, 2))
    reply = node.ask(produce_request(batch(), "shared"), 10)
    node.change_partition("shared", leader=2)
    answer = only(reply.message)
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (answer.current_leader.leader_id, answer.current_leader.leader_epoch) == (2, 1)


# What the records are like


@pytest.mark.parametrize("records", [None, b"", b"\0" * 11])
def test_a_partition_without_a_batch(node, records):
    assert node.produce(records).error_code == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("before", [0, 1, 3])
def test_a_batch_that_does_not_match_its_checksum(node, before, caplog):
    """Into a log that begins with it, and into one that has room, where the log alone looks at the checksum."""
    for _ in range(before):
        node.produce(batch(b"abcdef"))
    broken = batch(b"abcdef")
    broken[-1] ^= 1
    answer = node.produce(broken)
    assert answer.error_code == ErrorCode.CORRUPT_MESSAGE
    assert answer.log_start_offset == -1
    assert "checksum" in (answer.error_message or "")
    traffic = node.broker.partitions.traffic.of("orders")
    assert (traffic.produce_requests, traffic.failed_produce_requests) == (before + 1, 1)
    assert node.produce(batch(b"next")).base_offset == before
    assert values_in(node.fetch()) == [b"abcdef"] * before + [b"next"]
    assert not caplog.records, "a client that sends damaged batches is no error of the node's"


def test_a_batch_larger_than_max_message_bytes(node):
    node.configure_topic(max_message_bytes="100")
    assert node.produce(batch(bytes(100))).error_code == ErrorCode.MESSAGE_TOO_LARGE
    node.configure_topic(max_message_bytes=None)
    assert node.produce(batch(bytes(100))).error_code == ErrorCode.NONE


def test_the_broker_gives_topics_their_largest_batch():
    node = TestNode(message_max_bytes="100")
    node.create_topic()
    assert node.produce(batch(bytes(100))).error_code == ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("version", range(3, 13))
def test_a_timestamp_from_too_far_in_the_future_names_the_record(node, version):
    answer = node.produce(batch(b"a", b"b", timestamp=NOW_MS + HOUR_MS + 1), version=version)
    assert answer.error_code == ErrorCode.INVALID_TIMESTAMP
    assert [error.batch_index for error in answer.record_errors] == ([0, 1] if version >= 8 else [])
    assert bool(answer.error_message) == (version >= 8)
    assert answer.log_start_offset == (0 if version >= 5 else -1)


def test_a_timestamp_from_too_far_in_the_past(node):
    node.configure_topic(message_timestamp_before_max_ms="1000")
    assert node.produce(batch(timestamp=NOW_MS - 1001)).error_code == ErrorCode.INVALID_TIMESTAMP
    assert node.produce(batch(timestamp=NOW_MS - 1000)).error_code == ErrorCode.NONE


def test_a_record_without_a_key_in_a_compacted_topic(node):
    from ottla.records.builder import build_batch

    node.configure_topic(cleanup_policy="compact")
    answer = node.produce(build_batch(NOW_MS, None, [b"a"]))
    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert [error.batch_index for error in answer.record_errors] == [0]


def test_log_append_time_is_told_and_stored(node):
    node.configure_topic(message_timestamp_type="LogAppendTime")
    assert node.produce(batch(timestamp=1)).log_append_time_ms == NOW_MS
    ((_, header),) = complete_batches(bytes(node.fetch().records))
    assert (header.max_timestamp, header.is_log_append_time) == (NOW_MS, True)


@pytest.mark.parametrize(("version", "error"), [(6, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE), (7, ErrorCode.NONE)])
def test_zstd_is_for_versions_that_know_it(node, version, error):
    request = produce_request(batch(b"a" * 100, compression=Compression.ZSTD))
    assert only(node.send(request, version)).error_code == error


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_a_topic_may_ask_for_one_codec(node, codec):
    node.configure_topic(compression_type=codec)
    assert node.produce(batch(b"a" * 1000)).error_code == ErrorCode.NONE
    data = node.fetch()
    ((_, header),) = complete_batches(bytes(data.records))
    assert header.compression == Compression[codec.upper()]
    assert values_in(data) == [b"a" * 1000]


def test_a_transactional_batch_waits_at_the_client_until_there_is_a_coordinator(node):
    records = produced(7, 0, transactional=True)
    request = produce_request(records, transactional_id="mine")
    assert only(node.send(request, 12)).error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert node.partition().log.log_end_offset == 0


def test_a_transactional_batch_without_a_transactional_id(node):
    answer = node.produce(produced(7, 0, transactional=True))
    assert answer.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


# Idempotent producers


def test_a_repeated_batch_is_acknowledged_with_its_first_offset(node):
    for sequence in range(5):
        node.produce(produced(7, sequence))
    answer = node.produce(produced(7, 1))
    assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, 1)
    assert answer.log_append_time_ms == NOW_MS
    assert node.partition().log.log_end_offset == 5


def test_a_batch_that_is_older_than_the_last_five(node):
    for sequence in range(7):
        node.produce(produced(7, sequence))
    assert node.produce(produced(7, 0)).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_gap_in_the_sequence(node):
    node.produce(produced(7, 0, b"a", b"b"))
    answer = node.produce(produced(7, 3))
    assert answer.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert answer.log_start_offset == 0


def test_a_producer_of_an_old_epoch(node):
    node.produce(produced(7, 0, epoch=1))
    assert node.produce(produced(7, 1, epoch=0)).error_code == ErrorCode.INVALID_PRODUCER_EPOCH


def test_an_unknown_producer_may_begin_anywhere(node):
    assert node.produce(produced(7, 41)).error_code == ErrorCode.NONE


# The disk


def test_a_full_disk_refuses_writes_and_serves_reads():
    disk = MemoryDisk()
    node = TestNode(disk)
    node.create_topic()
    node.produce(batch(b"kept"))
    disk.fail_from(disk.calls + 1, errno.ENOSPC)
    assert node.produce(batch(b"lost")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert values_in(node.fetch()) == [b"kept"]
    disk.repair()
    assert node.produce(batch(b"more")).base_offset == 1
    assert values_in(node.fetch()) == [b"kept", b"more"]


def test_a_node_that_may_open_no_more_files_keeps_its_directories():
    disk = MemoryDisk()
    node = TestNode(disk)
    node.create_topic()
    disk.fail_from(disk.calls + 1, errno.EMFILE)
    assert node.produce(batch(b"lost")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    disk.repair()
    assert node.produce(batch(b"kept")).base_offset == 0
    assert values_in(node.fetch()) == [b"kept"]


def test_a_failing_disk_takes_its_directory_offline_and_the_others_go_on():
    disk = MemoryDisk()
    node = TestNode(disk, log_dirs=("/one", "/two"))
    told: list[str] = []
    node.broker.partition_events.on_directory_failed = lambda directory, problem: told.append(directory)
    node.create_topic("orders", partitions=2)
    assert {node.partition(index=index).directory for index in (0, 1)} == {"/one", "/two"}
    failing = node.partition().directory
    disk.fail_at(disk.calls + 1, errno.EIO)
    assert node.produce(batch()).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert told == [failing]
    assert node.produce(batch()).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert node.fetch().error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert node.fetch(version=5).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER  # the version has no other word
    assert node.produce(batch(b"fine"), index=1).error_code == ErrorCode.NONE


# Waiting for the disk


def test_flush_messages_makes_producers_wait_for_the_disk():
    node = TestNode()
    node.create_topic(flush_messages="1")
    node.workers.hold()
    replies = [node.ask(produce_request(batch(value), acks=acks), 9) for value, acks in ((b"a", 1), (b"b", -1))]
    assert not any(reply.is_here for reply in replies)
    assert node.fetch().high_watermark == 0  # nobody reads what a power cut could take away
    node.workers.step()  # the first flush began before the second batch came
    assert [reply.is_here for reply in replies] == [True, False]
    node.workers.step()
    assert only(replies[1].message).error_code == ErrorCode.NONE
    assert values_in(node.fetch()) == [b"a", b"b"]
    assert node.partition().log.recovery_point == 2


def test_a_failing_flush_is_no_acknowledgement():
    disk = MemoryDisk()
    node = TestNode(disk)
    node.create_topic(flush_messages="1")
    node.workers.hold()
    reply = node.ask(produce_request(batch()), 9)
    disk.fail_from(disk.calls + 1, errno.EIO)
    node.workers.let_go()
    assert only(reply.message).error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_disk_that_fails_for_one_partition_takes_those_that_wait_with_it():
    disk = MemoryDisk()
    node = TestNode(disk)
    node.create_topic("shared", partitions=2, replicas=(1, 2))
    request = produce_request(batch(b"a"), "shared")
    request.topic_data[0].partition_data.append(ProduceRequest.PartitionProduceData(index=1, records=batch(b"b")))
    disk.fail_at(disk.calls + 2, errno.EIO)
    reply = node.ask(request, 9)
    answers = reply.message.responses[0].partition_responses
    assert [answer.error_code for answer in answers] == [ErrorCode.KAFKA_STORAGE_ERROR] * 2
