"""Errors, dropped connections, delays and throttling, as clients see them: librdkafka, and single replies."""

import time
from collections.abc import Iterator

import confluent_kafka
import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from ottla.base.ids import ZERO_UUID
from ottla.records.builder import build_batch
from ottla.testing import Broker
from ottla.testing.broker.fault_control import FaultRefused
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import (
    ApiVersionsRequest,
    CreateTopicsRequest,
    FetchRequest,
    FindCoordinatorRequest,
    ListOffsetsRequest,
    MetadataRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    ProduceRequest,
)
from tests.interop.wire_connection import WireConnection

PRODUCE_BY_NAME, FETCH_BY_NAME, FETCH_BY_ID = 9, 12, 16


@pytest.fixture
def wire(ottla_broker: Broker) -> Iterator[WireConnection]:
    with WireConnection(ottla_broker.bootstrap) as connection:
        yield connection


def produce_request(*topics: str, acks: int = -1) -> ProduceRequest:
    return ProduceRequest(
        acks=acks,
        timeout_ms=10_000,
        topic_data=[
            ProduceRequest.TopicProduceData(
                name=topic,
                partition_data=[
                    ProduceRequest.PartitionProduceData(index=0, records=build_batch(1_700_000_000_000, None, [b"x"]))
                ],
            )
            for topic in topics
        ],
    )


def produced(reply: object) -> dict[str, tuple[ErrorCode, int]]:
    return {
        topic.name: (ErrorCode(one.error_code), one.base_offset)
        for topic in reply.responses  # type: ignore[attr-defined]
        for one in topic.partition_responses
    }


def end_offset(wire: WireConnection, topic: str) -> int:
    partition = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=-1)
    request = ListOffsetsRequest(topics=[ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=[partition])])
    reply = wire.ask(request, 7)
    offset: int = reply.topics[0].partitions[0].offset
    return offset


@pytest.fixture
def other_topic(ottla_broker: Broker, ottla_topic: str) -> str:
    name = f"other-than-{ottla_topic[-200:]}"
    ottla_broker.create_topic(name)
    return name


# Errors


def test_a_producer_gets_over_errors_that_can_be_retried(ottla_broker: Broker, ottla_topic: str) -> None:
    fault = ottla_broker.fail_next("Produce", "NOT_LEADER_OR_FOLLOWER", times=3, topic=ottla_topic)
    producer = Producer({"bootstrap.servers": ottla_broker.bootstrap, "retry.backoff.ms": 1})
    reports = []
    producer.produce(ottla_topic, "kept", on_delivery=lambda error, _: reports.append(error))
    assert producer.flush(30) == 0
    assert reports == [None]
    assert fault.seen == 3


def test_a_producer_gives_up_on_errors_that_cannot(ottla_broker: Broker, ottla_topic: str) -> None:
    ottla_broker.fail_next("Produce", "MESSAGE_TOO_LARGE", topic=ottla_topic)
    producer = Producer({"bootstrap.servers": ottla_broker.bootstrap})
    reports = []
    producer.produce(ottla_topic, "lost", on_delivery=lambda error, _: reports.append(error))
    assert producer.flush(30) == 0
    assert [error.code() for error in reports] == [confluent_kafka.KafkaError.MSG_SIZE_TOO_LARGE]


def test_only_the_partitions_of_the_topic_fail(
    ottla_broker: Broker, ottla_topic: str, other_topic: str, wire: WireConnection
) -> None:
    ottla_broker.fail_next("Produce", "NOT_ENOUGH_REPLICAS", topic=ottla_topic)
    untouched = wire.ask(produce_request(other_topic), PRODUCE_BY_NAME)
    assert produced(untouched) == {other_topic: (ErrorCode.NONE, 0)}
    reply = wire.ask(produce_request(ottla_topic, other_topic), PRODUCE_BY_NAME)
    assert produced(reply) == {
        ottla_topic: (ErrorCode.NOT_ENOUGH_REPLICAS, -1),
        other_topic: (ErrorCode.NONE, 1),
    }
    assert produced(wire.ask(produce_request(ottla_topic), PRODUCE_BY_NAME)) == {ottla_topic: (ErrorCode.NONE, 0)}


def test_an_error_after_the_effect_leaves_the_records_in_the_log(
    ottla_broker: Broker, ottla_topic: str, wire: WireConnection
) -> None:
    ottla_broker.fail_next("Produce", "REQUEST_TIMED_OUT", effect="after")
    reply = wire.ask(produce_request(ottla_topic), PRODUCE_BY_NAME)
    assert produced(reply) == {ottla_topic: (ErrorCode.REQUEST_TIMED_OUT, -1)}
    assert end_offset(wire, ottla_topic) == 1


def test_a_request_without_a_reply_is_failed_by_hanging_up(
    ottla_broker: Broker, ottla_topic: str, wire: WireConnection
) -> None:
    ottla_broker.fail_next("Produce", "NOT_LEADER_OR_FOLLOWER")
    with pytest.raises(ConnectionError):
        wire.ask(produce_request(ottla_topic, acks=0), PRODUCE_BY_NAME)


def test_a_consumer_gets_over_errors_of_fetches(ottla_broker: Broker, ottla_topic: str) -> None:
    producer = Producer({"bootstrap.servers": ottla_broker.bootstrap})
    producer.produce(ottla_topic, "read")
    producer.flush(30)
    fault = ottla_broker.fail_next("Fetch", "NOT_LEADER_OR_FOLLOWER", times=2, topic=ottla_topic)
    consumer = Consumer({"bootstrap.servers": ottla_broker.bootstrap, "group.id": "readers"})
    consumer.assign([TopicPartition(ottla_topic, 0, 0)])
    assert consumer.poll(30).value() == b"read"
    consumer.close()
    assert fault.seen == 2


def fetch_request(topic: str = "", topic_id: object = ZERO_UUID, session_id: int = 0, epoch: int = -1) -> FetchRequest:
    partition = FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    named = FetchRequest.FetchTopic(topic=topic, topic_id=topic_id, partitions=[partition])  # type: ignore[arg-type]
    return FetchRequest(
        max_wait_ms=20_000,
        min_bytes=1,
        max_bytes=1 << 20,
        session_id=session_id,
        session_epoch=epoch,
        topics=[named] if topic or topic_id != ZERO_UUID else [],
    )


def fetched(reply: object) -> list[tuple[int, ErrorCode]]:
    responses = reply.responses  # type: ignore[attr-defined]
    return [(one.partition_index, ErrorCode(one.error_code)) for topic in responses for one in topic.partitions]


def test_a_fetch_fails_at_its_partitions_and_does_not_wait(
    ottla_broker: Broker, ottla_topic: str, wire: WireConnection
) -> None:
    """It has nothing to read, and would wait for twenty seconds."""
    ottla_broker.fail_next("Fetch", "UNKNOWN_LEADER_EPOCH")
    reply = wire.ask(fetch_request(ottla_topic), FETCH_BY_NAME)
    assert reply.error_code == ErrorCode.NONE
    assert fetched(reply) == [(0, ErrorCode.UNKNOWN_LEADER_EPOCH)]


def test_a_fetch_within_a_session_fails_for_the_topics_that_it_does_not_name(
    ottla_broker: Broker, ottla_topic: str, wire: WireConnection
) -> None:
    metadata = wire.ask(MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=ottla_topic)]), 12)
    topic_id = metadata.topics[0].topic_id
    wire.ask(produce_request(ottla_topic), PRODUCE_BY_NAME)
    opened = wire.ask(fetch_request(topic_id=topic_id, epoch=0), FETCH_BY_ID)
    assert fetched(opened) == [(0, ErrorCode.NONE)]
    assert opened.session_id
    ottla_broker.fail_next("Fetch", "NOT_LEADER_OR_FOLLOWER", topic="another")
    ottla_broker.fail_next("Fetch", "NOT_LEADER_OR_FOLLOWER", topic=ottla_topic)
    failed = wire.ask(fetch_request(session_id=opened.session_id, epoch=1), FETCH_BY_ID)
    assert fetched(failed) == [(0, ErrorCode.NOT_LEADER_OR_FOLLOWER)]
    assert failed.responses[0].topic_id == topic_id
    healed = wire.ask(fetch_request(session_id=opened.session_id, epoch=2), FETCH_BY_ID)
    assert fetched(healed) == [(0, ErrorCode.NONE)]
    assert healed.responses[0].partitions[0].records


def test_an_error_of_the_session_is_the_whole_fetchs(
    ottla_broker: Broker, ottla_topic: str, wire: WireConnection
) -> None:
    ottla_broker.fail_next("Fetch", "FETCH_SESSION_ID_NOT_FOUND")
    reply = wire.ask(fetch_request(ottla_topic), FETCH_BY_NAME)
    assert reply.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert fetched(reply) == []


@pytest.mark.parametrize("version", [4, 12])
def test_metadata_of_all_topics_has_the_error_at_the_topic(
    ottla_broker: Broker, ottla_topic: str, other_topic: str, wire: WireConnection, version: int
) -> None:
    ottla_broker.fail_next("Metadata", "LEADER_NOT_AVAILABLE", topic=ottla_topic)
    reply = wire.ask(MetadataRequest(topics=None), version)
    errors = {topic.name: ErrorCode(topic.error_code) for topic in reply.topics}
    assert errors[ottla_topic] == ErrorCode.LEADER_NOT_AVAILABLE
    assert errors[other_topic] == ErrorCode.NONE


def test_offsets_are_refused_and_hidden_topic_by_topic(
    ottla_broker: Broker, ottla_topic: str, other_topic: str, wire: WireConnection
) -> None:
    wire.ask(FindCoordinatorRequest(key="offsets", key_type=0), 3)
    commit = OffsetCommitRequest(
        group_id="offsets",
        topics=[
            OffsetCommitRequest.OffsetCommitRequestTopic(
                name=topic,
                partitions=[OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=7)],
            )
            for topic in (ottla_topic, other_topic)
        ],
    )
    while wire.ask(commit, 8).topics[0].partitions[0].error_code:  # until the coordinator is there
        time.sleep(0.01)
    ottla_broker.fail_next("OffsetCommit", "OFFSET_METADATA_TOO_LARGE", topic=ottla_topic)
    reply = wire.ask(commit, 8)
    codes = {topic.name: topic.partitions[0].error_code for topic in reply.topics}
    assert codes == {ottla_topic: ErrorCode.OFFSET_METADATA_TOO_LARGE, other_topic: ErrorCode.NONE}
    ottla_broker.fail_next("OffsetFetch", "UNSTABLE_OFFSET_COMMIT", topic=ottla_topic)
    group = OffsetFetchRequest.OffsetFetchRequestGroup(group_id="offsets", topics=None)
    reply = wire.ask(OffsetFetchRequest(groups=[group]), 8)
    found = {
        topic.name: (topic.partitions[0].error_code, topic.partitions[0].committed_offset)
        for topic in reply.groups[0].topics
    }
    assert found == {ottla_topic: (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1), other_topic: (ErrorCode.NONE, 7)}


def test_a_topic_that_is_refused_is_not_made(ottla_broker: Broker, ottla_topic: str, wire: WireConnection) -> None:
    names = [f"{ottla_topic}-a", f"{ottla_topic}-b"]
    topics = [CreateTopicsRequest.CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
    ottla_broker.fail_next("CreateTopics", "POLICY_VIOLATION", topic=names[0])
    reply = wire.ask(CreateTopicsRequest(topics=topics, timeout_ms=10_000), 5)
    assert {topic.name: topic.error_code for topic in reply.topics} == {names[0]: 44, names[1]: 0}
    known = {topic.name for topic in wire.ask(MetadataRequest(topics=None), 12).topics}
    assert names[0] not in known
    assert names[1] in known


def test_a_fault_may_be_one_clients(ottla_broker: Broker, ottla_topic: str, wire: WireConnection) -> None:
    ottla_broker.fail_next("Produce", "NOT_LEADER_OR_FOLLOWER", client_id="unlucky", times=None)
    assert produced(wire.ask(produce_request(ottla_topic), PRODUCE_BY_NAME))[ottla_topic][0] == ErrorCode.NONE
    with WireConnection(ottla_broker.bootstrap, "unlucky") as unlucky:
        for _ in range(3):
            reply = unlucky.ask(produce_request(ottla_topic), PRODUCE_BY_NAME)
            assert produced(reply)[ottla_topic][0] == ErrorCode.NOT_LEADER_OR_FOLLOWER


# Dropped connections


def test_a_connection_is_dropped_before_the_effect(
    ottla_broker: Broker, ottla_topic: str, wire: WireConnection
) -> None:
    ottla_broker.drop_connection("Produce")
    with WireConnection(ottla_broker.bootstrap) as dropped, pytest.raises(ConnectionError):
        dropped.ask(produce_request(ottla_topic), PRODUCE_BY_NAME)
    assert end_offset(wire, ottla_topic) == 0


def test_a_connection_is_dropped_after_the_effect(ottla_broker: Broker, ottla_topic: str, wire: WireConnection) -> None:
    ottla_broker.drop_connection("Produce", effect="after")
    with WireConnection(ottla_broker.bootstrap) as dropped, pytest.raises(ConnectionError):
        dropped.ask(produce_request(ottla_topic), PRODUCE_BY_NAME)
    assert end_offset(wire, ottla_topic) == 1


@pytest.mark.parametrize("effect", ["before", "after"])
def test_an_idempotent_producer_neither_loses_nor_repeats(
    ottla_broker: Broker, ottla_topic: str, wire: WireConnection, effect: str
) -> None:
    fault = ottla_broker.drop_connection("Produce", times=2, effect=effect)  # type: ignore[arg-type]
    producer = Producer(
        {"bootstrap.servers": ottla_broker.bootstrap, "enable.idempotence": True, "reconnect.backoff.ms": 1}
    )
    for number in range(3):
        producer.produce(ottla_topic, str(number))
        assert producer.flush(30) == 0
    assert fault.seen == 2
    assert end_offset(wire, ottla_topic) == 3


# Delays and throttling


def test_a_delayed_request_has_no_effect_until_it_is_handled(
    ottla_broker: Broker, ottla_topic: str, wire: WireConnection
) -> None:
    """Half a minute's delay, ended by moving the node's time: nothing here waits for it."""
    ottla_broker.delay("Produce", 30_000, times=1)
    with WireConnection(ottla_broker.bootstrap) as slow:
        slow.send(produce_request(ottla_topic), PRODUCE_BY_NAME)
        slow.send(ApiVersionsRequest(), 0)
        assert end_offset(wire, ottla_topic) == 0
        assert not slow.has_reply(0.05), "what comes behind it waits, too"
        ottla_broker.advance_time(30_000)
        assert produced(slow.receive()) == {ottla_topic: (ErrorCode.NONE, 0)}
        assert slow.receive().error_code == 0


def test_a_delayed_reply_comes_after_the_effect(ottla_broker: Broker, ottla_topic: str, wire: WireConnection) -> None:
    ottla_broker.delay("Produce", 30_000, times=1, effect="after")
    with WireConnection(ottla_broker.bootstrap) as slow:
        slow.send(produce_request(ottla_topic), PRODUCE_BY_NAME)
        while end_offset(wire, ottla_topic) == 0:
            time.sleep(0.001)
        assert not slow.has_reply(0.05)
        ottla_broker.advance_time(30_000)
        assert produced(slow.receive()) == {ottla_topic: (ErrorCode.NONE, 0)}


def test_a_request_that_times_out_is_seen_by_its_client(ottla_broker: Broker, ottla_topic: str) -> None:
    ottla_broker.delay("Metadata", 10_000)
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": ottla_broker.bootstrap})
    with pytest.raises(KafkaException, match=r"_TRANSPORT|_TIMED_OUT"):
        admin.list_topics(timeout=0.3)


def test_a_throttled_client_is_told_and_muted(ottla_broker: Broker, ottla_topic: str, wire: WireConnection) -> None:
    ottla_broker.throttle("Produce", 30_000)
    with WireConnection(ottla_broker.bootstrap) as throttled:
        throttled.send(produce_request(ottla_topic), PRODUCE_BY_NAME)
        throttled.send(produce_request(ottla_topic), PRODUCE_BY_NAME)
        told = throttled.receive()
        assert told.throttle_time_ms == 30_000
        assert produced(told) == {ottla_topic: (ErrorCode.NONE, 0)}
        assert not throttled.has_reply(0.05)
        assert end_offset(wire, ottla_topic) == 1, "its next request has not been looked at"
        ottla_broker.advance_time(30_000)
        reply = throttled.receive()
        assert reply.throttle_time_ms == 0
        assert produced(reply) == {ottla_topic: (ErrorCode.NONE, 1)}


# Asking for faults


@pytest.mark.parametrize(
    ("arguments", "options", "reason"),
    [
        (("Produced", "CORRUPT_MESSAGE"), {}, "no API Produced; did you mean Produce?"),
        (("Produce", "NOT_LEADER"), {}, "did you mean NOT_LEADER_OR_FOLLOWER?"),
        (("Produce", "NONE"), {}, "NONE is not an error"),
        (("Produce", "CORRUPT_MESSAGE"), {"times": 0}, "times must be"),
        (("Produce", "CORRUPT_MESSAGE"), {"effect": "during"}, "effect must be before or after"),
        (("Heartbeat", "CORRUPT_MESSAGE"), {"topic": "t"}, "about no topic"),
        (("*", "CORRUPT_MESSAGE"), {"topic": "t"}, "about no topic"),
    ],
)
def test_a_fault_that_cannot_be_is_refused_with_the_reason(
    ottla_broker: Broker, arguments: tuple[str, str], options: dict[str, object], reason: str
) -> None:
    with pytest.raises(FaultRefused) as refused:
        ottla_broker.fail_next(*arguments, **options)  # type: ignore[arg-type]
    assert reason in str(refused.value)


def test_faults_of_one_test_do_not_reach_the_next(ottla_broker: Broker) -> None:
    ottla_broker.delay("*", 60_000)
    ottla_broker.heal()
    with WireConnection(ottla_broker.bootstrap) as wire:
        assert wire.ask(ApiVersionsRequest(), 0).error_code == 0
