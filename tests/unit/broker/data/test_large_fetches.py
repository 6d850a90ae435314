"""A fetch of very many partitions is read in steps, and answered as one of few is."""

from collections import Counter
from typing import Any

import pytest

from ottla.broker.data import fetch
from ottla.log.outcomes import FileSlice
from ottla.runtime.request import RequestContext
from ottla.testing.memory_disk import MemoryFile
from ottla.wire.codec import decode, encode
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import FetchRequest
from tests.unit.broker.brokers import TestNode, batch

MANY = 1500
THERE = 40


@pytest.fixture
def node() -> TestNode:
    node = TestNode()
    node.create_topic("orders", partitions=THERE)
    for index in range(THERE):
        node.produce(batch(b"%d" % index), index=index)
    return node


def request(count: int = MANY, **fields: Any) -> FetchRequest:
    """Of one topic that is there, in part, and of many that are not."""
    partitions = [
        FetchRequest.FetchPartition(partition=index, partition_max_bytes=1 << 20) for index in range(count // 2)
    ]
    topics = [FetchRequest.FetchTopic(topic="orders", partitions=partitions)]
    topics += [FetchRequest.FetchTopic(topic=f"t{number}", partitions=partitions[:1]) for number in range(count // 2)]
    return FetchRequest(**{"max_bytes": 1 << 30, "min_bytes": 0, "max_wait_ms": 0, **fields}, topics=topics)


def answers(response: Any) -> list[tuple[Any, ...]]:
    found = [(topic.topic, one) for topic in response.responses for one in topic.partitions]
    return [
        (topic, one.partition_index, one.error_code, one.high_watermark, content(one.records)) for topic, one in found
    ]


def content(records: Any) -> bytes:
    return records.read() if isinstance(records, FileSlice) else bytes(records or b"")


class Stepping(RequestContext):
    """A request whose steps are made when the test says so. What its reply has is read when it is given."""

    __slots__ = ("steps",)

    def go_through(self, steps: Any, *, in_order: bool = True) -> None:
        self.steps = steps


def begun(node: TestNode, asked: FetchRequest, version: int = 12) -> tuple[Stepping, list[Any]]:
    replies: list[Any] = []
    data = encode(asked, version)
    context = Stepping(1, version, 7, "c", node.client, 0.0, len(data))
    node._handle(context, decode(FetchRequest, data, version), lambda reply: replies.append(answers(reply)))
    return context, replies


def test_it_is_answered_as_many_small_ones(node: TestNode, monkeypatch: pytest.MonkeyPatch) -> None:
    large = node.send(request(), 12)
    monkeypatch.setattr(fetch, "MOST_BYTES_AT_ONCE", 1 << 30)
    monkeypatch.setattr(fetch, "MOST_ENTRIES_AT_ONCE", 1 << 30)
    whole = node.send(request(), 12)
    assert answers(large) == answers(whole)
    assert sum(bool(one[4]) for one in answers(large)) == THERE
    assert [len(topic.partitions) for topic in large.responses] == [MANY // 2] + [1] * (MANY // 2)


def test_the_limit_of_bytes_is_one_for_all_steps(node: TestNode) -> None:
    size = len(batch(b"0"))
    few = answers(node.send(request(max_bytes=10 * size), 12))
    assert sum(len(one[4]) for one in few) <= 11 * size
    assert sum(bool(one[4]) for one in few) >= 9


def test_a_session_of_very_many_partitions_goes_on(node: TestNode) -> None:
    opened = node.send(request(session_id=0, session_epoch=0), 12)
    assert opened.session_id
    node.produce(batch(b"more"), index=3)
    following = FetchRequest(max_bytes=1 << 20, min_bytes=0, session_id=opened.session_id, session_epoch=1)
    context, replies = begun(node, following)
    list(context.steps)
    [reply] = replies
    known = [one for one in reply if not one[2]]
    assert [one[1] for one in known if one[3] == 2] == [3]


@pytest.mark.parametrize("is_dropped", [False, True])
def test_files_are_held_from_the_step_that_read_them_to_the_reply_or_the_end(
    node: TestNode, monkeypatch: pytest.MonkeyPatch, is_dropped: bool
) -> None:
    """The log of one may be deleted between two steps."""
    held = Counter[MemoryFile]()
    monkeypatch.setattr(MemoryFile, "pin", lambda file: held.update([file]))
    monkeypatch.setattr(MemoryFile, "unpin", lambda file: held.subtract([file]))
    context, replies = begun(node, request())
    list(context.steps)  # The partitions are looked up, and reading them is the next work.
    steps = context.steps
    for _ in range(3):
        next(steps)
    assert sum(held.values()) == THERE
    if is_dropped:
        steps.close()
    else:
        list(steps)
        [reply] = replies
        assert sum(bool(one[4]) for one in reply) == THERE
    assert set(held.values()) == {0}


def test_it_waits_and_is_woken_like_any_other(node: TestNode) -> None:
    asked = request(max_wait_ms=500, min_bytes=1)
    for topic in asked.topics:
        for one in topic.partitions:
            one.fetch_offset = 1
    asked.topics[0].partitions = asked.topics[0].partitions[:THERE]
    reply = node.ask(asked, 12)
    assert not reply.is_here
    node.produce(batch(b"new"), index=7)
    assert [one[1] for one in answers(reply.message) if one[4]] == [7]


def test_an_unknown_topic_is_told_for_each(node: TestNode) -> None:
    errors = {one[2] for one in answers(node.send(request(), 12)) if one[0] != "orders"}
    assert errors == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
