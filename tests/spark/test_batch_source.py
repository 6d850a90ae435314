"""`spark.read.format("ottla")`: which rows come, and what they are like."""

from collections.abc import Callable
from typing import Any

import pytest

from ottla import Producer

Read = Callable[..., Any]


@pytest.mark.ottla_topic(partitions=2)
def test_every_record_is_a_row(read: Read, producer: Producer, ottla_topic: str) -> None:
    for number in range(100):
        producer.send(ottla_topic, b"%d" % number, key=b"key", partition=number % 2)
    producer.flush()
    rows = read().load().selectExpr("cast(value as string) value", "partition", "offset", "topic").collect()
    assert sorted((row.partition, row.offset, row.value, row.topic) for row in rows) == [
        (partition, offset, str(2 * offset + partition), ottla_topic) for partition in range(2) for offset in range(50)
    ]


def test_the_columns_are_those_of_sparks_connector(read: Read) -> None:
    assert read().load().schema.simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,timestampType:int>"
    )
