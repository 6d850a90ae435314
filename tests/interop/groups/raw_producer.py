"""A transactional producer that says exactly what it is told to, to whichever node it is told to.

    producer = RawProducer(kafka.bootstrap, "payments")
    producer.init()
    producer.write("orders", 0, b"one", b"two")
    producer.move_to(ours.bootstrap)     # the same data, another implementation
    producer.end(committed=True)

Client libraries hide a producer's id, epoch and sequences, and end what they have begun. Here a transaction can stay
open while its node changes, or be begun in a way that no library would: without a word to the coordinator.

`version` is the `transaction.version` that the producer speaks: in 0 it tells the coordinator of every partition first,
in 2 (KIP-890) the broker does, and every end gives it the next epoch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from ottla.records.builder import BatchBuilder
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message
from ottla.wire.messages import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    ProduceRequest,
    TxnOffsetCommitRequest,
)
from tests.interop.compared_nodes import Connection

READY_WITHIN_S = 30.0
OLD, NEW = 0, 2

_API_VERSIONS = {
    OLD: {ProduceRequest: 9, TxnOffsetCommitRequest: 3, EndTxnRequest: 3},
    NEW: {ProduceRequest: 12, TxnOffsetCommitRequest: 5, EndTxnRequest: 5},
}
_TRANSACTION = 1
_COMES_LATER = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_ENOUGH_REPLICAS,
}


class RawProducer:
    """See the module. `producer_id`, `epoch` and `sequences` are what the next request says."""

    def __init__(self, bootstrap: str, transactional_id: str, version: int = NEW, *, timeout_ms: int = 600_000) -> None:
        self.transactional_id = transactional_id
        self.version = version
        self.timeout_ms = timeout_ms
        self.producer_id = self.epoch = -1
        self.sequences: dict[tuple[str, int], int] = {}
        self._connection = Connection(bootstrap)

    def move_to(self, bootstrap: str) -> None:
        """What was said so far was said to somebody else who had the same data."""
        self._connection.close()
        self._connection = Connection(bootstrap)

    def close(self) -> None:
        self._connection.close()

    # What is said

    def init(self) -> None:
        """Takes the transactional id over; a transaction that is open under it is aborted first."""
        self._settled(FindCoordinatorRequest(coordinator_keys=[self.transactional_id], key_type=_TRANSACTION), 4)
        request = InitProducerIdRequest(transactional_id=self.transactional_id, transaction_timeout_ms=self.timeout_ms)
        reply = self._settled(request, 4)
        assert reply.error_code == ErrorCode.NONE, reply
        self.producer_id, self.epoch = reply.producer_id, reply.producer_epoch
        self.sequences.clear()

    def write(self, topic: str, partition: int, *values: bytes, timestamp_ms: int | None = None) -> None:
        if self.version == OLD:
            self.add(topic, partition)
        self.write_unannounced(topic, partition, *values, timestamp_ms=timestamp_ms)

    def add(self, topic: str, partition: int) -> None:
        topics = [AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=topic, partitions=[partition])]
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=topics,
        )
        self._must(request, 3)

    def write_unannounced(self, topic: str, partition: int, *values: bytes, timestamp_ms: int | None = None) -> None:
        """Writes. In the older protocol, the coordinator may not have heard of it."""
        sequence = self.sequences.get((topic, partition), 0)
        builder = BatchBuilder(
            producer_id=self.producer_id, producer_epoch=self.epoch, base_sequence=sequence, transactional=True
        )
        for value in values:
            builder.append(int(time.time() * 1000) if timestamp_ms is None else timestamp_ms, None, value)
        data = ProduceRequest.PartitionProduceData(index=partition, records=builder.build())
        request = ProduceRequest(
            transactional_id=self.transactional_id,
            acks=-1,
            timeout_ms=30_000,
            topic_data=[ProduceRequest.TopicProduceData(name=topic, partition_data=[data])],
        )
        self._must(request)
        self.sequences[topic, partition] = sequence + len(values)

    def commit_offset(self, group_id: str, topic: str, partition: int, offset: int) -> None:
        """The group's offset, which counts when the transaction is committed."""
        self._settled(FindCoordinatorRequest(coordinator_keys=[group_id]), 4)
        if self.version == OLD:
            self._must(
                AddOffsetsToTxnRequest(
                    transactional_id=self.transactional_id,
                    producer_id=self.producer_id,
                    producer_epoch=self.epoch,
                    group_id=group_id,
                ),
                3,
            )
        committed = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(
            partition_index=partition, committed_offset=offset
        )
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            topics=[TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(name=topic, partitions=[committed])],
        )
        self._must(request)

    def end(self, *, committed: bool) -> None:
        reply = self._settled(self._end_request(committed=committed), _API_VERSIONS[self.version][EndTxnRequest])
        assert reply.error_code == ErrorCode.NONE, reply
        if self.version == NEW:
            self.producer_id, self.epoch = reply.producer_id, reply.producer_epoch
            self.sequences.clear()

    def end_error(self, *, committed: bool) -> ErrorCode:
        """What a producer is told that asks once, and cannot have it."""
        request = self._end_request(committed=committed)
        reply = self._settled(request, _API_VERSIONS[self.version][EndTxnRequest])
        return ErrorCode(reply.error_code)

    def _end_request(self, *, committed: bool) -> EndTxnRequest:
        return EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=committed,
        )

    # How it is said

    def _must(self, request: Message, version: int | None = None) -> None:
        version = _API_VERSIONS[self.version][type(request)] if version is None else version
        reply = self._settled(request, version)
        assert not [error for error in error_codes(reply) if error], reply

    def _settled(self, request: Message, version: int) -> Any:
        """The reply, once what it depends on is there."""
        return until(
            lambda: self._connection.send(request, version),
            lambda reply: _COMES_LATER.isdisjoint(error_codes(reply)),
        )


def error_codes(reply: Any) -> Iterable[ErrorCode]:
    """Every error in a reply, wherever it stands."""
    if isinstance(reply, list | tuple):
        for item in reply:
            yield from error_codes(item)
    for name in getattr(reply, "__slots__", ()):
        value = getattr(reply, name)
        if name.endswith("error_code"):
            yield ErrorCode(value)
        elif isinstance(value, list | tuple):
            yield from error_codes(value)


def until(ask: Callable[[], Any], is_good: Callable[[Any], object], within_s: float = READY_WITHIN_S) -> Any:
    """Asks again until it is good; the last answer is told if it never is."""
    deadline = time.monotonic() + within_s
    while not is_good(answer := ask()):
        assert time.monotonic() < deadline, answer
        time.sleep(0.05)
    return answer
