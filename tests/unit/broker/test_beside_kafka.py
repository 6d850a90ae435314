"""The same requests to Apache Kafka and to our handlers: the replies are equal, field by field.

Words of error messages are ours. Every other difference that there is on purpose is listed in `test_differences`.
"""

import socket
import struct
import time
from collections.abc import Iterator
from typing import Any

import pytest

from ottla.base.ids import Uuid
from ottla.records.builder import build_batch
from ottla.testing.clock import FixedClock
from ottla.wire import messages
from ottla.wire.errors import ErrorCode
from ottla.wire.frame import decode_response, encode_request
from ottla.wire.message import Message
from ottla.wire.messages import (
    AlterReplicaLogDirsRequest,
    CreateTopicsRequest,
    DeleteRecordsRequest,
    DescribeProducersRequest,
    FetchRequest,
    InitProducerIdRequest,
    ListOffsetsRequest,
    OffsetForLeaderEpochRequest,
    ProduceRequest,
)
from tests.interop.apache_kafka import ApacheKafka
from tests.unit.broker.brokers import TestNode, batch, fetch_request, only, produce_request, produced

pytestmark = pytest.mark.interop

NOW_MS = int(time.time() * 1000)
NOBODYS_ID = Uuid(bytes(range(16)))
TOPICS = {
    "orders": {},
    "small": {"max_message_bytes": "100"},
    "compacted": {"cleanup_policy": "compact"},
    "stamped": {"message_timestamp_type": "LogAppendTime"},
    "recent": {"message_timestamp_before_max_ms": "1000"},
    "packed": {"compression_type": "zstd"},
    "deleted_from": {},
    "filled": {},
}


class KafkaClient:
    """One connection to Apache Kafka, one request at a time."""

    def __init__(self, bootstrap: str) -> None:
        host, _, port = bootstrap.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=30)

    def send(self, request: Message, version: int) -> Any:
        self._socket.sendall(encode_request(request, version, 1, "client"))
        (size,) = struct.unpack(">i", self._receive(4))
        response = getattr(messages, type(request).__name__.removesuffix("Request") + "Response")
        return decode_response(response, self._receive(size), version)[1]

    def _receive(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self._socket.recv(size - len(data))
            assert part, "Kafka has closed the connection"
            data += part
        return data

    def close(self) -> None:
        self._socket.close()


class Pair:
    """Kafka and we, with the same topics. `ids` are Kafka's; ours are made to be the same."""

    def __init__(self, kafka: KafkaClient) -> None:
        self.kafka = kafka
        self.ours = TestNode(clock=FixedClock(NOW_MS))
        self.ids: dict[str, Uuid] = {}
        for name, settings in TOPICS.items():
            configs = [
                CreateTopicsRequest.CreatableTopicConfig(name=key.replace("_", "."), value=value)
                for key, value in settings.items()
            ]
            topic = CreateTopicsRequest.CreatableTopic(
                name=name, num_partitions=2, replication_factor=1, configs=configs
            )
            reply = kafka.send(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 7)
            self.ids[name] = reply.topics[0].topic_id
            self.ours.create_topic(name, 2, id=self.ids[name], **settings)
        self._await_leaders()

    def _await_leaders(self) -> None:
        """Kafka answers CreateTopics before its broker has taken the partitions up."""
        for name in TOPICS:
            while only(self.kafka.send(fetch_request(0, name), 12)).error_code:
                time.sleep(0.05)

    def ask(self, request: Message, version: int) -> tuple[Any, Any]:
        return comparable(self.kafka.send(request, version)), comparable(self.ours.send(request, version))

    def agree(self, request: Message, version: int) -> None:
        kafkas, ours = self.ask(request, version)
        assert ours == kafkas


def comparable(reply: Any) -> Any:
    """Without what differs in every run, and without words; records as bytes."""
    for topic in getattr(reply, "responses", None) or getattr(reply, "topics", ()):
        for partition in getattr(topic, "partition_responses", None) or getattr(topic, "partitions", ()):
            if isinstance(getattr(partition, "records", None), memoryview):
                partition.records = bytes(partition.records)
            for error in getattr(partition, "record_errors", ()):
                error.batch_index_error_message = None
            if hasattr(partition, "error_message"):
                partition.error_message = None
            if getattr(partition, "log_append_time_ms", 0) > NOW_MS:
                partition.log_append_time_ms = NOW_MS
    if hasattr(reply, "session_id"):
        reply.session_id = bool(reply.session_id)
    return reply


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with ApacheKafka() as kafka:
        client = KafkaClient(kafka.bootstrap)
        yield Pair(client)
        client.close()


def records(*values: bytes, **fields: Any) -> bytes:
    return bytes(batch(*values, **{"timestamp": NOW_MS, **fields}))


def by_a_producer(sequence: int, epoch: int = 0, **fields: Any) -> bytes:
    return bytes(produced(77, sequence, epoch=epoch, timestamp=NOW_MS, **fields))


def with_byte(data: bytes, position: int, value: int) -> bytes:
    changed = bytearray(data)
    changed[position] = value
    return bytes(changed)


# Produce


@pytest.mark.parametrize("version", range(3, 14))
@pytest.mark.parametrize(
    ("topic", "index"),
    [("orders", 0), ("nobody", 0), ("orders", 9)],
    ids=["known", "unknown topic", "unknown partition"],
)
def test_produce_in_every_version(pair, version, topic, index):
    request = produce_request(records(b"a"), topic, index)
    if version >= 13:
        request.topic_data[0].name, request.topic_data[0].topic_id = "", pair.ids.get(topic, NOBODYS_ID)
    pair.agree(request, version)


@pytest.mark.parametrize("acks", [-2, -1, 1, 2])
def test_produce_with_acks(pair, acks):
    pair.agree(produce_request(records(), acks=acks), 12)


BATCHES = {
    "wrong checksum": ("orders", with_byte(records(b"abc"), -1, 1)),
    "too large": ("small", records(bytes(200))),
    "of the future": ("orders", records(b"a", b"b", timestamp=NOW_MS + 10_000_000)),
    "of the past": ("recent", records(timestamp=NOW_MS - 1_000_000)),
    "without keys": ("compacted", bytes(build_batch(NOW_MS, None, [b"x", b"y"]))),
    "stamped by the broker": ("stamped", records(timestamp=5)),
    "compressed by the broker": ("packed", records(b"a" * 1000)),
    "transactional": ("orders", bytes(produced(7, 0, transactional=True, timestamp=NOW_MS))),
    "to an internal topic": ("__consumer_offsets", records()),
}


@pytest.mark.parametrize("version", [3, 7, 8, 12])
@pytest.mark.parametrize("name", BATCHES)
def test_batches_with_something_about_them(pair, name, version):
    topic, data = BATCHES[name]
    pair.agree(produce_request(data, topic), version)


def test_an_idempotent_producer(pair):
    steps = [
        *((sequence, 0) for sequence in range(7)),
        (3, 0),  # a repetition
        (6, 0),
        (0, 0),  # too old to be known as one
        (20, 0),  # a gap
        (5, 1),  # a new epoch begins at 0
        (0, 1),
        (7, 0),  # the old epoch
    ]
    for sequence, epoch in steps:
        pair.agree(produce_request(by_a_producer(sequence, epoch), index=1), 12)
    topics = [DescribeProducersRequest.TopicRequest(name="orders", partition_indexes=(1, 9))]
    pair.agree(DescribeProducersRequest(topics=topics), 0)


# Fetch


@pytest.fixture(scope="module")
def filled(pair) -> Pair:
    """Three batches in filled-0, one larger in filled-1."""
    for _ in range(3):
        pair.agree(produce_request(records(b"a" * 100), "filled"), 12)
    pair.agree(produce_request(records(b"z" * 1000), "filled", 1), 12)
    return pair


def fetch(
    pair: Pair, version: int, offset: int = 0, topic: str = "filled", index: int = 0, **fields: Any
) -> FetchRequest:
    request = fetch_request(offset, topic, index, **fields)
    if version >= 13:
        request.topics[0].topic, request.topics[0].topic_id = "", pair.ids.get(topic, NOBODYS_ID)
    return request


@pytest.mark.parametrize("version", range(4, 19))
def test_fetch_in_every_version(filled, version):
    for offset in (0, 1, 3, 4, -1):
        filled.agree(fetch(filled, version, offset), version)
    filled.agree(fetch(filled, version, topic="nobody"), version)
    filled.agree(fetch(filled, version, index=9), version)
    if version >= 9:
        filled.agree(fetch(filled, version, current_leader_epoch=0), version)
        filled.agree(fetch(filled, version, current_leader_epoch=5), version)


@pytest.mark.parametrize("limit", [1, 10, 61, 150, 172, 173, 174, 200, 345, 346, 347, 400, 1000, 2000])
def test_fetch_with_limits(filled, limit):
    filled.agree(fetch(filled, 12, partition_max_bytes=limit), 12)
    filled.agree(fetch(filled, 12, max_bytes=limit), 12)
    both = fetch(filled, 12, max_bytes=limit)
    both.topics[0].partitions = [
        FetchRequest.FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20) for index in (0, 1)
    ]
    filled.agree(both, 12)


@pytest.mark.parametrize(
    "fields",
    [
        {"isolation_level": 1},
        {"isolation_level": 1, "offset": 3},
        {"last_fetched_epoch": 0, "offset": 1},
        {"last_fetched_epoch": 5, "offset": 1},
        {"replica_id": 9},
        {"replica_id": 9, "current_leader_epoch": 0},
        {"replica_id": -2},
        {"session_id": 77, "session_epoch": 4},
    ],
    ids=str,
)
def test_fetches_with_something_about_them(filled, fields):
    filled.agree(fetch(filled, 12, **fields), 12)


@pytest.mark.parametrize("version", [7, 12, 13, 18])
def test_a_fetch_session(filled, version):
    by_id = version >= 13
    sessions = [0, 0]

    def name(topic: str) -> dict[str, Any]:
        return {"topic_id": filled.ids.get(topic, NOBODYS_ID)} if by_id else {"topic": topic}

    def step(epoch: int, topics: dict[str, dict[int, int]], forgotten: dict[str, list[int]]) -> None:
        request = FetchRequest(
            max_bytes=1 << 20,
            session_epoch=epoch,
            topics=[
                FetchRequest.FetchTopic(
                    **name(topic),
                    partitions=[
                        FetchRequest.FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1000)
                        for index, offset in partitions.items()
                    ],
                )
                for topic, partitions in topics.items()
            ],
            forgotten_topics_data=[
                FetchRequest.ForgottenTopic(**name(topic), partitions=indexes) for topic, indexes in forgotten.items()
            ],
        )
        replies = []
        for slot, side in enumerate((filled.kafka, filled.ours)):
            request.session_id = sessions[slot]
            reply = side.send(request, version)
            sessions[slot] = reply.session_id or sessions[slot]
            replies.append(comparable(reply))
        assert replies[1] == replies[0]

    step(0, {"filled": {0: 3, 1: 1}}, {})
    step(1, {}, {})
    step(2, {"nobody": {0: 0}}, {})
    step(3, {}, {})
    step(4, {"filled": {0: 1}}, {})
    step(5, {"filled": {0: 3}}, {})
    step(6, {}, {"nobody": [0]})
    step(7, {}, {})
    step(9, {}, {})  # not the next
    step(8, {}, {})
    step(9, {}, {"filled": [0, 1]})
    step(10, {}, {})  # closed by now


# The others


def time_name(timestamp: int) -> str:
    return {NOW_MS: "now", NOW_MS + 1: "later"}.get(timestamp, str(timestamp))


@pytest.mark.parametrize("version", range(1, 12))
@pytest.mark.parametrize("timestamp", [-1, -2, -3, -4, -5, -6, -7, 0, NOW_MS, NOW_MS + 1], ids=time_name)
def test_list_offsets(filled, version, timestamp):
    for topic in ("filled", "stamped", "nobody"):
        for isolation_level in (0, 1) if version >= 2 else (0,):
            asked = ListOffsetsRequest.ListOffsetsPartition(partition_index=1, timestamp=timestamp)
            topics = [ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=[asked])]
            request = ListOffsetsRequest(replica_id=-1, isolation_level=isolation_level, topics=topics)
            filled.agree(request, version)


@pytest.mark.parametrize("version", [2, 3, 4])
@pytest.mark.parametrize("epoch", [-1, 0, 1, 5])
def test_offset_for_leader_epoch(filled, version, epoch):
    for topic, current in (("filled", -1), ("stamped", -1), ("nobody", -1), ("filled", 5)):
        asked = OffsetForLeaderEpochRequest.OffsetForLeaderPartition(
            partition=1, leader_epoch=epoch, current_leader_epoch=current
        )
        topics = [OffsetForLeaderEpochRequest.OffsetForLeaderTopic(topic=topic, partitions=[asked])]
        filled.agree(OffsetForLeaderEpochRequest(replica_id=-1, topics=topics), version)


def test_delete_records(pair):
    for _ in range(3):
        pair.agree(produce_request(records(), "deleted_from"), 12)
    for topic, offset in (
        *(("deleted_from", offset) for offset in (99, -2, 2, 1, -1)),
        ("compacted", 0),
        ("nobody", 0),
    ):
        asked = DeleteRecordsRequest.DeleteRecordsPartition(partition_index=0, offset=offset)
        topics = [DeleteRecordsRequest.DeleteRecordsTopic(name=topic, partitions=[asked])]
        pair.agree(DeleteRecordsRequest(timeout_ms=1000, topics=topics), 2)
        pair.agree(fetch_request(0, "deleted_from"), 12)
        pair.agree(fetch_request(3, "deleted_from"), 12)


@pytest.mark.parametrize("fields", [{"transactional_id": ""}, {"producer_id": 5}, {"producer_epoch": 5}], ids=str)
def test_init_producer_id_that_makes_no_sense(pair, fields):
    request = InitProducerIdRequest(transaction_timeout_ms=1000, **{"transactional_id": None, **fields})
    pair.agree(request, 5)


def test_alter_replica_log_dirs_to_nowhere(pair):
    topics = [AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic(name="orders", partitions=(0,))]
    dirs = [AlterReplicaLogDirsRequest.AlterReplicaLogDir(path="/nowhere", topics=topics)]
    pair.agree(AlterReplicaLogDirsRequest(dirs=dirs), 2)


# On purpose


@pytest.mark.parametrize(
    ("data", "kafkas", "ours"),
    [
        (bytes(70), ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD),
        (b"", ErrorCode.INVALID_RECORD, ErrorCode.INVALID_RECORD),
        (records() + records(), ErrorCode.INVALID_RECORD, ErrorCode.INVALID_RECORD),
        (with_byte(records(), 16, 1), ErrorCode.INVALID_RECORD, ErrorCode.INVALID_RECORD),
    ],
    ids=["zeros", "nothing", "two batches", "an old format"],
)
def test_differences(pair, data, kafkas, ours):
    """What is no batch at all is refused with the log start offset, and zeros as what they seem to be: magic 0."""
    theirs, mine = pair.ask(produce_request(data), 12)
    assert (only(theirs).error_code, only(theirs).log_start_offset) == (kafkas, -1)
    assert (only(mine).error_code, only(mine).log_start_offset) == (ours, 0)


def test_a_partition_named_twice_is_written_to_twice(pair):
    """Kafka keeps the last of the two and answers once."""
    twice = produce_request(records(b"a"))
    twice.topic_data[0].partition_data.append(ProduceRequest.PartitionProduceData(index=0, records=records(b"b")))
    theirs, mine = pair.ask(twice, 12)
    assert [len(reply.responses[0].partition_responses) for reply in (theirs, mine)] == [1, 2]
