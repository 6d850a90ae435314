"""Fetch, request by request: reading, limits, waiting and fencing. Sessions have their own file."""

import errno

import pytest

from ottla.broker.data import plain_fetch
from ottla.broker.partitions.partition import Partition
from ottla.log.outcomes import FileSlice
from ottla.log.producer_state import AppendOrigin
from ottla.records.batch import complete_batches
from ottla.records.control import EndTransactionMarker, build_end_transaction_marker
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import FetchRequest
from tests.unit.broker.brokers import (
    NOW_MS,
    TestNode,
    batch,
    fetch_request,
    only,
    produced,
    topic_id_of,
    values_in,
)

VERSIONS = range(4, 19)


@pytest.fixture(autouse=True, params=["compiled", "in Python"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain fetches are read by compiled code, where there is any. `Fetch` must answer the same."""
    if request.param == "in Python":
        monkeypatch.setattr(plain_fetch, "read_all_plain", plain_fetch.read_none)


@pytest.fixture
def node() -> TestNode:
    node = TestNode()
    node.create_topic("orders", partitions=3)
    return node


def several(*partitions: tuple[int, int], **fields) -> FetchRequest:
    """Fetches (partition, offset) pairs of `orders`."""
    request = fetch_request(**fields)
    request.topics[0].partitions = [
        FetchRequest.FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
        for index, offset in partitions
    ]
    return request


def by_index(reply) -> dict[int, list[bytes]]:
    return {data.partition_index: values_in(data) for topic in reply.responses for data in topic.partitions}


@pytest.mark.parametrize("version", VERSIONS)
def test_records_from_an_offset_on(node, version):
    node.produce(batch(b"a"))
    node.produce(batch(b"b"))
    request = fetch_request(1)
    if version >= 13:
        request.topics[0].topic, request.topics[0].topic_id = "", topic_id_of("orders")
    reply = node.send(request, version)
    data = only(reply)
    assert values_in(data) == [b"b"]
    assert (data.error_code, data.high_watermark, data.last_stable_offset) == (0, 2, 2)
    assert data.log_start_offset == (0 if version >= 5 else -1)
    assert data.aborted_transactions is None
    assert data.preferred_read_replica == -1
    (topic,) = reply.responses
    assert (topic.topic, topic.topic_id) == (("", topic_id_of("orders")) if version >= 13 else ("orders", bytes(16)))


def test_a_batch_comes_whole_from_any_offset_in_it(node):
    node.produce(batch(b"a", b"b", b"c"))
    assert values_in(node.fetch(2)) == [b"a", b"b", b"c"]


def test_the_end_of_the_log_is_empty_and_no_error(node):
    node.produce(batch(b"a"))
    data = node.fetch(1)
    assert (data.error_code, bytes(data.records)) == (0, b"")


@pytest.mark.parametrize("offset", [-1, 3])
def test_an_offset_outside_of_the_log(node, offset):
    node.produce(batch(b"a", b"b"))
    data = node.fetch(offset)
    assert data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert (data.high_watermark, data.log_start_offset) == (-1, -1)


def test_an_offset_before_the_log_start(node):
    for value in (b"a", b"b"):
        node.produce(batch(value))
    node.partition().log.advance_log_start_offset(1)
    assert node.fetch(0).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert values_in(node.fetch(1)) == [b"b"]


# Limits (KIP-74)


def test_the_first_batch_comes_whole_however_small_the_limits(node):
    node.produce(batch(b"a" * 1000))
    assert values_in(node.fetch(partition_max_bytes=10)) == [b"a" * 1000]
    assert values_in(node.fetch(max_bytes=10)) == [b"a" * 1000]


def test_max_bytes_of_a_partition_may_cut_a_later_batch(node):
    size = len(batch(b"a"))
    for _ in range(3):
        node.produce(batch(b"a"))
    data = node.fetch(partition_max_bytes=2 * size + 5)
    assert len(data.records) == 2 * size + 5
    assert values_in(data) == [b"a", b"a"]


def test_max_bytes_of_a_request_counts_for_all_its_partitions(node):
    for index in range(3):
        node.produce(batch(b"a" * 100), index=index)
    size = len(batch(b"a" * 100))
    reply = node.send(several((0, 0), (1, 0), (2, 0), max_bytes=2 * size), 12)
    assert by_index(reply) == {0: [b"a" * 100], 1: [b"a" * 100], 2: []}


def test_a_batch_that_does_not_fit_after_others_is_left_out(node):
    node.produce(batch(b"small"), index=0)
    node.produce(batch(b"large" * 100), index=1)
    reply = node.send(several((0, 0), (1, 0), max_bytes=200), 12)
    assert [len(data.records) for data in reply.responses[0].partitions] == [len(batch(b"small")), 0]


def test_the_broker_has_a_limit_of_its_own():
    node = TestNode(fetch_max_bytes="1024")
    node.create_topic()
    for _ in range(4):
        node.produce(batch(bytes(400)))
    assert len(node.fetch().records) == 1024


# Waiting


def test_a_fetch_with_nothing_to_read_waits_for_an_append(node):
    reply = node.ask(fetch_request(0, max_wait_ms=500), 12)
    assert not reply.is_here
    node.produce(batch(b"a"), index=1)  # elsewhere
    assert not reply.is_here
    node.produce(batch(b"a"))
    assert values_in(only(reply.message)) == [b"a"]
    assert len(node.timers) == 0
    assert node.partition().waiting is None


def test_a_fetch_waits_no_longer_than_max_wait(node):
    reply = node.ask(fetch_request(0, max_wait_ms=500), 12)
    node.timers.advance(499)
    assert not reply.is_here
    node.timers.advance(1)
    assert bytes(only(reply.message).records) == b""
    assert len(node.broker.partitions.purgatory) == 0


def test_a_fetch_waits_for_min_bytes_from_all_its_partitions(node):
    size = len(batch(b"a"))
    node.produce(batch(b"a"))
    reply = node.ask(several((0, 0), (1, 0), max_wait_ms=500, min_bytes=3 * size), 12)
    node.produce(batch(b"b"), index=1)
    assert not reply.is_here
    node.produce(batch(b"c"), index=1)
    assert by_index(reply.message) == {0: [b"a"], 1: [b"b", b"c"]}


def test_min_bytes_beyond_max_bytes_asks_for_max_bytes(node):
    node.produce(batch(b"a" * 100))
    assert values_in(node.fetch(min_bytes=1 << 30, max_bytes=100, max_wait_ms=500)) == [b"a" * 100]


def test_an_error_does_not_wait(node):
    reply = node.ask(several((0, 0), (1, 99), max_wait_ms=500), 12)
    assert [data.error_code for data in reply.message.responses[0].partitions] == [0, ErrorCode.OFFSET_OUT_OF_RANGE]


def test_an_unknown_partition_does_not_keep_the_others_from_waiting(node):
    reply = node.ask(several((0, 0), (9, 0), max_wait_ms=500), 12)
    assert not reply.is_here
    node.produce(batch(b"a"))
    errors = {data.partition_index: data.error_code for data in reply.message.responses[0].partitions}
    assert errors == {0: 0, 9: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_a_request_that_only_has_unknown_partitions_does_not_wait(node):
    assert node.fetch(topic="nobody", max_wait_ms=500).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_fetch_of_a_deleted_topic_is_answered(node):
    reply = node.ask(fetch_request(0, max_wait_ms=500), 12)
    node.delete_topic()
    assert only(reply.message).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_fetch_is_answered_when_leadership_goes(node):
    node.register_broker(2, "other.example", 9092)
    node.create_topic("shared", replicas=(1, 2))
    reply = node.ask(fetch_request(0, "shared", max_wait_ms=500, current_leader_epoch=-1), 10)
    followed = node.ask(fetch_request(0, "shared", max_wait_ms=500, current_leader_epoch=0), 12)
    node.change_partition("shared", leader=2)
    assert only(reply.message).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert only(followed.message).error_code == ErrorCode.FENCED_LEADER_EPOCH


def test_the_fetch_of_a_client_that_has_gone_is_forgotten(node):
    node.ask(fetch_request(0, max_wait_ms=1 << 30), 12)
    node.client.is_open = False
    node.broker.partitions.purgatory.drop_closed()
    assert len(node.broker.partitions.purgatory) == 0
    assert len(node.timers) == 0


# Fencing (KIP-320)


def test_leader_epochs_that_are_not_the_current_one(node):
    node.create_topic("later", leader_epoch=5)
    assert node.fetch(topic="later", current_leader_epoch=4).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert node.fetch(topic="later", current_leader_epoch=6).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert node.fetch(topic="later", current_leader_epoch=5).error_code == ErrorCode.NONE


def test_who_asks_the_wrong_node_is_told_the_leader_and_its_address(node):
    node.register_broker(2, "other.example", 9092)
    topic_id = node.create_topic("theirs", replicas=(1, 2), leader=2, leader_epoch=3)
    request = fetch_request(topic="", current_leader_epoch=2)
    request.topics[0].topic_id = topic_id
    reply = node.send(request, 16)
    data = only(reply)
    assert data.error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert (data.current_leader.leader_id, data.current_leader.leader_epoch) == (2, 3)
    assert [(one.node_id, one.host, one.port) for one in reply.node_endpoints] == [(2, "other.example", 9092)]


def test_a_client_whose_log_parted_from_ours_is_told_where(node):
    node.create_topic("shared", replicas=(1, 2), isr=(1,))
    node.produce(batch(b"a"), "shared")
    node.change_partition("shared", leader=2)
    node.change_partition("shared", leader=1)  # epoch 2 begins at offset 1
    node.produce(batch(b"b"), "shared")
    data = node.fetch(2, "shared", last_fetched_epoch=1, max_wait_ms=500)
    assert (data.error_code, bytes(data.records)) == (0, b"")
    assert (data.diverging_epoch.epoch, data.diverging_epoch.end_offset) == (0, 1)
    assert values_in(node.fetch(1, "shared", last_fetched_epoch=0)) == [b"b"]


def test_a_session_that_goes_on_in_an_older_version_is_not_told_where_logs_part(node):
    """Found by the fuzz: the older version has no place for it, and the reply could not be written."""
    node.create_topic("shared", replicas=(1, 2), isr=(1,))
    node.produce(batch(b"a"), "shared")
    node.change_partition("shared", leader=2)
    node.change_partition("shared", leader=1)
    node.produce(batch(b"b"), "shared")
    request = fetch_request(2, topic="shared", last_fetched_epoch=1, session_epoch=0)
    session_id = node.send(request, 12).session_id
    assert session_id
    reply = node.send(FetchRequest(session_id=session_id, session_epoch=1, max_bytes=1 << 20), 10)
    assert reply.error_code == 0
    assert [data.error_code for topic in reply.responses for data in topic.partitions] in ([], [0])


def test_an_epoch_that_this_log_has_never_seen(node):
    assert node.fetch(0, last_fetched_epoch=9).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize("version", range(4, 13))
def test_errors_in_every_version(node, version):
    node.create_topic("theirs", replicas=(1, 2), leader=2)
    assert node.fetch(99, version=version).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    can_follow = version >= 11  # KIP-392
    error = ErrorCode.NONE if can_follow else ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert node.fetch(topic="theirs", version=version).error_code == error
    assert node.fetch(topic="nobody", version=version).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


# Topic ids (KIP-516)


def test_an_unknown_topic_id(node):
    request = fetch_request(topic="")
    request.topics[0].topic_id = topic_id_of("nobody")
    reply = node.send(request, 13)
    assert only(reply).error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert reply.responses[0].topic_id == topic_id_of("nobody")


# Isolation (KIP-98)


def transactions(node: TestNode) -> None:
    """Offset 0 aborted by producer 7, its marker at 1; 2 of producer 8, undecided; 3 plain."""
    append = node.partition().append_as_leader
    append(produced(7, 0, b"aborted", transactional=True))
    marker = build_end_transaction_marker(EndTransactionMarker(False, 0), 7, 0, NOW_MS)
    append(marker, AppendOrigin.COORDINATOR)
    append(produced(8, 0, b"open", transactional=True))
    append(batch(b"plain"))


def test_read_committed_ends_before_the_first_open_transaction(node):
    transactions(node)
    data = node.fetch(isolation_level=1)
    assert (data.high_watermark, data.last_stable_offset) == (4, 2)
    assert values_in(data)[:1] == [b"aborted"]
    assert b"open" not in values_in(data)
    assert [(one.producer_id, one.first_offset) for one in data.aborted_transactions] == [(7, 0)]


def test_read_uncommitted_reads_everything_and_hears_of_no_transactions(node):
    transactions(node)
    data = node.fetch()
    assert values_in(data)[-2:] == [b"open", b"plain"]
    assert data.aborted_transactions is None


def test_read_committed_hears_of_the_aborted_transactions_in_what_it_is_sent_and_of_no_others():
    """As with Kafka, up to the next entry of the offset index: there may be some just past what is sent."""
    node = TestNode()
    node.create_topic(index_interval_bytes="1")
    append = node.partition().append_as_leader
    for sequence in range(100):
        append(produced(7, sequence, b"aborted", transactional=True))
        append(build_end_transaction_marker(EndTransactionMarker(False, 0), 7, 0, NOW_MS), AppendOrigin.COORDINATOR)
    everything = node.fetch(isolation_level=1)
    assert [one.first_offset for one in everything.aborted_transactions] == list(range(0, 200, 2))
    some = node.fetch(100, isolation_level=1, partition_max_bytes=len(everything.records) // 20)
    last = list(complete_batches(bytes(some.records)))[-1][1].last_offset
    assert 105 <= last <= 110
    assert [one.first_offset for one in some.aborted_transactions] == list(range(100, last + 1, 2))


def test_read_committed_at_its_end_hears_of_no_aborted_transactions(node):
    transactions(node)
    assert node.fetch(2, isolation_level=1).aborted_transactions == []


def test_a_reader_of_committed_records_waits_for_the_decision(node):
    node.partition().append_as_leader(produced(8, 0, b"mine", transactional=True))
    reply = node.ask(fetch_request(0, isolation_level=1, max_wait_ms=500), 12)
    node.produce(batch(b"plain"))
    assert not reply.is_here
    marker = build_end_transaction_marker(EndTransactionMarker(True, 0), 8, 0, NOW_MS)
    node.partition().append_as_leader(marker, AppendOrigin.COORDINATOR)
    node.broker.partitions.purgatory.wake(node.partition())
    assert values_in(only(reply.message))[:2] == [b"mine", b"plain"]


# Followers


def test_a_follower_reads_to_the_end_and_its_fetches_move_the_high_watermark(node):
    node.create_topic("shared", replicas=(1, 2))
    node.produce(batch(b"a"), "shared", acks=1)
    assert values_in(node.fetch(0, "shared")) == []
    assert values_in(node.fetch(0, "shared", replica_id=2)) == [b"a"]
    waiting = node.ask(fetch_request(0, "shared", max_wait_ms=500), 12)
    assert node.fetch(1, "shared", replica_id=2).high_watermark == 1
    assert values_in(only(waiting.message)) == [b"a"]


def test_a_follower_that_is_none(node):
    assert node.fetch(replica_id=9).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert node.fetch(replica_id=9, current_leader_epoch=0).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_damaged_bytes_are_told_to_who_asks_for_them_and_nobody_else(node):
    for value in (b"a", b"b"):
        node.produce(batch(value))
    node.produce(batch(b"fine"), index=1)
    node.partition().log.active.file.write_at(8, b"\xff" * 4)  # the length of the first batch
    node.partition()._fresh.clear()
    assert node.fetch(0).error_code == ErrorCode.CORRUPT_MESSAGE
    assert values_in(node.fetch(0, index=1)) == [b"fine"]


def test_the_same_partition_twice_counts_as_named_last(node):
    node.produce(batch(b"a"))
    node.produce(batch(b"b"))
    reply = node.send(several((0, 0), (0, 1)), 12)
    assert by_index(reply) == {0: [b"b"]}


def test_a_waiting_fetch_whose_disk_fails_is_told_so_and_the_producer_that_wakes_it_is_not(node, monkeypatch):
    def fails(*_: object, **__: object) -> FileSlice:
        raise OSError(errno.EIO, "Input/output error")

    size = len(batch(b"a"))
    reply = node.ask(several((0, 0), max_wait_ms=500, min_bytes=3 * size), 12)
    assert node.produce(batch(b"a")).error_code == ErrorCode.NONE
    monkeypatch.setattr(Partition, "read", fails)
    assert node.produce(batch(b"b")).error_code == ErrorCode.NONE
    assert only(reply.message).error_code == ErrorCode.KAFKA_STORAGE_ERROR
