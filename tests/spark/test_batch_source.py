"""`spark.read.format("ottla")`: which rows come, and what they are like."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from ottla import Producer
from ottla.testing import Broker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Read = Callable[..., Any]
NOON_MS = 1_700_000_000_000


@pytest.fixture
def ten(producer: Producer, ottla_topic: str) -> None:
    """Ten records in each of two partitions, a second apart: record n of partition p has value pn."""
    for partition in range(2):
        for number in range(10):
            producer.send(
                ottla_topic,
                b"%d%d" % (partition, number),
                key=None if number == 3 else b"key",
                partition=partition,
                timestamp_ms=NOON_MS + number * 1000,
                headers=[("from", b"test"), ("from", None)] if number == 4 else [],
            )
    producer.flush()


# The records are years old: retention would take them, at the broker's next look, in the middle of a test.
two_partitions = pytest.mark.ottla_topic(partitions=2, settings={"retention.ms": "-1"})


def values(frame: "DataFrame") -> list[str]:
    return sorted(bytes(row.value).decode() for row in frame.select("value").collect())


@two_partitions
def test_every_record_is_a_row(read: Read, ten: None, ottla_topic: str) -> None:
    rows = read(includeHeaders="true").load().orderBy("partition", "offset").collect()
    assert [(row.partition, row.offset, bytes(row.value)) for row in rows] == [
        (partition, offset, b"%d%d" % (partition, offset)) for partition in range(2) for offset in range(10)
    ]
    assert {row.topic for row in rows} == {ottla_topic}
    assert [row.key for row in rows[:5]] == [b"key", b"key", b"key", None, b"key"]
    assert [header.asDict() for header in rows[4].headers] == [
        {"key": "from", "value": b"test"},
        {"key": "from", "value": None},
    ]
    assert rows[5].headers is None, "as in Spark's connector"
    assert {row.timestampType for row in rows} == {0}


@two_partitions
def test_timestamps_are_of_the_session_in_utc(read: Read, ten: None) -> None:
    [row] = read().load().where("partition = 0 and offset = 2").selectExpr("cast(timestamp as string) time").collect()
    assert row.time == datetime.fromtimestamp(NOON_MS / 1000 + 2, UTC).strftime("%Y-%m-%d %H:%M:%S")


def test_the_columns_are_those_of_sparks_connector(read: Read) -> None:
    assert read().load().schema.simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,timestampType:int>"
    )
    headers = read(includeHeaders="true").load().schema["headers"]
    assert headers.dataType.simpleString() == "array<struct<key:string,value:binary>>"


@two_partitions
def test_fewer_columns_are_read_in_the_order_that_was_asked_for(read: Read, ten: None) -> None:
    frame = read(columns="offset, value").load()
    assert frame.columns == ["offset", "value"]
    assert frame.count() == 20


@two_partitions
def test_a_read_begins_and_ends_at_given_offsets(read: Read, ten: None, ottla_topic: str) -> None:
    frame = read(
        startingOffsets=json.dumps({ottla_topic: {"0": 8, "1": -2}}),
        endingOffsets=json.dumps({ottla_topic: {"0": -1, "1": 2}}),
    ).load()
    assert values(frame) == ["08", "09", "10", "11"]


@two_partitions
def test_a_read_begins_and_ends_at_given_times(read: Read, ten: None, ottla_topic: str) -> None:
    frame = read(startingTimestamp=NOON_MS + 7_500, endingTimestamp=NOON_MS + 9_000).load()
    assert values(frame) == ["08", "18"]
    times = {ottla_topic: {"0": NOON_MS + 9_000, "1": NOON_MS + 8_000}}
    assert values(read(startingOffsetsByTimestamp=json.dumps(times)).load()) == ["09", "18", "19"]


@two_partitions
def test_partitions_are_chosen_by_assignment_or_pattern(read: Read, ten: None, ottla_topic: str) -> None:
    assigned = read(subscribe=None, assign=json.dumps({ottla_topic: [1]})).load()
    assert values(assigned) == [f"1{number}" for number in range(10)]
    assert read(subscribe=None, subscribePattern=ottla_topic[:-1] + ".").load().count() == 20


@two_partitions
def test_tasks_are_as_many_as_the_job_says(read: Read, ten: None) -> None:
    together = read().load()
    assert together.rdd.getNumPartitions() == 1, "small ranges share a task"
    assert together.count() == 20
    assert read(minPartitions=2).load().rdd.getNumPartitions() == 2
    divided = read(minPartitions=5).load()
    assert divided.rdd.getNumPartitions() in (4, 5, 6)
    assert divided.count() == 20
    limited = read(maxRecordsPerPartition=3).load()
    assert limited.rdd.getNumPartitions() == 8
    assert limited.count() == 20


@two_partitions
@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("partition = 1 and offset >= 8", ["18", "19"]),
        ("partition <> 1 and offset < 2", ["00", "01"]),
        ("partition in (1, 7) and offset > 3 and offset <= 5", ["14", "15"]),
        ("offset = 4", ["04", "14"]),
        (f"timestamp >= timestamp_millis({NOON_MS + 8_500})", ["09", "19"]),
        (f"timestamp < timestamp_millis({NOON_MS + 1_000})", ["00", "10"]),
        ("offset > 3 and key is null", []),
        ("key is null", ["03", "13"]),
        ("partition is not null and offset = 2 and cast(value as string) = '12'", ["12"]),
    ],
)
def test_filters_are_pushed_down_and_mean_the_same(read: Read, ten: None, condition: str, expected: list[str]) -> None:
    assert values(read().load().where(condition)) == expected


@two_partitions
def test_what_a_filter_excludes_is_not_read(read: Read, ten: None) -> None:
    frame = read().load()
    assert frame.where("partition = 1").rdd.getNumPartitions() == 1
    plan = frame.where("partition = 1 and key is null")._jdf.queryExecution().executedPlan().toString()
    assert "partition" not in plan.split("Filter")[1].split("\n")[0], "Spark has nothing left to do for this one"
    assert frame.where("offset >= 100").count() == 0


@two_partitions
def test_a_session_without_filter_pushdown_reads_the_same(spark: "SparkSession", read: Read, ten: None) -> None:
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "false")
    try:
        assert values(read().load().where("partition = 1 and offset >= 8")) == ["18", "19"]
    finally:
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")


def test_an_empty_topic_has_no_rows(read: Read) -> None:
    assert read().load().collect() == []


def test_deleted_records_are_an_error_or_passed_over(
    read: Read, producer: Producer, ottla_topic: str, ottla_broker: Broker
) -> None:
    for number in range(10):
        producer.send(ottla_topic, b"%d" % number)
    producer.flush()
    from ottla import Admin, TopicPartition

    with Admin(bootstrap_servers=ottla_broker.bootstrap) as admin:
        admin.delete_records({TopicPartition(ottla_topic, 0): 6})
    begin = json.dumps({ottla_topic: {"0": 2}})
    assert values(read(startingOffsets=begin, failOnDataLoss="false").load()) == ["6", "7", "8", "9"]
    with pytest.raises(Exception, match="failOnDataLoss=false"):
        read(startingOffsets=begin).load().collect()


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_records_are_read(read: Read, ottla_broker: Broker, ottla_topic: str, codec: str) -> None:
    with Producer(bootstrap_servers=ottla_broker.bootstrap, compression_type=codec) as producer:
        for number in range(1000):
            producer.send(ottla_topic, b"%04d" % number)
    assert values(read().load()) == [f"{number:04}" for number in range(1000)]
