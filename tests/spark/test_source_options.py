"""The options of the source: what is read of them, and that whatever is wrong is told with the option's name."""

import pickle
from collections.abc import Callable, Sequence

import pyarrow as pa
import pytest

from ottla import Producer
from ottla.base.ids import TopicPartition
from ottla.spark.options import OptionError, Options, OptionWarning, Use
from ottla.spark.source.admission import limited_in_bytes, limited_in_rows
from ottla.spark.source.batch_reader import BatchReader
from ottla.spark.source.offsets_json import EARLIEST, LATEST, from_json, to_json
from ottla.spark.source.ranges import (
    TOO_FEW_TO_WEIGH,
    WORTH_A_TASK,
    WORTH_A_TASK_BYTES,
    OffsetRange,
    divided,
    tasks_for,
)
from ottla.spark.source.source_options import SourceOptions, read_source_options
from ottla.spark.source.task import RowReading
from ottla.testing import Broker

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
GOOD = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "a"}


def options(use: Use = Use.STREAM_READ, **given: object) -> SourceOptions:
    """Names are as Spark hands them over: in lower case."""
    named = {key.lower(): str(value) for key, value in {**GOOD, **given}.items() if value is not None}
    return read_source_options(Options(named, use), use)


def test_a_stream_begins_at_the_end_and_a_batch_at_the_beginning() -> None:
    assert options(Use.STREAM_READ).starting.everywhere == LATEST
    assert options(Use.BATCH_READ).starting.everywhere == EARLIEST
    assert options(Use.BATCH_READ).ending.everywhere == LATEST


def test_settings_of_kafka_reach_the_client() -> None:
    read = options(**{"kafka.client.id": "job", "kafka.group.id": "watched"})
    assert (read.client["client.id"], read.group_id) == ("job", "watched")
    assert read.client["isolation.level"] == "read_committed"
    assert options(**{"kafka.isolation.level": "read_uncommitted"}).client["isolation.level"] == "read_uncommitted"


def test_secrets_reach_the_client_and_no_log_line() -> None:
    login = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="hunter2";'
    secured = {"kafka.security.protocol": "SASL_SSL", "kafka.sasl.mechanism": "PLAIN", "kafka.sasl.jaas.config": login}
    read = options(**secured, **{"kafka.ssl.truststore.password": "hunter3", "kafka.ssl.truststore.type": "PKCS12"})
    assert read.client["sasl.jaas.config"] == login
    assert "hunter" not in repr(read) + str(read.client)
    assert "'ssl.truststore.type': 'PKCS12'" in repr(read)
    assert "hunter" not in repr(pickle.loads(pickle.dumps(read)))
    with pytest.raises(OptionError) as raised:
        options(**{"kafka.sasl.jaas.cofnig": login})
    assert "hunter" not in str(raised.value)


def test_offsets_are_read_as_sparks_connector_writes_them() -> None:
    assert options(startingOffsets='{"a":{"0":23,"1":-2},"b":{"0":-1}}').starting.offsets == {A0: 23, A1: -2, B0: -1}
    assert to_json({B0: 1, A1: 2, A0: 3}) == {"a": {"0": 3, "1": 2}, "b": {"0": 1}}
    assert list(to_json({TopicPartition("a", 10): 1, TopicPartition("a", 9): 1})["a"]) == ["9", "10"]
    assert from_json({"a": {"0": 3}}) == {A0: 3}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"kafka.bootstrap.servers": None}, "option kafka.bootstrap.servers is missing"),
        ({"kafka.bootstrap.servers": "nowhere"}, "kafka.bootstrap.servers=nowhere: it must be host:port"),
        ({"kafka.fetch.min.bytes": "many"}, "option kafka.fetch.min.bytes=many"),
        (
            {"startingOffsets": "erliest"},
            "option startingOffsets is 'erliest', and must be earliest, latest, or offsets",
        ),
        ({"startingOffsets": "erliest"}, "did you mean earliest?"),
        ({"kafka.fetch.min.byte": "1"}, "did you mean fetch.min.bytes"),
        ({"kafka.auto.offset.reset": "latest"}, "option kafka.auto.offset.reset cannot be given: startingOffsets"),
        ({"kafka.enable.auto.commit": "true"}, "option kafka.enable.auto.commit cannot be given"),
        ({"startingOffset": "earliest"}, "option startingoffset is unknown; did you mean startingOffsets?"),
        ({"bootstrap.servers": "x:1"}, "did you mean kafka.bootstrap.servers?"),
        ({"endingOffsets": "latest"}, "option endingOffsets ('latest') has no meaning in a streaming read"),
        ({"subscribe": None}, "one of the options subscribe, subscribePattern and assign says what to read; none"),
        ({"assign": '{"a":[0]}'}, "subscribe and assign are given"),
        ({"subscribe": " , "}, "option subscribe is empty"),
        ({"subscribe": None, "assign": '{"a":0}'}, "option assign is malformed"),
        ({"subscribe": None, "assign": "{}"}, "option assign names no partition"),
        (
            {"subscribe": None, "subscribePattern": "("},
            "option subscribePattern is '(', which is not a regular expression",
        ),
        ({"startingOffsets": "begin"}, "option startingOffsets is 'begin', and must be earliest, latest, or offsets"),
        (
            {"startingOffsets": '{"a":[1]}'},
            "option startingOffsets is malformed: topic 'a' has no partitions in braces",
        ),
        ({"startingOffsets": '{"a":{"x":1}}'}, "'x' of topic 'a' is not the number of a partition"),
        ({"startingOffsets": '{"a":{"0":-3}}'}, "a-0 has -3, not a number from -2 on"),
        ({"startingOffsets": '{"a":{"0":"1"}}'}, "a-0 has '1', not a number"),
        ({"startingOffsets": "latest", "startingTimestamp": "1"}, "startingTimestamp and startingOffsets contradict"),
        ({"startingTimestamp": "yesterday"}, "option startingTimestamp is 'yesterday', and must be a whole number"),
        ({"maxOffsetsPerTrigger": "0"}, "option maxOffsetsPerTrigger is '0', and must be a whole number of at least 1"),
        ({"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "5"}, "minOffsetsPerTrigger (9) is larger than"),
        ({"maxTriggerDelay": "soon"}, "option maxTriggerDelay is 'soon', and must be a duration"),
        ({"failOnDataLoss": "maybe"}, "option failOnDataLoss is 'maybe', and must be one of: true, false"),
        (
            {"value.format": "thrift"},
            "option value.format is 'thrift', and must be raw, string, json, avro, protobuf, or package.module:Class",
        ),
        ({"value.format": "json"}, "option value.schema is missing"),
        ({"value.schema": "id INT"}, "option value.schema has no meaning with value.format=raw"),
        ({"value.format": "string", "value.onError": "deadLetter"}, "value.deadLetterTopic belong together"),
        ({"value.onError": "drop"}, "option value.onError has no meaning with value.format=raw"),
        ({"value.decoder.x": "1"}, "value.decoder.… are for a decoder of your own"),
    ],
)
def test_what_is_wrong_is_told_with_the_name_of_the_option(given: dict[str, object], told: str) -> None:
    with pytest.raises(OptionError) as raised:
        options(Use.STREAM_READ, **given)
    assert told in str(raised.value)


@pytest.mark.parametrize("begin", ["latest", '{"a":{"0":-1}}'])
def test_a_batch_cannot_begin_at_the_end(begin: str) -> None:
    with pytest.raises(OptionError, match="option startingOffsets asks for latest"):
        options(Use.BATCH_READ, startingOffsets=begin)


def test_a_batch_cannot_end_at_its_beginning() -> None:
    with pytest.raises(OptionError, match="option endingOffsets is 'earliest'"):
        options(Use.BATCH_READ, endingOffsets="earliest")


@pytest.mark.parametrize("name", ["maxOffsetsPerTrigger", "groupIdPrefix"])
def test_what_sparks_connector_passes_over_is_warned_about(name: str) -> None:
    with pytest.warns(OptionWarning, match=f"option {name} has no effect in a batch read"):
        options(Use.BATCH_READ, **{name: "10"})


def test_rows_are_shared_out_by_what_waits() -> None:
    begins, ends = {A0: 0, A1: 50, B0: 5}, {A0: 900, A1: 150, B0: 5}
    assert limited_in_rows(begins, ends, 100) == {A0: 90, A1: 60, B0: 5}
    assert limited_in_rows(begins, ends, 1000) == ends
    assert limited_in_rows({A0: 0, A1: 0}, {A0: 10_000, A1: 1}, 10) == {A0: 9, A1: 1}, "no partition starves"


def test_bytes_are_shared_out_by_what_waits() -> None:
    begins, ends = {A0: 0, A1: 100}, {A0: 1000, A1: 200}
    assert limited_in_bytes(begins, ends, 11_000, {A0: 100.0, A1: 100.0}) == {A0: 100, A1: 110}
    assert limited_in_bytes(begins, ends, 200_000, {A0: 100.0, A1: 100.0}) == ends
    assert limited_in_bytes(begins, ends, 1, {A0: 100.0, A1: 100.0}) == {A0: 1, A1: 101}, "it always goes on"


@pytest.mark.parametrize(("size", "parts"), [(1, 1), (10, 3), (10, 10), (10, 100), (7, 2)])
def test_the_parts_of_a_range_are_the_range(size: int, parts: int) -> None:
    found = divided([OffsetRange(A0, 5, 5 + size)], min_partitions=parts)
    assert [one.begin for one in found] == [5, *(one.end for one in found[:-1])]
    assert found[-1].end == 5 + size
    assert all(one.size for one in found)
    assert len(found) == min(parts, size)


def weighed(bytes_per_offset: float = 100.0) -> Callable[[Sequence[OffsetRange]], dict[str, float]]:
    return lambda ranges: dict.fromkeys((one.partition.topic for one in ranges), bytes_per_offset)


def not_asked(ranges: Sequence[OffsetRange]) -> dict[str, float]:
    raise AssertionError(f"how large the records of {ranges} are does not count")


def test_small_ranges_share_a_task_and_large_ones_have_their_own() -> None:
    third = WORTH_A_TASK // 3
    ranges = [OffsetRange(TopicPartition("a", number), 0, third) for number in range(6)]
    large = OffsetRange(B0, 0, WORTH_A_TASK * 2)
    tasks = tasks_for([*ranges, large], weighed())
    assert sorted(len(task.ranges) for task in tasks) == [1, 3, 3]
    assert {one for task in tasks for one in task.ranges} == {*ranges, large}


def test_ranges_of_large_records_share_no_task() -> None:
    ranges = [OffsetRange(TopicPartition("a", number), 0, 200) for number in range(4)]
    assert len(tasks_for(ranges, weighed(1_000))) == 1
    assert len(tasks_for(ranges, weighed(WORTH_A_TASK_BYTES / 400))) == 2
    assert len(tasks_for(ranges, weighed(1_000_000))) == 4


def test_records_are_weighed_only_where_it_counts() -> None:
    few = [OffsetRange(TopicPartition("a", number), 0, TOO_FEW_TO_WEIGH // 4) for number in range(3)]
    assert len(tasks_for(few, not_asked)) == 1
    alone = [OffsetRange(A0, 0, WORTH_A_TASK - 1), OffsetRange(B0, 0, WORTH_A_TASK)]
    assert len(tasks_for(alone, not_asked)) == 2


def test_a_job_that_says_how_many_tasks_it_wants_has_one_for_each_range() -> None:
    ranges = [OffsetRange(TopicPartition("a", number), 0, 10_000) for number in range(4)]
    assert [task.ranges for task in tasks_for(ranges, not_asked, min_partitions=1)] == [(one,) for one in ranges]
    assert [task.ranges for task in tasks_for(ranges, not_asked, max_records=10_000)] == [(one,) for one in ranges]


def test_without_offsets_there_is_no_task() -> None:
    assert tasks_for([], not_asked) == []


@pytest.mark.ottla_topic(partitions=2)
@pytest.mark.parametrize(("record_bytes", "tasks"), [(10, 1), (400_000, 2)])
def test_the_driver_finds_out_how_large_records_are(
    ottla_broker: Broker, ottla_topic: str, record_bytes: int, tasks: int
) -> None:
    with Producer(bootstrap_servers=ottla_broker.bootstrap) as producer:
        for number in range(120):
            producer.send(ottla_topic, bytes(record_bytes), partition=number % 2)
    given = {"kafka.bootstrap.servers": ottla_broker.bootstrap, "subscribe": ottla_topic}
    reader = BatchReader(options(Use.BATCH_READ, **given), RowReading(["value"], pa.binary()))
    assert len(reader.partitions()) == tasks
