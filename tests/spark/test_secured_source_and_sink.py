"""Source and sink over SASL_SSL: options named as Spark's connector names them, and no secret where people look."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from ottla.testing import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def secured() -> Iterator[Broker]:
    with Broker(security="SASL_SSL") as broker:
        yield broker


def options(broker: Broker) -> dict[str, str]:
    return {f"kafka.{name}": value for name, value in broker.client_settings.items()}


def test_rows_are_written_and_read_in_batches_and_streams(
    spark: "SparkSession", secured: Broker, tmp_path_factory: pytest.TempPathFactory
) -> None:
    secured.create_topic("rows", partitions=2)
    secured.create_topic("copies")
    rows = spark.createDataFrame([(f"k{number}", f"v{number}") for number in range(20)], "key string, value string")
    rows.write.format("ottla").mode("append").options(**options(secured)).option("topic", "rows").save()

    stream = spark.readStream.format("ottla").options(**options(secured), subscribe="rows", startingOffsets="earliest")
    checkpoint = str(tmp_path_factory.mktemp("checkpoint"))
    copying = (
        stream.load()
        .select("key", "value")
        .writeStream.format("ottla")
        .options(**options(secured), topic="copies", checkpointLocation=checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    assert copying.awaitTermination(120)

    copies = spark.read.format("ottla").options(**options(secured), subscribe="copies").load()
    password = secured.client_settings["sasl.jaas.config"].partition('password="')[2].partition('"')[0]
    assert password
    assert password not in copies._jdf.queryExecution().toString()
    assert {bytes(row.value) for row in copies.collect()} == {b"v%d" % number for number in range(20)}


def test_a_wrong_password_fails_the_query_and_is_not_told(spark: "SparkSession", secured: Broker) -> None:
    given = options(secured)
    login = given["kafka.sasl.jaas.config"]
    known = login.partition('password="')[2].partition('"')[0]
    wrong = {**given, "kafka.sasl.jaas.config": login.replace(known, "not-the-password")}
    with pytest.raises(Exception, match="Authentication failed") as raised:
        spark.read.format("ottla").options(**wrong, subscribe="rows").load().collect()
    assert "not-the-password" not in str(raised.value)
