"""A node with a transaction coordinator, and producers of the older and of the newer protocol that talk to it."""

from typing import Any

from ottla.base.ids import TopicPartition
from ottla.records.header import Compression
from ottla.records.reader import read_records
from ottla.records.visibility import visible_batches
from ottla.testing.memory_disk import MemoryDisk
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import (
    AddPartitionsToTxnRequest,
    AllocateProducerIdsResponse,
    DescribeTransactionsRequest,
    EndTxnRequest,
    FeatureLevelRecord,
    InitProducerIdRequest,
    ProduceResponse,
)
from tests.unit.broker.brokers import Reply, TestNode, batch, only, produce_request

OLD, NEW = 0, 2
READ_COMMITTED = 1
TOPIC = "__transaction_state"


class TransactionalNode(TestNode):
    """It has the topics `orders` and `__transaction_state`, of one partition each."""

    __test__ = False

    def __init__(self, version: int = NEW, *, topics: bool = True, **fields: Any) -> None:
        super().__init__(**fields)
        self.version = version
        if topics:
            self.commit(FeatureLevelRecord(name="transaction.version", feature_level=version))
            self.create_topic(TOPIC, cleanup_policy="compact")
            self.create_topic("orders", 3)
        block = AllocateProducerIdsResponse(producer_id_start=1000, producer_id_len=1000)
        self.controller.replies.append(block)

    def restart(self, **fields: Any) -> "TransactionalNode":
        """The same disk, as `kill -9` leaves it."""
        assert isinstance(self.disk, MemoryDisk)
        disk = self.disk.survivor_of_kill()
        return TransactionalNode(self.version, topics=False, disk=disk, image=self.image, clock=self.clock, **fields)

    # The producer's side

    def init(self, name: str = "x", version: int = 4, **fields: Any) -> tuple[str, int, int]:
        fields = {"transaction_timeout_ms": 60_000, **fields}
        reply = self.send(InitProducerIdRequest(transactional_id=name, **fields), version)
        return ErrorCode(reply.error_code).name, reply.producer_id, reply.producer_epoch

    def add(
        self, producer: tuple[int, int], *partitions: int, topic: str = "orders", name: str = "x", version: int = 3
    ) -> list[str]:
        topics = [AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=topic, partitions=list(partitions))]
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=producer[0],
            v3_and_below_producer_epoch=producer[1],
            v3_and_below_topics=topics,
        )
        (result,) = self.send(request, version).results_by_topic_v3_and_below
        return [ErrorCode(one.partition_error_code).name for one in result.results_by_partition]

    def ask_to_write(
        self,
        producer: tuple[int, int],
        sequence: int,
        *values: bytes,
        index: int = 0,
        topic: str = "orders",
        name: str | None = "x",
        version: int | None = None,
        compression: Compression = Compression.NONE,
    ) -> Reply:
        records = batch(
            *values,
            producer_id=producer[0],
            producer_epoch=producer[1],
            base_sequence=sequence,
            transactional=True,
            compression=compression,
        )
        if version is None:
            version = 12 if self.version == NEW else 11
        return self.ask(produce_request(records, topic, index, transactional_id=name), version)

    def write(self, *args: Any, **fields: Any) -> tuple[str, int]:
        """The error and the offset."""
        reply = self.ask_to_write(*args, **fields)
        assert reply.is_here, "no reply yet"
        return outcome(only(reply.message))

    def ask_to_end(self, producer: tuple[int, int], committed: bool, name: str = "x", version: int = 5) -> Reply:
        request = EndTxnRequest(
            transactional_id=name, producer_id=producer[0], producer_epoch=producer[1], committed=committed
        )
        return self.ask(request, version)

    def end(
        self, producer: tuple[int, int], committed: bool, name: str = "x", version: int | None = None
    ) -> tuple[str, int, int]:
        if version is None:
            version = 5 if self.version == NEW else 4
        reply = self.ask_to_end(producer, committed, name, version).message
        return ErrorCode(reply.error_code).name, reply.producer_id, reply.producer_epoch

    # What others see

    def committed(self, index: int = 0) -> list[bytes | None]:
        """The values that a consumer with isolation.level=read_committed is given."""
        data = self.fetch(index=index, isolation_level=READ_COMMITTED)
        aborted = [(one.producer_id, one.first_offset) for one in data.aborted_transactions or ()]
        records = bytes(data.records)
        return [
            record.value
            for position, header in visible_batches(records, aborted)
            for record in read_records(records, position, header)
        ]

    def state(self, name: str = "x") -> str:
        (one,) = self.send(DescribeTransactionsRequest(transactional_ids=[name]), 0).transaction_states
        return one.transaction_state or ErrorCode(one.error_code).name

    def log_of(self, index: int = 0) -> Any:
        return self.broker.partitions[TopicPartition("orders", index)].log


def outcome(answer: ProduceResponse.PartitionProduceResponse) -> tuple[str, int]:
    return ErrorCode(answer.error_code).name, answer.base_offset
