"""Batches of every kind, and what becomes of them."""

from typing import Any

from ottla.records.header import Compression
from ottla.wire.messages import DescribeProducersRequest, InitProducerIdRequest, ProduceRequest
from tests.interop.compared_nodes import Settle, Step, ask
from tests.interop.requests_to_compare.batches import BY_ID, NOW_MS, batch, produce
from tests.interop.requests_to_compare.logs import list_offsets
from tests.interop.requests_to_compare.topics import create, topic

MAGIC_POSITION = 16
TOPICS = {
    "small": {"max.message.bytes": "100"},
    "compacted": {"cleanup.policy": "compact"},
    "stamped": {"message.timestamp.type": "LogAppendTime"},
    "recent": {"message.timestamp.before.max.ms": "1000"},
    "packed": {"compression.type": "zstd"},
    "strict": {"min.insync.replicas": "2"},
}


def produced(records: bytes, topic: str = "orders", index: int = 0, **fields: Any) -> list[Step]:
    return [
        step
        for version in (3, 12, 13)
        for step in ask(produce(records, topic, index, version=version, **fields), version)
    ]


def changed(data: bytes, position: int, value: int) -> bytes:
    copy = bytearray(data)
    copy[position] = value
    return bytes(copy)


def batches() -> list[Step]:
    return [
        *create(("orders", 2), *(topic(name, configs=configs) for name, configs in TOPICS.items())),
        Settle(("orders", *TOPICS)),
        *(step for version in range(3, 14) for step in ask(produce(batch(), version=version), version)),
        *(step for acks in (-2, -1, 0, 1, 2) for step in ask(produce(batch(), acks=acks), 12)),
        *(step for codec in Compression for step in produced(batch(b"a" * 100, b"b" * 100, compression=codec))),
        *produced(batch(timestamp=5), "stamped"),
        *produced(batch(b"a" * 1000), "packed"),
        *produced(batch(b"a" * 1000, compression=Compression.GZIP), "packed"),
        *produced(batch(b"a"), "compacted"),
        *list_offsets("orders", 0, -1, 9),
        *ask(ProduceRequest(acks=1, timeout_ms=1000, transactional_id=None), 9),
    ]


def refused() -> list[Step]:
    nobody = produce(batch(), "nobody")
    by_nobodys_id = produce(batch(), "orders", version=BY_ID)
    by_nobodys_id.topic_data[0].topic_id = bytes(range(16))
    return [
        *batches()[:2],
        *produced(changed(batch(b"abc"), -1, 1)),
        *produced(changed(batch(b"abc"), MAGIC_POSITION, 3)),
        *produced(batch(bytes(200)), "small"),
        *produced(batch(b"a", b"b", timestamp=NOW_MS + 10_000_000)),
        *produced(batch(timestamp=NOW_MS - 1_000_000), "recent"),
        *produced(batch(b"x", b"y", key=None), "compacted"),
        *produced(batch(), "strict"),
        *produced(batch(), "strict", acks=1),
        *produced(batch(), index=9),
        *produced(batch(transactional=True, producer_id=7, producer_epoch=0, base_sequence=0)),
        *produced(batch(control=True, producer_id=7, producer_epoch=0, base_sequence=0)),
        *ask(nobody, 3, 12),
        *ask(by_nobodys_id, BY_ID),
    ]


def by_producer(sequence: int, epoch: int = 0, count: int = 1) -> bytes:
    return batch(*[b"v"] * count, producer_id=77, producer_epoch=epoch, base_sequence=sequence)


def idempotent() -> list[Step]:
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
    states = DescribeProducersRequest(
        topics=[
            DescribeProducersRequest.TopicRequest(name="repeated", partition_indexes=(0, 9)),
            DescribeProducersRequest.TopicRequest(name="nobody", partition_indexes=(0,)),
        ]
    )
    return [
        *create(("repeated", 1)),
        Settle(("repeated",)),
        *(step for given in steps for step in ask(produce(by_producer(*given), "repeated"), 12)),
        *ask(produce(by_producer(1, 1, count=3), "repeated"), 12),
        *ask(produce(by_producer(2, 1), "repeated"), 12),
        *ask(states, 0),
    ]


def producer_ids() -> list[Step]:
    def init(transactional_id: str | None = None, **fields: Any) -> InitProducerIdRequest:
        return InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000, **fields)

    return [
        *ask(init(), 0, 5),
        *ask(init(transactional_id=""), 0, 5),
        *ask(init(producer_id=5), 5),
        *ask(init(producer_epoch=5), 5),
        *ask(init(producer_id=5, producer_epoch=5), 5),
    ]
