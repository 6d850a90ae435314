"""Requests of many entries at a broker: answered as the same request is that is not divided."""

from collections import Counter
from typing import Any

import pytest

from ottla.apis.table import APIS
from ottla.broker.data.batch_checks import keep_records
from ottla.runtime.large_requests.parts import division_of
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message
from ottla.wire.messages import (
    AlterReplicaLogDirsRequest,
    DeleteRecordsRequest,
    DescribeConfigsRequest,
    DescribeProducersRequest,
    ListOffsetsRequest,
    OffsetForLeaderEpochRequest,
    ProduceRequest,
)
from tests.unit.broker.brokers import TestNode, batch

MANY = 1300
TOPICS = ("orders", "shipped", "nowhere")


def topics(make_topic: Any, make_partition: Any) -> list[Any]:
    """Partitions that there are and that there are not, some of them twice; topics that come again."""
    numbers = range(MANY)
    return [
        make_topic(TOPICS[block % 3], [make_partition(number % 7 if number % 5 else number) for number in chunk])
        for block, chunk in enumerate((numbers[:3], numbers[3:700], numbers[700:702], numbers[702:]))
    ]


REQUESTS = {
    "ListOffsets": lambda: (
        ListOffsetsRequest(
            replica_id=-1,
            topics=topics(
                lambda name, partitions: ListOffsetsRequest.ListOffsetsTopic(name=name, partitions=partitions),
                lambda index: ListOffsetsRequest.ListOffsetsPartition(partition_index=index, timestamp=-1),
            ),
        ),
        7,
    ),
    "OffsetForLeaderEpoch": lambda: (
        OffsetForLeaderEpochRequest(
            topics=topics(
                lambda name, partitions: OffsetForLeaderEpochRequest.OffsetForLeaderTopic(
                    topic=name, partitions=partitions
                ),
                lambda index: OffsetForLeaderEpochRequest.OffsetForLeaderPartition(partition=index),
            )
        ),
        4,
    ),
    "DeleteRecords": lambda: (
        DeleteRecordsRequest(
            timeout_ms=1000,
            topics=topics(
                lambda name, partitions: DeleteRecordsRequest.DeleteRecordsTopic(name=name, partitions=partitions),
                lambda index: DeleteRecordsRequest.DeleteRecordsPartition(partition_index=index, offset=1),
            ),
        ),
        2,
    ),
    "DescribeProducers": lambda: (
        DescribeProducersRequest(
            topics=topics(
                lambda name, indexes: DescribeProducersRequest.TopicRequest(name=name, partition_indexes=indexes), int
            )
        ),
        0,
    ),
    "AlterReplicaLogDirs": lambda: (
        AlterReplicaLogDirsRequest(
            dirs=[
                AlterReplicaLogDirsRequest.AlterReplicaLogDir(
                    path="/nowhere",
                    topics=topics(
                        lambda name, indexes: AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic(
                            name=name, partitions=indexes
                        ),
                        int,
                    ),
                )
            ]
        ),
        2,
    ),
    "DescribeConfigs": lambda: (
        DescribeConfigsRequest(
            resources=[
                DescribeConfigsRequest.DescribeConfigsResource(
                    resource_type=2, resource_name=f"{TOPICS[number % 3]}{number or ''}", configuration_keys=None
                )
                for number in range(MANY)
            ]
        ),
        4,
    ),
}


@pytest.fixture
def node() -> TestNode:
    node = TestNode()
    for name in ("orders", "shipped"):
        node.create_topic(name, partitions=4)
        node.produce(batch(b"one", b"two"), name)
    return node


def answers(response: Any, asks_once: bool) -> Counter[str]:
    """Every innermost answer with what is around it; in which order they come is of no matter."""
    found = Counter[str]()

    def walk(struct: Any, around: str) -> None:
        lists = [name for name in struct.__slots__ if isinstance(getattr(struct, name), list)]
        inner = [name for name in lists if name in ("topics", "partitions", "results")]
        own = [f"{name}={getattr(struct, name)!r}" for name in struct.__slots__ if name not in inner]
        if not inner:
            found[f"{around} {own}"] += 1
        for name in inner:
            for one in getattr(struct, name):
                walk(one, f"{around} {own}")

    walk(response, "")
    return Counter(dict.fromkeys(found, 1)) if asks_once else found


@pytest.mark.parametrize("name", REQUESTS)
def test_it_is_answered_as_the_whole_is(node: TestNode, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    request, version = REQUESTS[name]()
    divided = node.send(request, version)
    key = request._schema.api_key
    division = division_of(key, request)
    assert division is not None
    monkeypatch.setitem(APIS, key, APIS[key]._replace(divisions=()))
    whole = node.send(REQUESTS[name]()[0], version)
    asks_once = division.joins and bool(division.answered[-1].about)
    assert answers(divided, asks_once) == answers(whole, asks_once)


def produce(times: int, acks: int = -1) -> ProduceRequest:
    data = ProduceRequest.PartitionProduceData
    partitions = [data(index=number % 4, records=batch(b"%d" % number)) for number in range(times)]
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[
        ProduceRequest.TopicProduceData(name="orders", partition_data=partitions)
    ])  # fmt: skip


def test_batches_of_a_divided_request_are_appended_in_their_order(node: TestNode) -> None:
    [topic] = node.send(produce(1200), 9).responses
    assert [answer.index for answer in topic.partition_responses] == [number % 4 for number in range(1200)]
    for index in range(4):
        offsets = [answer.base_offset for answer in topic.partition_responses if answer.index == index]
        assert offsets == sorted(offsets)
        assert len(set(offsets)) == 300


def test_a_divided_request_without_acks_has_no_reply(node: TestNode) -> None:
    reply = node.ask(produce(1200, acks=0), 9)
    assert reply.message is None
    assert node.partition("orders", 3).log.log_end_offset == 300


def test_a_divided_request_waits_for_all_of_its_partitions(node: TestNode) -> None:
    node.create_topic("shared", partitions=2, replicas=(1, 2), isr=(1, 2))
    request = produce(1000)
    request.topic_data[0].name = "shared"
    for number, one in enumerate(request.topic_data[0].partition_data):
        one.index = number % 2
    reply = node.ask(request, 9)
    assert not reply.is_here
    node.timers.advance(2000)
    [topic] = reply.message.responses
    assert {answer.error_code for answer in topic.partition_responses} == {ErrorCode.REQUEST_TIMED_OUT}
    assert len(topic.partition_responses) == 1000


def test_a_request_that_waits_keeps_no_records(node: TestNode) -> None:
    node.create_topic("shared", replicas=(1, 2), isr=(1, 2))
    request: Any = produce(1)
    request.topic_data[0].name = "shared"
    keep_records(request)
    seen: list[Message | None] = []
    from ottla.runtime.request import RequestContext

    node._handle(RequestContext(0, 9, 7, "c", node.client, 0.0), request, seen.append)
    assert not seen
    assert request.topic_data[0].partition_data[0].records is None
