"""Batches, and the requests that carry them."""

import time
from typing import Any

from ottla.records.builder import BatchBuilder
from ottla.wire.messages import ProduceRequest
from tests.interop.compared_nodes import topic_id

NOW_MS = int(time.time() * 1000)
BY_ID = 13
"""Topics are named by their ids from this version on."""


def batch(*values: bytes, key: bytes | None = b"k", timestamp: int = NOW_MS, **fields: Any) -> bytes:
    builder = BatchBuilder(**fields)
    for value in values or (b"v",):
        builder.append(timestamp, key, value)
    return bytes(builder.build())


def produce(
    records: bytes | None, topic: str = "orders", index: int = 0, *, version: int = 12, acks: int = -1, **fields: Any
) -> ProduceRequest:
    name: dict[str, Any] = {"topic_id": topic_id(topic)} if version >= BY_ID else {"name": topic}
    data = [ProduceRequest.PartitionProduceData(index=index, records=records)]
    return ProduceRequest(
        acks=acks,
        timeout_ms=30_000,
        topic_data=[ProduceRequest.TopicProduceData(**name, partition_data=data)],
        **{"transactional_id": None, **fields},
    )
