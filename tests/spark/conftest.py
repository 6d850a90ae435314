"""One Spark session and one broker for the whole run: each costs seconds. Topics are each test's own."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

import ottla
import ottla.spark
from ottla.testing import Broker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    session = ottla.spark.session(
        "tests",
        master="local[2]",
        **{
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.streaming.stopTimeout": "60s",
        },
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture
def read(spark: "SparkSession", ottla_broker: Broker, ottla_topic: str) -> "Callable[..., DataFrameReader]":
    """`read(startingOffsets="earliest")` is a reader of this test's topic; `subscribe=None` takes an option away."""

    def reader(**options: object) -> "DataFrameReader":
        given = {"kafka.bootstrap.servers": ottla_broker.bootstrap, "subscribe": ottla_topic, **options}
        made = spark.read.format("ottla")
        for name, value in given.items():
            if value is not None:
                made = made.option(name, str(value))
        return made

    return reader


@pytest.fixture
def producer(ottla_broker: Broker) -> Iterator[ottla.Producer]:
    with ottla.Producer(bootstrap_servers=ottla_broker.bootstrap, linger_ms=0) as made:
        yield made


@pytest.fixture
def write(ottla_broker: Broker, ottla_topic: str) -> Callable[..., None]:
    """`write(frame, delivery="at-least-once")` writes to this test's topic; `topic=None` takes an option away."""

    def write(frame: "DataFrame", **options: object) -> None:
        given = {"kafka.bootstrap.servers": ottla_broker.bootstrap, "topic": ottla_topic, **options}
        writer = frame.write.format("ottla").mode("append")
        for name, value in given.items():
            if value is not None:
                writer = writer.option(name, str(value))
        writer.save()

    return write
