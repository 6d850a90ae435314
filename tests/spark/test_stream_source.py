"""`spark.readStream.format("ottla")`: micro-batches, checkpoints, limits, and what comes and goes meanwhile."""

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic

import pytest

import ottla
from ottla.base.ids import TopicPartition
from ottla.testing import Broker
from tests.spark.streams import PATIENCE_S, Stream


@pytest.fixture
def stream(spark: object, ottla_broker: Broker, ottla_topic: str, tmp_path: Path) -> Stream:
    options = {"kafka.bootstrap.servers": ottla_broker.bootstrap, "subscribe": ottla_topic}
    return Stream(spark, tmp_path / "checkpoint", options)  # type: ignore[arg-type]


@pytest.fixture
def send(producer: ottla.Producer, ottla_topic: str) -> Callable[..., list[str]]:
    """Numbers from one to another, each a record; returns what a reader should find."""

    def send(numbers: range, partition: int | None = None) -> list[str]:
        for number in numbers:
            producer.send(ottla_topic, b"%d" % number, partition=partition)
        producer.flush()
        return sorted(map(str, numbers))

    return send


Send = Callable[..., list[str]]


@pytest.mark.ottla_topic(partitions=2)
def test_a_restarted_query_goes_on_where_its_checkpoint_is(stream: Stream, send: Send) -> None:
    first = send(range(100))
    assert stream.run(startingOffsets="earliest") == first
    assert stream.run() == []
    second = send(range(100, 130))
    assert stream.run(startingOffsets="earliest") == second


def test_the_checkpoint_has_offsets_in_the_form_of_sparks_connector(
    stream: Stream, send: Send, ottla_topic: str, tmp_path: Path
) -> None:
    send(range(7))
    stream.run(startingOffsets="earliest", checkpointTopicIds="false")
    *_, offsets = (tmp_path / "checkpoint" / "offsets" / "0").read_text().splitlines()
    assert json.loads(offsets) == {ottla_topic: {"0": 7}}


def test_records_arrive_while_the_query_runs(stream: Stream, send: Send) -> None:
    query = stream.start(startingOffsets="earliest")
    try:
        for begin in range(0, 30, 10):
            send(range(begin, begin + 10))
            query.processAllAvailable()
            assert stream.values() == sorted(map(str, range(begin + 10)))
        progress = query.lastProgress
        assert progress is not None
        [source] = progress["sources"]
        assert source["endOffset"] == source["latestOffset"]
    finally:
        query.stop()


def test_a_query_that_begins_at_the_end_keeps_its_beginning(stream: Stream, send: Send, tmp_path: Path) -> None:
    send(range(10))
    query = stream.start()
    try:
        query.processAllAvailable()
        assert stream.sizes() == [0]
    finally:
        query.stop()
    for name in ("0", ".0.crc"):  # as if it had crashed in its first micro-batch
        (tmp_path / "checkpoint" / "commits" / name).unlink()
    later = send(range(10, 15))
    assert stream.run() == later


@pytest.mark.ottla_topic(partitions=3)
def test_a_micro_batch_has_no_more_offsets_than_was_asked_for(stream: Stream, send: Send) -> None:
    sent = send(range(100))
    assert stream.run(startingOffsets="earliest", maxOffsetsPerTrigger=30) == sent
    assert all(size <= 30 for size in stream.sizes())


def test_a_micro_batch_has_about_as_many_bytes_as_was_asked_for(
    stream: Stream, producer: ottla.Producer, ottla_topic: str
) -> None:
    for number in range(100):
        producer.send(ottla_topic, b"%1000d" % number)
        producer.flush()  # a batch each: a sample is a whole batch
    stream.run(startingOffsets="earliest", maxBytesPerTrigger=25_000)
    assert sum(stream.sizes()) == 100
    assert all(15 <= size <= 25 for size in stream.sizes()[:-1])


def test_a_query_waits_for_enough_offsets_or_long_enough(stream: Stream, send: Send) -> None:
    send(range(5))
    query = stream.start(startingOffsets="earliest", minOffsetsPerTrigger=50, maxTriggerDelay="1h")
    try:
        query.processAllAvailable()
        assert stream.sizes() == [5], "the first micro-batch comes at once"
        send(range(5, 20))
        query.processAllAvailable()
        assert stream.sizes() == [5]
        send(range(20, 60))
        query.processAllAvailable()
        assert stream.sizes() == [5, 55]
    finally:
        query.stop()


def test_partitions_that_are_added_are_read_from_their_beginning(
    stream: Stream, send: Send, ottla_broker: Broker, ottla_topic: str
) -> None:
    send(range(10))
    stream.run(startingOffsets="earliest")
    with ottla.Admin(bootstrap_servers=ottla_broker.bootstrap) as admin:
        admin.create_partitions({ottla_topic: 3})
    added = send(range(10, 20), partition=2)
    assert stream.run() == added


def test_records_of_aborted_transactions_are_gaps(stream: Stream, ottla_broker: Broker, ottla_topic: str) -> None:
    with ottla.Producer(bootstrap_servers=ottla_broker.bootstrap, transactional_id="gaps-" + ottla_topic) as producer:
        for number in range(6):
            with suppress(KeyError), producer.transaction():
                for _ in range(5):
                    producer.send(ottla_topic, b"%d" % number)
                producer.flush()  # what was not sent yet would not be in the log at all
                if number % 2:
                    raise KeyError("it is aborted")
    values = stream.run(startingOffsets="earliest", maxOffsetsPerTrigger=4)
    assert values == sorted(["0"] * 5 + ["2"] * 5 + ["4"] * 5)
    assert stream.run() == []


def test_an_open_transaction_is_not_read_before_its_end(stream: Stream, ottla_broker: Broker, ottla_topic: str) -> None:
    with ottla.Producer(bootstrap_servers=ottla_broker.bootstrap, transactional_id="open-" + ottla_topic) as producer:
        with producer.transaction():
            producer.send(ottla_topic, b"1")
            producer.flush()
            assert stream.run(startingOffsets="earliest") == []
        assert stream.run() == ["1"]


def test_progress_is_committed_to_the_group(stream: Stream, send: Send, ottla_broker: Broker, ottla_topic: str) -> None:
    send(range(12))
    stream.run(startingOffsets="earliest", **{"kafka.group.id": "watched-" + ottla_topic})
    settings = {"bootstrap.servers": ottla_broker.bootstrap, "group.id": "watched-" + ottla_topic}
    partition = TopicPartition(ottla_topic, 0)
    with ottla.Consumer(settings) as consumer:
        committed = consumer.committed([partition])[partition]
    assert committed is not None
    assert committed.offset == 12


def test_an_idle_query_is_stopped_at_once(stream: Stream, send: Send) -> None:
    send(range(1))
    query = stream.start(startingOffsets="earliest", idleWaitMs=60_000)
    query.processAllAvailable()
    began_s = monotonic()
    query.stop()
    assert monotonic() - began_s < PATIENCE_S / 2, "stop() waited for the source"
