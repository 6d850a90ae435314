"""Requests that come again, with another batch: which are known, and which are decoded after all."""

import pytest
from brokers import TestNode, batch, fetch_request, only, produce_request, topic_id_of, values_in

from ottla.broker.data import repeated_produce
from ottla.records.kernel import IS_COMPILED
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import ProduceRequest

pytestmark = pytest.mark.skipif(not IS_COMPILED, reason="without a compiler every request is decoded")


@pytest.fixture
def node() -> TestNode:
    node = TestNode()
    node.create_topic("orders", partitions=2)
    return node


def again(node: TestNode, request: ProduceRequest, version: int = 12, client_id: str | None = None):
    """The reply to a request that is not decoded; None if it is not known."""
    return node.ask_again(request, version, client_id)


@pytest.mark.parametrize("version", range(5, 14))
def test_a_request_like_the_one_before_is_answered_undecoded(node, version):
    def request(*values: bytes) -> ProduceRequest:
        made = produce_request(batch(*values))
        if version >= 13:
            made.topic_data[0].name, made.topic_data[0].topic_id = "", topic_id_of("orders")
        return made

    assert again(node, request(b"a"), version) is None
    decoded = node.send(request(b"a"), version)
    reply = again(node, request(b"b", b"c"), version).message
    assert only(reply).base_offset == 1
    only(reply).base_offset = 0
    assert reply == decoded
    assert values_in(node.fetch()) == [b"a", b"b", b"c"]
    traffic = node.broker.partitions.traffic.of("orders")
    assert (traffic.produce_requests, traffic.messages_in) == (2, 3)


@pytest.mark.parametrize(
    "other",
    [
        produce_request(batch(b"b"), index=1),
        produce_request(batch(b"b"), acks=1),
        produce_request(batch(b"b"), acks=0),
        produce_request(batch(b"b") + batch(b"c")),
        produce_request(bytearray(100)),
        produce_request(batch(b"b"), transactional_id="t"),
    ],
)
def test_another_request_is_decoded_and_nothing_has_happened(node, other):
    node.send(produce_request(batch(b"a")), 12)
    assert again(node, other) is None
    assert again(node, produce_request(batch(b"b")), client_id="another") is None
    assert values_in(node.fetch()) == [b"a"]


def test_what_one_connection_has_learned_serves_others_that_look_in_the_same_place(node):
    node.send(produce_request(batch(b"a"), index=0), 12)
    node.send(produce_request(batch(b"a"), index=1), 12)
    for index in (0, 1, 0):
        assert only(again(node, produce_request(batch(b"b"), index=index)).message).index == index


def test_without_a_reply_there_is_nothing_to_learn(node):
    node.ask(produce_request(batch(b"a"), acks=0), 12)
    assert again(node, produce_request(batch(b"b"), acks=0)) is None


def test_a_topic_that_was_made_anew_is_not_taken_for_the_one_before(node):
    by_id = produce_request(batch(b"a"))
    by_id.topic_data[0].name, by_id.topic_data[0].topic_id = "", topic_id_of("orders")
    node.send(by_id, 13)
    node.partition().topic_id = bytes(15) + b"x"
    by_id.topic_data[0].partition_data[0].records = batch(b"b")
    assert again(node, by_id, 13) is None


def test_a_partition_that_is_gone_is_not_written_to(node):
    node.send(produce_request(batch(b"a")), 12)
    del node.broker.partitions["orders", 0]
    assert again(node, produce_request(batch(b"b"))) is None


def test_what_is_repeated_is_told_so_undecoded_or_not(node):
    fields = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    node.send(produce_request(batch(b"a", **fields)), 12)
    reply = again(node, produce_request(batch(b"a", **fields))).message
    assert (only(reply).error_code, only(reply).base_offset) == (ErrorCode.NONE, 0)
    gap = again(node, produce_request(batch(b"a", **{**fields, "base_sequence": 5}))).message
    assert only(gap).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert values_in(node.fetch()) == [b"a"]


def test_a_fetch_that_waits_is_woken(node):
    node.send(produce_request(batch(b"a")), 12)
    waiting = node.ask(fetch_request(offset=1, max_wait_ms=1000), 11)
    assert not waiting.is_here
    assert again(node, produce_request(batch(b"b"))).is_here
    assert values_in(only(waiting.message)) == [b"b"]


def test_acks_of_all_wait_for_followers(node):
    node.create_topic("shared", replicas=(1, 2))
    node.send(produce_request(batch(b"a"), "shared", acks=1), 12)
    assert again(node, produce_request(batch(b"b"), "shared", acks=1)) is None  # It was not settled, and not learned.


def test_a_segment_that_is_full_is_flushed(node):
    node.create_topic("small", segment_bytes=str(1 << 20))
    node.send(produce_request(batch(bytes(400_000)), "small"), 12)
    for offset in range(1, 9):
        assert only(again(node, produce_request(batch(bytes(400_000)), "small")).message).base_offset == offset
    log = node.partition("small").log
    assert log.recovery_point == log.segments[-1].base_offset > 0


def test_a_client_that_changes_its_requests_all_the_time_is_not_learned_from_for_ever(node, monkeypatch):
    monkeypatch.setattr(repeated_produce, "_MOST_LESSONS", 3)
    monkeypatch.setattr(repeated_produce, "_MOST_KNOWN", 2)
    for number in range(5):
        request = produce_request(batch(b"a"))
        request.timeout_ms = 1000 + number
        node.send(request, 12)
    assert len(node.broker.partitions.repeated_requests.of("User:ANONYMOUS", "127.0.0.1")) == 1


def test_what_one_principal_taught_is_of_no_use_to_another(node):
    node.send(produce_request(batch(b"a")), 12)
    node.client.repeated.clear()
    node.client.principal = "User:somebody"
    node.send(produce_request(batch(b"b"), index=1), 12)
    assert again(node, produce_request(batch(b"c"), index=1)) is not None
    assert again(node, produce_request(batch(b"d"))) is None


def test_all_that_was_learned_can_be_forgotten(node):
    node.send(produce_request(batch(b"a")), 12)
    node.broker.partitions.repeated_requests.forget()
    assert again(node, produce_request(batch(b"b"))) is None
