"""What a connection has learned of requests that come again with other numbers in them: from whom, and for how long."""

from collections.abc import Callable
from typing import NamedTuple

import pytest
from brokers import NODE_ID, Reply, TestNode, batch, fetch_request

from ottla.broker.data import repeated_fetch
from ottla.broker.partitions import repeated_requests
from ottla.machines.metadata.image.quotas_image import quota_record
from ottla.wire.message import Message
from ottla.wire.messages import OffsetCommitRequest

GROUPS = "__consumer_offsets"


def fetch(offset: int, kind: int = 0) -> Message:
    return fetch_request(offset, partition_max_bytes=80 + kind, max_wait_ms=500)


def commit(offset: int, kind: int = 0) -> Message:
    partition = OffsetCommitRequest.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=offset, committed_leader_epoch=-1, committed_metadata=""
    )
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(name="orders", partitions=[partition])
    return OffsetCommitRequest(group_id=f"group {kind}", topics=[topic])


class Repeated(NamedTuple):
    """`make` takes the number that changes, and what kind of such requests it is."""

    make: Callable[..., Message]
    version: int
    limit: str
    node: TestNode

    def send(self, number: int, kind: int = 0) -> None:
        self.node.send(self.make(number, kind), self.version)

    def again(self, number: int, kind: int = 0) -> Reply | None:
        return self.node.ask_again(self.make(number, kind), self.version)


@pytest.fixture(params=[(fetch, 11, "consumer_byte_rate"), (commit, 9, "request_percentage")], ids=["fetch", "commit"])
def repeated(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Repeated:
    # The disk of the tests has no page cache that could be asked: here all of it is in memory.
    monkeypatch.setattr(repeated_fetch, "read_from_memory", lambda part: part.read())
    node = TestNode()
    node.register_broker(NODE_ID, "here", 9092)
    for topic in (GROUPS, "orders"):
        node.create_topic(topic)
    for value in (b"a", b"b", b"c"):
        node.produce(batch(value))
    return Repeated(*request.param, node)


def test_all_that_was_learned_can_be_forgotten(repeated: Repeated) -> None:
    repeated.send(0)
    repeated.node.broker.partitions.repeated_requests.forget()
    assert repeated.again(1) is None
    repeated.send(1)
    assert repeated.again(2) is not None


def test_a_client_that_has_a_limit_is_not_learned_from(repeated: Repeated) -> None:
    def limit(value: float | None) -> None:
        repeated.node.commit(quota_record(frozenset({("user", "ANONYMOUS")}), repeated.limit, value))

    limit(1e6)
    repeated.send(0)
    assert repeated.again(1) is None
    limit(None)
    repeated.send(0)
    assert repeated.again(1) is not None
    limit(1e6)
    assert repeated.again(1) is None


def test_a_client_that_never_repeats_itself_is_not_learned_from_for_ever(
    repeated: Repeated, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repeated_requests, "MOST_LESSONS", 3)
    for kind in range(5):
        repeated.send(0, kind)
    assert [repeated.again(1, kind) is not None for kind in range(5)] == [True] * 3 + [False] * 2
    repeated.send(0, 4)
    assert repeated.again(1, 4) is not None, "it has repeated itself since"
