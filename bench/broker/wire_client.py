"""A blocking client for what a benchmark sets up and checks; the load itself comes from `load`."""

import socket
import struct
import time
from collections.abc import Iterable
from typing import Any, Self

from ottla.wire.errors import ErrorCode
from ottla.wire.frame import decode_response, encode_request, response_type
from ottla.wire.message import Message
from ottla.wire.messages import (
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeGroupsRequest,
    DescribeTransactionsRequest,
    FetchRequest,
    FindCoordinatorRequest,
    IncrementalAlterConfigsRequest,
    ListOffsetsRequest,
    MetadataRequest,
    ProduceRequest,
)

TIMEOUT_S = 120.0
TOPIC_RESOURCE, SET = 2, 0
GROUPS, TRANSACTIONS = 0, 1  # the kinds of coordinators
NOT_COORDINATING = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}


class WireClient:
    def __init__(self, bootstrap: str) -> None:
        host, _, port = bootstrap.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def ask(self, message: Message, version: int) -> Any:
        self.socket.sendall(encode_request(message, version, 1, "bench"))
        frame = self.read_frame()
        return decode_response(response_type(message._schema.api_key), frame, version)[1]

    def read_frame(self) -> bytes:
        (size,) = struct.unpack(">i", self._read(4))
        return self._read(size)

    def _read(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            some = self.socket.recv(min(count - len(data), 1 << 20))
            if not some:
                raise ConnectionError("the node hung up")
            data += some
        return bytes(data)

    def metadata(self, topics: list[str] | None) -> Any:
        wanted = None if topics is None else [MetadataRequest.MetadataRequestTopic(name=name) for name in topics]
        return self.ask(MetadataRequest(topics=wanted, allow_auto_topic_creation=False), 9)

    def create_topic(self, name: str, partitions: int = 1, **config: str) -> None:
        """Returns once every partition has a leader."""
        settings = [
            CreateTopicsRequest.CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in config.items()
        ]
        topic = CreateTopicsRequest.CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=1, configs=settings
        )
        (made,) = self.ask(CreateTopicsRequest(topics=[topic], timeout_ms=60_000), 7).topics
        if made.error_code:
            raise RuntimeError(f"error {made.error_code} for topic {name}: {made.error_message}")
        self.wait_for_leaders(name, partitions)

    def create_topics(self, names: list[str], partitions: int) -> None:
        """Returns once the controller has decided on them."""
        topics = [
            CreateTopicsRequest.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
            for name in names
        ]
        for made in self.ask(CreateTopicsRequest(topics=topics, timeout_ms=60_000), 7).topics:
            if made.error_code:
                raise RuntimeError(f"error {made.error_code} for topic {made.name}: {made.error_message}")

    def produce_to_all(self, name: str, partitions: int, batch: bytes) -> None:
        """The same batch to each partition of a topic, in one request."""
        wanted = [ProduceRequest.PartitionProduceData(index=index, records=batch) for index in range(partitions)]
        data = ProduceRequest.TopicProduceData(name=name, partition_data=wanted)
        (answered,) = self.ask(ProduceRequest(acks=1, timeout_ms=30_000, topic_data=[data]), 9).responses
        for partition in answered.partition_responses:
            if partition.error_code:
                raise RuntimeError(f"error {partition.error_code} for {name}-{partition.index}")

    def wait_for_leaders(self, name: str, partitions: int) -> None:
        """Until the node answers for every partition. That it says that it leads them comes a little earlier."""
        deadline = time.monotonic() + TIMEOUT_S
        while any(partition.error_code for partition in self._end_offsets(name, range(partitions))):
            if time.monotonic() > deadline:
                raise RuntimeError(f"topic {name} has no leaders")
            time.sleep(0.005 + partitions / 10_000)  # asking after many is work that would be measured

    def ready_coordinators(self, kind: int) -> None:
        """Returns once the coordinators' topic is there and answers, for enough keys to meet all its partitions."""
        keys = [f"key-{number}" for number in range(500)]
        find = FindCoordinatorRequest(key_type=kind, coordinator_keys=keys[:1])
        deadline = time.monotonic() + TIMEOUT_S
        while any(each.error_code for each in self.ask(find, 4).coordinators) or self._is_one_away(kind, keys):
            if time.monotonic() > deadline:
                raise RuntimeError("there is no coordinator")
            time.sleep(0.05)

    def _is_one_away(self, kind: int, keys: list[str]) -> bool:
        if kind == GROUPS:
            described = self.ask(DescribeGroupsRequest(groups=keys), 5).groups
        else:
            described = self.ask(DescribeTransactionsRequest(transactional_ids=keys), 0).transaction_states
        return any(each.error_code in NOT_COORDINATING for each in described)

    def delete_topic(self, name: str) -> None:
        self.ask(DeleteTopicsRequest(topic_names=[name], timeout_ms=60_000), 5)

    def set_topic_config(self, name: str, **config: str) -> None:
        changes = [
            IncrementalAlterConfigsRequest.AlterableConfig(
                name=key.replace("_", "."), config_operation=SET, value=value
            )
            for key, value in config.items()
        ]
        resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
            resource_type=TOPIC_RESOURCE, resource_name=name, configs=changes
        )
        (done,) = self.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses
        if done.error_code:
            raise RuntimeError(f"error {done.error_code} for topic {name}: {done.error_message}")

    def end_offset(self, name: str, partition: int = 0) -> int:
        (found,) = self._end_offsets(name, [partition])
        if found.error_code:
            raise RuntimeError(f"error {found.error_code} for the end of topic {name}")
        return int(found.offset)

    def _end_offsets(self, name: str, partitions: Iterable[int]) -> list[Any]:
        wanted = [ListOffsetsRequest.ListOffsetsPartition(partition_index=n, timestamp=-1) for n in partitions]
        topic = ListOffsetsRequest.ListOffsetsTopic(name=name, partitions=wanted)
        response = self.ask(ListOffsetsRequest(replica_id=-1, topics=[topic]), 6)
        return list(response.topics[0].partitions)


def produce_request(topic: str, batch: bytes, acks: int, partition: int = 0) -> bytes:
    written = ProduceRequest.PartitionProduceData(index=partition, records=batch)
    data = ProduceRequest.TopicProduceData(name=topic, partition_data=[written])
    return encode_request(ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=[data]), 9, 1, "bench")


def fetch_request(topic: str, offset: int, max_bytes: int) -> bytes:
    partition = FetchRequest.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes)
    wanted = FetchRequest.FetchTopic(topic=topic, partitions=[partition])
    request = FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=max_bytes, topics=[wanted])
    return encode_request(request, 11, 1, "bench")
