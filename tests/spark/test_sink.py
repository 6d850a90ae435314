"""Writing with Spark: columns, options, delivery."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import StreamingQueryException

import ottla
from ottla.testing import Broker
from tests.spark.sink_scene import records
from tests.spark.streams import run_until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.mark.ottla_topic(partitions=3)
@pytest.mark.parametrize("delivery", ["single-transaction", "at-least-once"])
@pytest.mark.parametrize("inline_bytes", [0, 65536])
def test_keys_values_and_headers_land_where_java_puts_them(
    spark: "SparkSession",
    write: Callable[..., None],
    ottla_broker: Broker,
    ottla_topic: str,
    delivery: str,
    inline_bytes: int,
) -> None:
    frame = spark.range(0, 500, numPartitions=2).selectExpr(
        "cast(id as string) as key",
        "concat('value ', id) as value",
        "array(struct('n' as key, cast(cast(id as string) as binary) as value)) as headers",
    )
    write(frame, delivery=delivery, inlineBytes=inline_bytes)
    found = records(ottla_broker, ottla_topic)
    assert sorted(int(one.key) for one in found) == list(range(500))
    with ottla.Producer(bootstrap_servers=ottla_broker.bootstrap) as producer:
        for one in found:
            assert one.value == b"value " + one.key
            assert list(one.headers) == [("n", one.key)]
        places = {one.key: one.partition for one in found}
        for key in list(places)[:20]:
            assert producer.send(ottla_topic, b"", key).result().partition == places[key]


def test_a_streaming_query_writes_every_row_once(
    spark: "SparkSession", ottla_broker: Broker, ottla_topic: str, tmp_path: Path
) -> None:
    for inline_bytes in (0, 65536):
        query = (
            spark.readStream.format("rate-micro-batch")
            .option("rowsPerBatch", 100)
            .option("numPartitions", 2)
            .load()
            .selectExpr("cast(value as string) as value")
            .writeStream.format("ottla")
            .option("kafka.bootstrap.servers", ottla_broker.bootstrap)
            .option("topic", ottla_topic)
            .option("inlineBytes", inline_bytes)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(processingTime="0 seconds")
            .start()
        )
        wanted = 3 + (inline_bytes > 0) * 3
        run_until([query], wanted)
    found = sorted(int(one.value) for one in records(ottla_broker, ottla_topic))
    assert found == list(range(len(found)))
    assert len(found) >= 600


def test_queries_that_write_at_the_same_time_take_each_others_processes(
    spark: "SparkSession", ottla_broker: Broker, ottla_topic: str, tmp_path: Path
) -> None:
    """Any Python process of the driver commits any query's batch: the one that was idle."""
    queries = [
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", 10)
        .load()
        .selectExpr(f"cast(value * 3 + {index} as string) as value")
        .writeStream.format("ottla")
        .option("kafka.bootstrap.servers", ottla_broker.bootstrap)
        .option("topic", ottla_topic)
        .option("checkpointLocation", str(tmp_path / f"checkpoint-{index}"))
        .start()
        for index in range(3)
    ]
    run_until(queries, 6)
    found = [int(one.value) for one in records(ottla_broker, ottla_topic)]
    assert len(set(found)) == len(found) >= 3 * 60
    for index in range(3):
        own = sorted(value // 3 for value in found if value % 3 == index)
        assert own == list(range(len(own)))


def test_writes_of_a_foreach_batch_are_exactly_once_each(
    spark: "SparkSession", ottla_broker: Broker, ottla_topic: str, tmp_path: Path
) -> None:
    """The batch fails after the first of two writes, and is replayed."""
    failing = tmp_path / "failing"
    failing.touch()

    def write_twice(frame: "DataFrame", batch_id: int) -> None:
        rows = frame.selectExpr("cast(value as string) as value")
        writer = rows.write.format("ottla").mode("append").option("kafka.bootstrap.servers", ottla_broker.bootstrap)
        writer = writer.option("topic", ottla_topic).option("delivery", "exactly-once").option("inlineBytes", 0)
        writer.option("writeName", "first").save()
        if batch_id == 1 and failing.exists():
            failing.unlink()
            raise RuntimeError("between two writes")
        writer.option("writeName", "second").save()

    for is_last in (False, True):
        query = (
            spark.readStream.format("rate-micro-batch")
            .option("rowsPerBatch", 50)
            .option("numPartitions", 2)
            .load()
            .writeStream.foreachBatch(write_twice)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .start()
        )
        if not is_last:
            with pytest.raises(StreamingQueryException, match="between two writes"):
                query.awaitTermination(60)
            continue
        run_until([query], 2)
    found = sorted(int(one.value) for one in records(ottla_broker, ottla_topic))
    whole = [number for number in range(150) for _ in range(2)]
    assert found[: len(whole)] == whole
