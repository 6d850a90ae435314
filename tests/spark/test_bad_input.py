"""What a user sees when the cluster does not have what a job wants: the option's name, not a Java stack trace alone."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ottla.testing import Broker
from tests.spark.streams import PATIENCE_S, Stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Read = Callable[..., Any]


def told_by(act: Callable[[], object]) -> str:
    with pytest.raises(Exception, match="option") as raised:
        act()
    return str(raised.value)


def test_a_misspelt_option_is_told_when_the_source_is_loaded(read: Read) -> None:
    assert "option startingoffset is unknown; did you mean startingOffsets?" in told_by(
        lambda: read(startingOffset="earliest").load()
    )


def test_brokers_that_do_not_answer(read: Read) -> None:
    unreachable = {"kafka.bootstrap.servers": "127.0.0.1:1", "kafka.default.api.timeout.ms": "500"}
    told = told_by(lambda: read(**unreachable).load().collect())
    assert "the brokers of option kafka.bootstrap.servers (127.0.0.1:1) did not answer" in told


def test_a_topic_that_is_not_there(read: Read) -> None:
    told = told_by(lambda: read(subscribe="nowhere,neither").load().collect())
    assert "option subscribe names what the brokers at" in told
    assert "nowhere, neither" in told


def test_a_partition_that_is_not_there(read: Read, ottla_topic: str) -> None:
    told = told_by(lambda: read(subscribe=None, assign=json.dumps({ottla_topic: [0, 7]})).load().collect())
    assert "option assign names what the brokers at" in told
    assert f"{ottla_topic}-7" in told


@pytest.mark.ottla_topic(partitions=2)
def test_offsets_that_leave_out_a_partition(read: Read, ottla_topic: str) -> None:
    told = told_by(lambda: read(startingOffsets=json.dumps({ottla_topic: {"0": 0}})).load().collect())
    assert f"option startingOffsets says nothing of {ottla_topic}-1" in told


def test_a_time_that_no_record_has(read: Read) -> None:
    told = told_by(lambda: read(startingTimestamp=4_000_000_000_000).load().collect())
    assert "is as young as option startingTimestamp asks for" in told
    assert "startingOffsetsByTimestampStrategy=latest" in told
    later = read(startingTimestamp=4_000_000_000_000, startingOffsetsByTimestampStrategy="latest")
    assert later.load().collect() == []


def test_a_schema_of_other_columns(read: Read) -> None:
    told = told_by(lambda: read().schema("key STRING, value STRING").load().collect())
    assert "choose with the options columns and value.format" in told


@pytest.mark.parametrize("schema", ["id", "id: NUMBER", "id BIGINT, name", '{"type": "other"}'])
def test_a_schema_of_values_that_is_none(read: Read, schema: str) -> None:
    told = told_by(lambda: read(**{"value.format": "json", "value.schema": schema}).load())
    assert "option value.schema is" in told


def test_a_query_whose_topic_is_deleted_stops_or_goes_on(
    spark: "SparkSession", ottla_broker: Broker, ottla_topic: str, tmp_path: Path
) -> None:
    other = ottla_topic + "-other"
    ottla_broker.create_topic(other)
    options = {"kafka.bootstrap.servers": ottla_broker.bootstrap, "subscribePattern": ottla_topic + ".*"}
    stream = Stream(spark, tmp_path / "checkpoint", options)
    assert stream.run(startingOffsets="earliest") == []
    ottla_broker.delete_topic(other)
    with pytest.raises(Exception, match="failOnDataLoss") as raised:
        stream.run()
    assert f"{other}-0 cannot be found any more" in str(raised.value)
    assert stream.run(failOnDataLoss="false") == []


def test_a_stream_of_a_topic_that_is_not_there(spark: "SparkSession", ottla_broker: Broker, tmp_path: Path) -> None:
    options = {"kafka.bootstrap.servers": ottla_broker.bootstrap, "subscribe": "nowhere"}
    query = Stream(spark, tmp_path / "checkpoint", options).start()
    told = told_by(lambda: query.awaitTermination(PATIENCE_S))
    assert "option subscribe names what the brokers at" in told
