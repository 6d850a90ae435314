"""Fetches that come again from other offsets: which are known, and which are decoded after all."""

import pytest
from brokers import TestNode, batch, fetch_request, only, topic_id_of, values_in
from repeated_fetches import FETCH, again

from ottla.broker.data import repeated_fetch
from ottla.broker.partitions.partition import Partition
from ottla.runtime.outbox import LITTLE_BYTES
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import FetchRequest

VERSIONS = range(5, 19)


@pytest.fixture(autouse=True)
def in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk of the tests has no page cache that could be asked: here all of it is in memory."""
    monkeypatch.setattr(repeated_fetch, "read_from_memory", lambda part: part.read())


@pytest.fixture
def node() -> TestNode:
    node = TestNode()
    node.create_topic("orders", partitions=2)
    for value in (b"a", b"b", b"c"):
        node.produce(batch(value))
    return node


def fetch(offset: int = 0, **fields: object) -> FetchRequest:
    """As a consumer sends it that takes a batch at a time and waits for the next."""
    return fetch_request(offset, **{"partition_max_bytes": 80, "max_wait_ms": 500, **fields})


@pytest.mark.parametrize("version", VERSIONS)
def test_a_fetch_like_the_one_before_is_answered_undecoded(node: TestNode, version: int) -> None:
    def request(offset: int) -> FetchRequest:
        made = fetch(offset)
        if version >= 13:
            made.topics[0].topic, made.topics[0].topic_id = "", topic_id_of("orders")
        return made

    assert again(node, request(0), version) is None
    decoded = node.send(request(0), version)
    assert values_in(only(decoded)) == [b"a"]
    known = again(node, request(1), version).message
    assert values_in(only(known)) == [b"b"]
    only(known).records = only(decoded).records
    assert known == decoded
    traffic = node.broker.partitions.traffic.of("orders")
    assert (traffic.fetch_requests, traffic.bytes_out) == (2, 2 * len(only(decoded).records))


@pytest.mark.parametrize("level", [1, 2, -1])
@pytest.mark.parametrize("version", [5, 11, 12])
def test_who_reads_committed_records_alone_is_known_too(node: TestNode, level: int, version: int) -> None:
    decoded = node.send(fetch(0, isolation_level=level), version)
    known = again(node, fetch(1, isolation_level=level), version).message
    assert (values_in(only(known)), only(known).aborted_transactions) == ([b"b"], [])
    only(known).records = only(decoded).records
    assert known == decoded


def test_an_open_transaction_is_waited_for_by_who_reads_committed_records_alone(node: TestNode) -> None:
    node.send(fetch(0, isolation_level=1), 11)
    waiting = again(node, fetch(3, isolation_level=1))
    node.partition().log.producers.unreplicated[3] = 9
    node.produce(batch(b"d"))
    assert not waiting.is_here
    node.partition().log.producers.unreplicated.clear()
    node.produce(batch(b"e"))
    assert values_in(only(waiting.message)) == [b"d"]


@pytest.mark.parametrize("size", [10, 50, 51, 52, 53, 54, 55, 2_000])
def test_records_of_any_length_are_framed(node: TestNode, size: int) -> None:
    node.send(fetch(0), 12)
    node.produce(batch(bytes(size)))
    assert values_in(only(again(node, fetch(3), 12).message)) == [bytes(size)]


@pytest.mark.parametrize(
    "other",
    [
        fetch(1, index=1),
        fetch(1, topic="others"),
        fetch(1, partition_max_bytes=81),
        fetch(1, max_wait_ms=501),
        fetch(1, isolation_level=1),
        fetch(1, current_leader_epoch=3),
        fetch(1, session_epoch=0),
    ],
)
def test_another_fetch_is_decoded(node: TestNode, other: FetchRequest) -> None:
    node.send(fetch(0), 11)
    assert again(node, other) is None
    assert again(node, fetch(1), client_id="another") is None
    assert again(node, fetch(1), 10) is None


@pytest.mark.parametrize("offset", [-1, 4, 1 << 40])
def test_an_offset_that_is_not_in_the_log_is_decoded(node: TestNode, offset: int) -> None:
    node.send(fetch(0), 11)
    assert again(node, fetch(offset)) is None


def test_a_fetch_at_the_end_waits_for_what_comes(node: TestNode) -> None:
    node.send(fetch(0), 11)
    waiting = again(node, fetch(3))
    assert not waiting.is_here
    node.produce(batch(b"d"), index=1)
    assert not waiting.is_here
    node.produce(batch(b"d"))
    assert values_in(only(waiting.message)) == [b"d"]
    assert only(waiting.message).high_watermark == 4
    assert len(node.broker.partitions.purgatory) == 0


def test_it_is_known_even_if_it_has_waited_each_time(node: TestNode) -> None:
    first = node.ask(fetch(3), 11)
    node.produce(batch(b"d"))
    second = again(node, fetch(4))
    node.produce(batch(b"e"))
    assert [values_in(only(one.message)) for one in (first, second)] == [[b"d"], [b"e"]]


def test_a_wait_that_is_over_is_answered_with_nothing(node: TestNode) -> None:
    node.send(fetch(0), 11)
    waiting = again(node, fetch(3))
    node.timers.advance(499)
    assert not waiting.is_here
    node.timers.advance(1)
    data = only(waiting.message)
    assert (data.error_code, data.high_watermark, bytes(data.records)) == (ErrorCode.NONE, 3, b"")


def test_who_waits_for_much_is_decoded(node: TestNode) -> None:
    node.send(fetch(0, min_bytes=2), 11)
    assert again(node, fetch(3, min_bytes=2)) is None
    node.ask(fetch(0, min_bytes=1000), 11)
    assert again(node, fetch(1, min_bytes=1000)) is None


def test_who_does_not_wait_is_decoded_at_the_end(node: TestNode) -> None:
    node.send(fetch(0, max_wait_ms=0), 11)
    assert again(node, fetch(3, max_wait_ms=0)) is None


def test_a_partition_that_goes_while_a_fetch_waits_is_told(node: TestNode) -> None:
    node.send(fetch(0), 11)
    waiting = again(node, fetch(3))
    node.change_partition("orders", leader=2, isr=(2,), replicas=(2,))
    assert only(waiting.message).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert again(node, fetch(1)) is None


def test_a_topic_that_goes_while_a_fetch_waits_is_told(node: TestNode) -> None:
    node.send(fetch(0), 11)
    waiting = again(node, fetch(3))
    node.delete_topic("orders")
    assert only(waiting.message).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_leader_of_another_epoch_is_decoded(node: TestNode) -> None:
    node.send(fetch(0, current_leader_epoch=0), 11)
    assert again(node, fetch(1, current_leader_epoch=0)) is not None
    node.partition().leader_epoch = 1
    assert again(node, fetch(1, current_leader_epoch=0)) is None
    assert only(node.send(fetch(1, current_leader_epoch=0), 11)).error_code == ErrorCode.FENCED_LEADER_EPOCH


def test_a_topic_that_was_made_anew_is_not_taken_for_the_one_before(node: TestNode) -> None:
    request = fetch(0)
    request.topics[0].topic, request.topics[0].topic_id = "", topic_id_of("orders")
    node.send(request, 13)
    assert again(node, request, 13) is not None
    node.partition().topic_id = bytes(15) + b"x"
    assert again(node, request, 13) is None


def test_much_is_left_to_the_usual_way(node: TestNode) -> None:
    node.produce(batch(bytes(20_000)))
    node.send(fetch(0), 11)
    assert again(node, fetch(3)) is None


def test_what_is_not_in_memory_is_left_to_the_usual_way(node: TestNode, monkeypatch: pytest.MonkeyPatch) -> None:
    node.send(fetch(0), 11)
    node.produce(batch(bytes(9_000)))
    assert again(node, fetch(3)) is not None
    monkeypatch.setattr(repeated_fetch, "read_from_memory", lambda _: None)
    assert again(node, fetch(3)) is None
    waiting = again(node, fetch(4))
    node.produce(batch(b"e"))
    assert values_in(only(waiting.message)) == [b"e"]


def test_a_disk_that_fails_is_left_to_the_usual_way(node: TestNode, monkeypatch: pytest.MonkeyPatch) -> None:
    node.send(fetch(0), 11)

    def fails(*_: object, **__: object) -> None:
        raise OSError("broken")

    monkeypatch.setattr(Partition, "read", fails)
    assert again(node, fetch(1)) is None


def test_what_was_learned_is_not_learned_again_though_it_has_to_be_decoded(node: TestNode) -> None:
    node.send(fetch(0), 11)
    node.produce(batch(bytes(LITTLE_BYTES)))
    known = dict(node.client.repeated[FETCH]._known)
    assert again(node, fetch(3)) is None
    assert len(only(node.send(fetch(3), 11)).records) > LITTLE_BYTES
    assert all(one is known[around] for around, one in node.client.repeated[FETCH]._known.items())


def test_what_goes_wrong_while_it_waits_costs_its_connection_alone(
    node: TestNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.send(fetch(0), 11)
    waiting = again(node, fetch(3))

    def breaks(*_: object, **__: object) -> None:
        raise RuntimeError("this cannot be")

    with monkeypatch.context() as broken:
        broken.setattr(Partition, "read", breaks)
        assert node.produce(batch(b"d")).error_code == ErrorCode.NONE
    assert not waiting.is_here
    assert [str(problem) for problem in node.line.problems] == ["this cannot be"]
