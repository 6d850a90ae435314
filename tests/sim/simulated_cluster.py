"""A cluster of one in a simulation, and the requests of a client of its."""

from collections.abc import Callable, Iterable
from typing import Any

from ottla.node.config import read_config
from ottla.node.node import Node
from ottla.records.batch import complete_batches
from ottla.records.builder import BatchBuilder
from ottla.records.reader import read_records
from ottla.runtime.world import World
from ottla.wire.messages import CreateTopicsRequest, FetchRequest, ProduceRequest

PORT = 9092
SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "listeners": f"PLAINTEXT://127.0.0.1:{PORT},CONTROLLER://127.0.0.1:9093",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "1@127.0.0.1:9093",
    "log.dirs": "/data",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}


def node_maker(**settings: str) -> Callable[[World], Node]:
    """Nodes with these settings besides; underscores for dots. That one cannot go on fails the test."""

    def failed() -> None:
        raise AssertionError("the node cannot go on")

    config = read_config({**SETTINGS, **{key.replace("_", "."): value for key, value in settings.items()}})
    return lambda world: Node(world, config, may_format=True, failed=failed)


def create_topics(client: Any, *names: str, partitions: int = 1, **settings: str) -> None:
    configs = [
        CreateTopicsRequest.CreatableTopicConfig(name=key.replace("_", "."), value=value)
        for key, value in settings.items()
    ]
    topics = [
        CreateTopicsRequest.CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=1, configs=configs, assignments=[]
        )
        for name in names
    ]
    reply = client.ask(CreateTopicsRequest(topics=topics, timeout_ms=30_000), 7)
    assert [topic.error_code for topic in reply.topics] == [0] * len(names)


def produce_request(topic: str, index: int, values: Iterable[bytes], key: bytes = b"key") -> ProduceRequest:
    builder = BatchBuilder()
    for value in values:
        builder.append(1_700_000_000_000, key, value)
    data = ProduceRequest.PartitionProduceData(index=index, records=builder.build())
    topic_data = ProduceRequest.TopicProduceData(name=topic, partition_data=[data])
    return ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic_data])


def produce_later(client: Any, topic: str, *values: bytes) -> None:
    """Sends, and waits for nothing."""
    client.send(produce_request(topic, 0, values), 9)


def produce(client: Any, topic: str, index: int, values: Iterable[bytes], key: bytes = b"key") -> int:
    """Returns the offset of the first record."""
    request = produce_request(topic, index, values, key)
    (partition,) = client.ask(request, 9).responses[0].partition_responses
    assert partition.error_code == 0
    return int(partition.base_offset)


def fetch(client: Any, topic: str, index: int = 0, offset: int = 0, max_wait_ms: int = 500) -> list[bytes]:
    """The values of all records from an offset on."""
    partition = FetchRequest.FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
    request = FetchRequest(
        topics=[FetchRequest.FetchTopic(topic=topic, partitions=[partition])],
        max_bytes=50 << 20,
        min_bytes=1,
        max_wait_ms=max_wait_ms,
    )
    reply = client.ask(request, 12)
    (found,) = reply.responses[0].partitions
    assert found.error_code == 0
    records = bytes(found.records or b"")
    return [
        record.value
        for position, header in complete_batches(records)
        for record in read_records(records, position, header)
    ]
