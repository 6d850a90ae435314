"""What the driver's half of a stream decides, without Spark: how far a micro-batch goes, and what is lost."""

from collections.abc import Callable, Iterator
from threading import Thread
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxRows, ReadMinRows

import ottla
from ottla.base.ids import TopicPartition
from ottla.spark.options import Options, Use
from ottla.spark.source import stream_reader
from ottla.spark.source.lookups import SourceError
from ottla.spark.source.offsets_json import from_json
from ottla.spark.source.source_options import read_source_options
from ottla.spark.source.stream_reader import StreamReader
from ottla.spark.source.task import RowReading
from ottla.testing import Broker

PATIENCE_S = 60
Readers = Callable[..., StreamReader]


@pytest.fixture
def reader(ottla_broker: Broker, ottla_topic: str) -> Iterator[Readers]:
    """`reader(failOnDataLoss="false")` reads this test's topic from its beginning."""
    made: list[StreamReader] = []

    def make(**options: object) -> StreamReader:
        given = {"kafka.bootstrap.servers": ottla_broker.bootstrap, "subscribe": ottla_topic, **options}
        named = {name.lower(): str(value) for name, value in {"startingOffsets": "earliest", **given}.items()}
        read = read_source_options(Options(named, Use.STREAM_READ), Use.STREAM_READ)
        made.append(StreamReader(read, RowReading(["value"], pa.binary())))
        return made[-1]

    yield make
    for one in made:
        one.stop()


def send(broker: Broker, topic: str, count: int, partition: int = 0) -> None:
    with ottla.Producer(bootstrap_servers=broker.bootstrap) as producer:
        for number in range(count):
            producer.send(topic, b"%d" % number, partition=partition)


def latest(reader: StreamReader, start: Any) -> Any:
    """Without the topics' ids."""
    found = reader.latestOffset(start, reader.getDefaultReadLimit())
    return {topic: offsets for topic, offsets in found.items() if topic != "#ids"}


def test_few_offsets_wait_for_more_until_the_delay_is_over(
    reader: Readers, ottla_broker: Broker, ottla_topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock_s = 1000.0
    monkeypatch.setattr(stream_reader, "monotonic", lambda: clock_s)
    waiting = reader(minOffsetsPerTrigger=50, maxTriggerDelay="10m")
    send(ottla_broker, ottla_topic, 5)
    first = latest(waiting, waiting.initialOffset())
    assert first == {ottla_topic: {"0": 5}}
    send(ottla_broker, ottla_topic, 7)
    clock_s += 599
    assert latest(waiting, first) == first
    clock_s += 2
    assert latest(waiting, first) == {ottla_topic: {"0": 12}}


def test_an_idle_query_waits_inside_and_hears_of_a_record_at_once(
    reader: Readers, ottla_broker: Broker, ottla_topic: str
) -> None:
    idle = reader(idleWaitMs=600_000)
    start, told = idle.initialOffset(), []
    idle._wait_s = 600.0  # as after many questions in vain
    asking = Thread(target=lambda: told.append(latest(idle, start)), daemon=True)
    asking.start()
    send(ottla_broker, ottla_topic, 1)
    asking.join(PATIENCE_S)
    assert told == [{ottla_topic: {"0": 1}}]


def test_an_idle_query_waits_longer_each_time_and_is_busy_again_after_a_micro_batch(
    reader: Readers, ottla_broker: Broker, ottla_topic: str
) -> None:
    idle = reader(idleWaitMs=150)
    start, waits = idle.initialOffset(), []
    for _ in range(4):
        assert idle.latestOffset(start, idle.getDefaultReadLimit()) == start
        waits.append(idle._wait_s)
    assert waits == [0.05, 0.1, 0.15, 0.15]
    idle.commit(start)
    assert idle._wait_s == 0.0


def test_the_latest_offsets_are_reported_beyond_what_is_admitted(
    reader: Readers, ottla_broker: Broker, ottla_topic: str
) -> None:
    limited = reader(maxOffsetsPerTrigger=3)
    assert limited.reportLatestOffset() is None
    send(ottla_broker, ottla_topic, 10)
    assert latest(limited, limited.initialOffset()) == {ottla_topic: {"0": 3}}
    assert from_json(limited.reportLatestOffset() or {}) == {TopicPartition(ottla_topic, 0): 10}


def test_spark_is_told_the_limit_that_was_given(reader: Readers) -> None:
    assert reader().getDefaultReadLimit() == ReadAllAvailable()
    assert reader(maxOffsetsPerTrigger=7, maxBytesPerTrigger=100).getDefaultReadLimit() == ReadMaxRows(7)
    assert reader(maxBytesPerTrigger=100).getDefaultReadLimit() == ReadMaxBytes(100)
    assert reader(minOffsetsPerTrigger=5).getDefaultReadLimit() == ReadMinRows(5)


def test_a_topic_that_was_made_anew_is_told_or_passed_over(
    reader: Readers, ottla_broker: Broker, ottla_topic: str
) -> None:
    start = {ottla_topic: {"0": 20}}
    send(ottla_broker, ottla_topic, 5)
    with pytest.raises(SourceError, match=f"moved back, .* {ottla_topic}-0 from 20 to 5.*failOnDataLoss=false"):
        latest(reader(), start)
    lenient = reader(failOnDataLoss="false")
    with pytest.warns(UserWarning, match="the end of the log has moved back"):
        end = latest(lenient, start)
    with pytest.warns(UserWarning, match="the end of the log has moved back"):
        assert lenient.partitions(start, end) == []


@pytest.mark.ottla_topic(partitions=2)
def test_an_added_partition_whose_first_records_are_gone_is_told_or_passed_over(
    reader: Readers, ottla_broker: Broker, ottla_topic: str
) -> None:
    send(ottla_broker, ottla_topic, 10, partition=1)
    with ottla.Admin(bootstrap_servers=ottla_broker.bootstrap) as admin:
        admin.delete_records({(ottla_topic, 1): 4}).raise_first()
    start, end = {ottla_topic: {"0": 0}}, {ottla_topic: {"0": 0, "1": 10}}
    with pytest.raises(SourceError, match=f"begin later than 0: {ottla_topic}-1 at 4.*failOnDataLoss=false"):
        reader().partitions(start, end)
    with pytest.warns(UserWarning, match="begin later than 0"):
        [task] = reader(failOnDataLoss="false").partitions(start, end)
    assert repr(task) == f"{ottla_topic}-1[4, 10)"
