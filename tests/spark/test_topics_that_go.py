"""Topics that are deleted, made anew, or nobody's: what a query does, without Spark."""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest

import ottla
from ottla.base.ids import TopicPartition
from ottla.client.blocking.range_consumer import RangeConsumer
from ottla.client.errors import Disconnected, UnknownTopicOrPartition
from ottla.spark.options import Options, Use
from ottla.spark.source import task
from ottla.spark.source.lookups import Lookups, SourceError
from ottla.spark.source.offsets_json import from_json, ids_from_json
from ottla.spark.source.ranges import OffsetRange, TaskRanges
from ottla.spark.source.source_options import SourceOptions, read_source_options
from ottla.spark.source.stream_reader import StreamReader
from ottla.testing import Broker

Readers = Callable[..., StreamReader]


def options(broker: Broker, **given: object) -> SourceOptions:
    named = {"kafka.bootstrap.servers": broker.bootstrap, "startingoffsets": "earliest"}
    named |= {name.lower(): str(value) for name, value in given.items()}
    return read_source_options(Options(named, Use.STREAM_READ), Use.STREAM_READ)


@pytest.fixture
def reader(ottla_broker: Broker, ottla_topic: str) -> Iterator[Readers]:
    made: list[StreamReader] = []

    def make(**given: object) -> StreamReader:
        read = options(ottla_broker, **{"subscribe": ottla_topic, **given})
        made.append(StreamReader(read, task.RowReading(["value"], pa.binary())))
        return made[-1]

    yield make
    for one in made:
        one.stop()


def send(broker: Broker, topic: str, *values: bytes) -> None:
    with ottla.Producer(bootstrap_servers=broker.bootstrap) as producer:
        for value in values:
            producer.send(topic, value)


def latest(reader: StreamReader, start: Any) -> Any:
    return reader.latestOffset(start, reader.getDefaultReadLimit())


def read(reader: StreamReader, start: Any, end: Any) -> list[bytes]:
    ranges = [one for one in reader.partitions(start, end) if isinstance(one, TaskRanges)]
    return [value.as_py() for one in ranges for batch in reader.read(one) for value in batch.column("value")]


def delete(broker: Broker, topic: str) -> None:
    """Until nobody knows it."""
    broker.delete_topic(topic)
    deadline_s = time.monotonic() + 60
    with ottla.Consumer(bootstrap_servers=broker.bootstrap) as consumer, suppress(UnknownTopicOrPartition):
        while consumer.partitions_for(topic):
            assert time.monotonic() < deadline_s, "it stays"


def make_anew(broker: Broker, topic: str, *values: bytes) -> None:
    delete(broker, topic)
    broker.create_topic(topic)
    send(broker, topic, *values)


def test_a_topic_that_was_made_anew_is_known_by_its_id(reader: Readers, ottla_broker: Broker, ottla_topic: str) -> None:
    """Its log is longer than the old one was: by offsets alone nobody would notice."""
    send(ottla_broker, ottla_topic, b"old")
    start = latest(reader(), reader().initialOffset())
    make_anew(ottla_broker, ottla_topic, b"new-1", b"new-2")
    with pytest.raises(SourceError, match=rf"{ottla_topic} was deleted and created again"):
        latest(reader(), start)
    going_on = reader(failOnDataLoss="false")
    with pytest.warns(UserWarning, match="created again"):
        end = latest(going_on, start)
    with pytest.warns(UserWarning, match="created again"):
        assert read(going_on, start, end) == [b"new-1", b"new-2"]
    assert ids_from_json(end) != ids_from_json(start)
    assert latest(going_on, end) == end


def test_a_micro_batch_that_was_planned_before_the_topic_was_made_anew_reads_nothing_of_it(
    reader: Readers, ottla_broker: Broker, ottla_topic: str
) -> None:
    first = reader()
    start = first.initialOffset()
    send(ottla_broker, ottla_topic, b"old")
    end = latest(first, start)
    make_anew(ottla_broker, ottla_topic, b"new")
    with pytest.raises(SourceError, match="after the micro-batch was planned"):
        reader().partitions(start, end)
    going_on = reader(failOnDataLoss="false")
    with pytest.warns(UserWarning, match="after the micro-batch was planned"):
        assert read(going_on, start, end) == []
    with pytest.warns(UserWarning, match="created again"):
        then = latest(going_on, end)
    with pytest.warns(UserWarning, match="created again"):
        assert read(going_on, end, then) == [b"new"]


def test_offsets_without_ids_are_read_as_before(reader: Readers, ottla_broker: Broker, ottla_topic: str) -> None:
    """A checkpoint of Spark's connector, or of an older version."""
    send(ottla_broker, ottla_topic, b"a", b"b")
    plain = {ottla_topic: {"0": 1}}
    end = latest(reader(), plain)
    assert from_json(end) == {TopicPartition(ottla_topic, 0): 2}
    assert list(ids_from_json(end)) == [ottla_topic]
    assert read(reader(), plain, end) == [b"b"]


def test_offsets_have_the_form_of_sparks_connector_if_ids_are_not_kept(
    reader: Readers, ottla_broker: Broker, ottla_topic: str
) -> None:
    send(ottla_broker, ottla_topic, b"a")
    plain = reader(checkpointTopicIds="false")
    start = plain.initialOffset()
    assert start == {ottla_topic: {"0": 0}}
    assert latest(plain, start) == {ottla_topic: {"0": 1}}


@pytest.mark.parametrize("is_target", [False, True], ids=["on and on", "available now"])
def test_a_query_goes_on_without_a_topic_that_was_deleted(
    reader: Readers, ottla_broker: Broker, ottla_topic: str, is_target: bool
) -> None:
    other = f"{ottla_topic}-other"
    ottla_broker.create_topic(other)
    send(ottla_broker, ottla_topic, b"kept")
    send(ottla_broker, other, b"gone")
    both = {"subscribe": f"{ottla_topic},{other}"}
    start = reader(**both).initialOffset()
    delete(ottla_broker, other)
    strict = reader(**both)
    with pytest.raises(SourceError, match=other):
        strict.prepareForTriggerAvailableNow() if is_target else latest(strict, start)
    going_on = reader(**both, failOnDataLoss="false")
    if is_target:
        going_on.prepareForTriggerAvailableNow()
    with pytest.warns(UserWarning, match=f"{other}-0 cannot be found any more"):
        end = latest(going_on, start)
    with pytest.warns(UserWarning, match=f"{other}-0 cannot be found any more"):
        assert read(going_on, start, end) == [b"kept"]
    assert latest(going_on, end) == end


@pytest.mark.parametrize("fails", [True, False])
def test_a_task_notices_that_its_topic_was_deleted(
    ottla_broker: Broker, ottla_topic: str, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    monkeypatch.setattr(task, "_LOOKS_AFTER_S", 0.2)
    send(ottla_broker, ottla_topic, b"x")
    delete(ottla_broker, ottla_topic)
    given = options(ottla_broker, subscribe=ottla_topic, failOnDataLoss=str(fails).lower())
    wanted = OffsetRange(TopicPartition(ottla_topic, 0), 0, 1)
    if fails:
        with pytest.raises(SourceError, match="the topic is not there any more; some data may have been missed"):
            list(task.read_ranges(given, [wanted]))
    else:
        assert list(task.read_ranges(given, [wanted])) == []


def test_a_task_that_waits_for_its_topic_goes_on_from_where_it_was(
    ottla_broker: Broker, ottla_topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A leader that is away for a while: every look at the topic finds it there."""
    monkeypatch.setattr(task, "_LOOKS_AFTER_S", 0.05)
    send(ottla_broker, ottla_topic, b"a", b"b")
    reading = RangeConsumer.read_range
    tries = []

    def interrupted(consumer: Any, partition: Any, begin: int, end: int, timeout: float) -> Iterator[Any]:
        tries.append(begin)
        if len(tries) == 1:
            yield from reading(consumer, partition, begin, 1, timeout)
            raise task.RequestTimedOut("nothing came")
        yield from reading(consumer, partition, begin, end, 60)

    monkeypatch.setattr(RangeConsumer, "read_range", interrupted)
    given = options(ottla_broker, subscribe=ottla_topic)
    batches = list(task.read_ranges(given, [OffsetRange(TopicPartition(ottla_topic, 0), 0, 2)]))
    assert [value.as_py() for batch in batches for value in batch.column("value")] == [b"a", b"b"]
    assert tries == [0, 1]


# --- patterns ---


def matched(broker: Broker, **given: object) -> set[str]:
    lookups = Lookups(options(broker, subscribePattern=".*", **given))
    try:
        return {one.topic for one in lookups.partitions()}
    finally:
        lookups.close()


def test_a_pattern_leaves_internal_topics_out(ottla_broker_factory: Callable[..., Broker]) -> None:
    broker = ottla_broker_factory()
    internal = {"__transaction_state"}
    own = {"__ottla_spark_decisions", "__ottla_spark_staging"}
    for topic in ("orders", "__orders", *own):
        broker.create_topic(topic)
    with ottla.Producer(bootstrap_servers=broker.bootstrap, transactional_id="t") as producer, producer.transaction():
        producer.send("orders", b"x")
    assert matched(broker) == {"orders", "__orders"}
    assert matched(broker, **{"kafka.exclude.internal.topics": "true"}) == {"orders", "__orders"}
    everything = {"orders", "__orders", *internal, *own}
    assert matched(broker, **{"kafka.exclude.internal.topics": "false"}) == everything


def test_brokers_that_do_not_answer_are_named_in_the_drivers_error(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 10_000 <= int(_patience_ms()) < 60_000
    given = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "orders", "kafka.default.api.timeout.ms": "300"}
    read = read_source_options(Options(given, Use.STREAM_READ), Use.STREAM_READ)
    nowhere = StreamReader(read, task.RowReading(["value"], pa.binary()))
    with pytest.raises(SourceError, match=re.escape("option kafka.bootstrap.servers (127.0.0.1:1) did not answer")):
        nowhere.initialOffset()
    nowhere.stop()


def test_brokers_that_refuse_are_asked_for_one_time_limit_and_not_for_four(ottla_broker: Broker) -> None:
    """A call of a client tries until its time is over: its error is the last one, a refused connection for one."""
    lookups, asked = Lookups(options(ottla_broker, subscribe="orders")), list[int]()

    def refused() -> None:
        asked.append(1)
        raise Disconnected("cannot connect to 127.0.0.1:1: connection refused")

    with pytest.raises(SourceError, match=re.escape("did not answer: cannot connect to 127.0.0.1:1: connection")):
        lookups._ask(refused)
    lookups.close()
    assert len(asked) == 1


def _patience_ms() -> str:
    from ottla.spark.source import lookups

    return lookups._PATIENCE_MS
