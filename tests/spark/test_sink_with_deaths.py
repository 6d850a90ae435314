"""Processes of Spark that are killed while a query writes. The query starts again from its checkpoint: exactly once."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import StreamingQueryException

from ottla.testing import Broker
from tests.spark.deadly_sink import POINTS, DeadlySource
from tests.spark.sink_scene import read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS_PER_BATCH = 200


@pytest.fixture(scope="module", autouse=True)
def registered(spark: "SparkSession") -> None:
    spark.dataSource.register(DeadlySource)


@pytest.mark.ottla_topic(partitions=2)
@pytest.mark.parametrize("point", POINTS)
def test_a_query_writes_every_row_once_though_a_process_of_it_is_killed(
    spark: "SparkSession", ottla_broker: Broker, ottla_topic: str, tmp_path: Path, point: str
) -> None:
    order = tmp_path / "order"

    def start() -> Any:
        return (
            spark.readStream.format("rate-micro-batch")
            .option("rowsPerBatch", ROWS_PER_BATCH)
            .option("numPartitions", 2)
            .load()
            .selectExpr("cast(value as string) as key", "cast(value as string) as value")
            .writeStream.format("deadly")
            .option("kafka.bootstrap.servers", ottla_broker.bootstrap)
            .option("kafka.client.id", str(order))
            .option("topic", ottla_topic)
            .option("inlineBytes", 0)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .start()
        )

    query = start()
    wait_for_batch(query, 1)
    order.write_text(point)
    with pytest.raises(StreamingQueryException):
        query.awaitTermination(60)
    assert not order.exists()
    query = start()
    wait_for_batch(query, 4)
    query.stop()
    found = sorted(read(ottla_broker, ottla_topic))
    assert found == list(range(len(found)))
    assert len(found) >= 4 * ROWS_PER_BATCH


def wait_for_batch(query: Any, batch_id: int) -> None:
    while query.lastProgress is None or query.lastProgress["batchId"] < batch_id:
        query.awaitTermination(0.1)  # raises if the query has failed
