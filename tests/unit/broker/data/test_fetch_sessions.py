"""Incremental fetch sessions (KIP-227), as a conversation between a client and the node."""

import pytest

from ottla.wire.errors import ErrorCode
from ottla.wire.messages import FetchRequest
from tests.unit.broker.brokers import NODE_ID, TestNode, batch, topic_id_of, values_in

TWO_MINUTES_MS = 120_000


class Consumer:
    """A client that keeps a session. `topics` say what a request names, as {topic: {partition: offset}}."""

    def __init__(self, node: TestNode, version: int = 12, replica_id: int = -1) -> None:
        self.node = node
        self.version = version
        self.replica_id = replica_id
        self.session_id = 0
        self.epoch = 0

    def ask(self, topics=None, forget=None, max_wait_ms: int = 0):
        request = FetchRequest(
            replica_id=self.replica_id,
            max_bytes=1 << 20,
            min_bytes=1,
            max_wait_ms=max_wait_ms,
            session_id=self.session_id,
            session_epoch=self.epoch,
            topics=[
                FetchRequest.FetchTopic(
                    **self._name(topic),
                    partitions=[
                        FetchRequest.FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
                        for index, offset in partitions.items()
                    ],
                )
                for topic, partitions in (topics or {}).items()
            ],
            forgotten_topics_data=[
                FetchRequest.ForgottenTopic(**self._name(topic), partitions=partitions)
                for topic, partitions in (forget or {}).items()
            ],
        )
        if self.version < 7:
            request.session_id, request.session_epoch = 0, -1
        return self.node.ask(request, self.version)

    def fetch(self, topics=None, forget=None):
        """Sends the next request of the session; returns the reply."""
        reply = self.ask(topics, forget).message
        if not reply.error_code:
            self.session_id = reply.session_id
            self.epoch = self.epoch + 1 if reply.session_id else 0
        return reply

    def _name(self, topic: str):
        return {"topic": topic} if self.version < 13 else {"topic_id": topic_id_of(topic)}


def news(reply) -> dict[int, list[bytes]]:
    return {data.partition_index: values_in(data) for topic in reply.responses for data in topic.partitions}


@pytest.fixture
def node() -> TestNode:
    node = TestNode()
    node.create_topic("orders", partitions=3)
    return node


@pytest.mark.parametrize("version", [7, 12, 13, 18])
def test_after_the_first_fetch_only_what_is_new_is_told(node, version):
    consumer = Consumer(node, version)
    assert news(consumer.fetch({"orders": {0: 0, 1: 0}})) == {0: [], 1: []}
    assert consumer.session_id != 0
    assert news(consumer.fetch()) == {}
    node.produce(batch(b"a"), index=1)
    assert news(consumer.fetch()) == {1: [b"a"]}
    assert news(consumer.fetch({"orders": {1: 1}})) == {}


def test_a_higher_high_watermark_is_news(node):
    node.create_topic("shared", replicas=(1, 2))
    consumer = Consumer(node)
    consumer.fetch({"shared": {0: 0}})
    node.partition("shared").state.on_fetched(2, 0, 0, 0)
    node.produce(batch(b"a"), "shared", acks=1)
    assert news(consumer.fetch()) == {}
    follower = Consumer(node, replica_id=2)
    follower.fetch({"shared": {0: 1}})
    assert news(consumer.fetch()) == {0: [b"a"]}
    assert news(consumer.fetch({"shared": {0: 1}})) == {}


def test_a_higher_log_start_offset_is_news(node):
    node.produce(batch(b"a"))
    consumer = Consumer(node)
    consumer.fetch({"orders": {0: 1}})
    node.partition().log.advance_log_start_offset(1)
    reply = consumer.fetch()
    assert reply.responses[0].partitions[0].log_start_offset == 1
    assert news(consumer.fetch()) == {}


def test_partitions_can_be_added_and_forgotten(node):
    consumer = Consumer(node)
    consumer.fetch({"orders": {0: 0}})
    assert news(consumer.fetch({"orders": {2: 0}})) == {2: []}
    for index in (0, 2):
        node.produce(batch(b"a"), index=index)
    assert news(consumer.fetch(forget={"orders": [0]})) == {2: [b"a"]}


def test_a_session_that_has_forgotten_everything_is_closed(node):
    consumer = Consumer(node)
    consumer.fetch({"orders": {0: 0}})
    assert consumer.fetch(forget={"orders": [0]}).session_id == 0
    assert len(node.broker.fetch_sessions) == 0


def test_an_error_is_told_every_time_and_its_end_too(node):
    consumer = Consumer(node)
    consumer.fetch({"orders": {0: 0}, "later": {0: 0}})
    for _ in range(2):
        (topic,) = consumer.fetch().responses
        assert (topic.topic, topic.partitions[0].error_code) == ("later", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    node.create_topic("later")
    (topic,) = consumer.fetch().responses
    assert (topic.topic, topic.partitions[0].error_code) == ("later", 0)
    assert news(consumer.fetch()) == {}


def test_a_topic_id_that_becomes_known_is_found_by_the_session(node):
    consumer = Consumer(node, 13)
    reply = consumer.fetch({"later": {0: 0}})
    assert reply.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
    node.create_topic("later")
    node.produce(batch(b"a"), "later")
    assert news(consumer.fetch()) == {0: [b"a"]}


def test_a_topic_that_was_deleted_and_made_again_is_another_one(node):
    consumer = Consumer(node, 13)
    consumer.fetch({"orders": {0: 0}})
    node.delete_topic()
    node.create_topic("orders", id=topic_id_of("orders, again"))
    (topic,) = consumer.fetch().responses
    assert topic.partitions[0].error_code == ErrorCode.INCONSISTENT_TOPIC_ID


def test_partitions_that_were_served_go_to_the_end_of_the_row(node):
    for index in range(3):
        node.produce(batch(b"a"), index=index)
    consumer = Consumer(node)
    consumer.fetch({"orders": {0: 1, 1: 1, 2: 1}})
    node.produce(batch(b"b"), index=0)
    consumer.fetch()
    for index in range(3):
        node.produce(batch(b"c"), index=index)
    assert list(news(consumer.fetch())) == [1, 2, 0]


def test_a_session_waits_like_any_fetch(node):
    consumer = Consumer(node)
    consumer.fetch({"orders": {0: 0, 1: 0}})
    reply = consumer.ask(max_wait_ms=500)
    assert not reply.is_here
    node.produce(batch(b"a"), index=1)
    assert news(reply.message) == {1: [b"a"]}


# Two sides that disagree


def test_an_unknown_session(node):
    consumer = Consumer(node)
    consumer.session_id, consumer.epoch = 4711, 1
    reply = consumer.fetch()
    assert reply.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert (reply.session_id, reply.responses) == (0, [])


def test_an_epoch_that_is_not_the_next(node):
    consumer = Consumer(node)
    consumer.fetch({"orders": {0: 0}})
    consumer.epoch = 5
    assert consumer.fetch().error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    consumer.epoch = 1
    assert consumer.fetch().error_code == ErrorCode.NONE


def test_a_request_that_its_client_has_given_up_on(node):
    consumer = Consumer(node)
    consumer.fetch({"orders": {0: 0}})
    first = consumer.ask(max_wait_ms=500)
    consumer.epoch += 1
    second = consumer.ask(max_wait_ms=500)
    node.produce(batch(b"a"))
    assert first.message.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert news(second.message) == {0: [b"a"]}


@pytest.mark.parametrize(("opened_with", "went_on_with"), [(12, 13), (13, 12)])
def test_a_session_is_by_name_or_by_id_and_stays_so(node, opened_with, went_on_with):
    consumer = Consumer(node, opened_with)
    consumer.fetch({"orders": {0: 0}})
    consumer.version = went_on_with
    assert consumer.fetch().error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_the_final_epoch_closes_the_session(node):
    consumer = Consumer(node)
    consumer.fetch({"orders": {0: 0}})
    consumer.epoch = -1
    reply = consumer.fetch({"orders": {0: 0}})
    assert reply.session_id == 0
    assert news(reply) == {0: []}
    assert len(node.broker.fetch_sessions) == 0


def test_a_full_fetch_with_a_session_starts_over(node):
    consumer = Consumer(node)
    first = consumer.fetch({"orders": {0: 0}}).session_id
    consumer.epoch = 0
    second = consumer.fetch({"orders": {0: 0}}).session_id
    assert second not in (0, first)
    assert len(node.broker.fetch_sessions) == 1


def test_a_version_without_sessions_has_none(node):
    assert Consumer(node, 6).fetch({"orders": {0: 0}}).session_id == 0
    assert len(node.broker.fetch_sessions) == 0


# Room


def node_with_slots(slots: int) -> TestNode:
    node = TestNode(max_incremental_fetch_session_cache_slots=str(slots))
    node.create_topic("orders", partitions=3, replicas=(NODE_ID, 2))
    return node


def test_without_room_a_fetch_gets_no_session():
    node = node_with_slots(1)
    assert Consumer(node).fetch({"orders": {0: 0}}).session_id
    reply = Consumer(node).fetch({"orders": {0: 0}})
    assert (reply.error_code, reply.session_id) == (0, 0)
    assert news(reply) == {0: []}


def test_a_session_that_has_not_been_used_makes_room():
    node = node_with_slots(1)
    idle = Consumer(node)
    idle.fetch({"orders": {0: 0}})
    node.clock.advance(TWO_MINUTES_MS + 1)
    assert Consumer(node).fetch({"orders": {0: 0}}).session_id
    assert idle.fetch().error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert node.broker.fetch_sessions.evictions == 1


def test_a_smaller_session_makes_room_when_it_is_old_enough():
    node = node_with_slots(1)
    small = Consumer(node)
    small.fetch({"orders": {0: 0}})
    large = {"orders": {0: 0, 1: 0}}
    assert not Consumer(node).fetch(large).session_id
    node.clock.advance(TWO_MINUTES_MS + 1)
    small.fetch()
    assert Consumer(node).fetch(large).session_id
    assert small.fetch().error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_larger_session_does_not_make_room():
    node = node_with_slots(1)
    large = Consumer(node)
    large.fetch({"orders": {0: 0, 1: 0}})
    node.clock.advance(TWO_MINUTES_MS + 1)
    large.fetch()
    assert not Consumer(node).fetch({"orders": {0: 0}}).session_id


def test_followers_come_before_consumers():
    node = node_with_slots(1)
    Consumer(node).fetch({"orders": {0: 0, 1: 0}})
    assert Consumer(node, replica_id=2).fetch({"orders": {0: 0}}).session_id
