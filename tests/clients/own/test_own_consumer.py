"""Our consumer against our node, and against Apache Kafka: every family of calls, blocking and with asyncio."""

import asyncio
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import confluent_kafka
import pytest

from ottla import Admin, Consumer, OffsetAndMetadata, Producer, RebalanceListener, TopicPartition, aio
from ottla.admin import NewTopic
from ottla.errors import (
    ClientClosed,
    CommitFailed,
    DeserializationFailed,
    ForkedClient,
    InvalidGroupId,
    OffsetOutOfRange,
    Wakeup,
)
from ottla.testing.node import RunningNode
from tests.clients.eventually import eventually
from tests.interop.apache_kafka import ApacheKafka
from tests.interop.target import Target

QUICK = {
    "group.initial.rebalance.delay.ms": 0,
    "group.consumer.heartbeat.interval.ms": 500,
    "group.consumer.min.heartbeat.interval.ms": 500,
}
PROTOCOLS = ("classic", "consumer")
PATIENCE_S = 30.0
KAFKAS_REGEX_PAUSE_S = 10.5
"""Kafka's coordinator matches patterns at most every ten seconds, and may take minutes for a topic in between."""
_numbers = count()


@pytest.fixture(scope="module", params=["ottla", pytest.param("apache-kafka", marks=pytest.mark.interop)])
def broker(request: pytest.FixtureRequest) -> Iterator[Target]:
    with RunningNode(config=QUICK) if request.param == "ottla" else ApacheKafka(config=QUICK) as node:
        yield node


@pytest.fixture
def make_topic(broker: Target) -> Callable[..., str]:
    def make(partitions: int = 1, name: str = "") -> str:
        name = name or f"own-{next(_numbers)}"
        with Admin(bootstrap_servers=broker.bootstrap) as admin:
            admin.create_topics([NewTopic(name, partitions)]).raise_first()
            eventually(lambda: admin.describe_topics([name]).errors, {})
        return name

    return make


@pytest.fixture
def consumer(broker: Target) -> Iterator[Callable[..., Consumer]]:
    made: list[Consumer] = []

    def make(**settings: object) -> Consumer:
        defaults: dict[str, object] = {"auto_offset_reset": "earliest", "bootstrap_servers": broker.bootstrap}
        made.append(Consumer(**{**defaults, **settings}))
        return made[-1]

    yield make
    for one in made:
        one.close(timeout=5)


def fill(broker: Target, topic: str, *values: bytes, partition: int = 0, **settings: Any) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap, **settings})
    for number, value in enumerate(values):
        producer.produce(topic, value, b"k", partition=partition, timestamp=1000 + number, headers=[("h", b"1")])
    assert producer.flush(20) == 0


def read(consumer: Consumer, wanted: int) -> list[Any]:
    records: list[Any] = []
    deadline = time.monotonic() + PATIENCE_S
    while len(records) < wanted and time.monotonic() < deadline:
        records += consumer.poll(0.5)
    return records


def values(consumer: Consumer, wanted: int) -> list[bytes]:
    return [record.value for record in read(consumer, wanted)]


def test_records_come_with_everything_that_was_sent(broker, make_topic, consumer):
    topic = make_topic()
    fill(broker, topic, b"a", b"b")
    reader = consumer()
    reader.assign([(topic, 0)])
    first, second = read(reader, 2)
    assert (first.topic, first.partition, first.offset, first.timestamp) == (topic, 0, 0, 1000)
    assert (first.key, first.value, first.headers) == (b"k", b"a", (("h", b"1"),))
    assert (second.offset, second.leader_epoch) == (1, 0)
    assert reader.position(TopicPartition(topic, 0)) == 2
    assert reader.current_lag(TopicPartition(topic, 0)) == 0


@pytest.mark.parametrize("compression", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_records_are_read(broker, make_topic, consumer, compression):
    topic = make_topic()
    fill(broker, topic, *(b"%d" % number for number in range(1000)), **{"compression.type": compression})
    reader = consumer()
    reader.assign([(topic, 0)])
    assert values(reader, 1000) == [b"%d" % number for number in range(1000)]


def test_seeking_pausing_and_looking_offsets_up(broker, make_topic, consumer):
    topic = make_topic(2)
    fill(broker, topic, *(b"%d" % number for number in range(10)))
    zero, one = TopicPartition(topic, 0), TopicPartition(topic, 1)
    reader = consumer()
    reader.assign([zero, one])
    assert len(read(reader, 10)) == 10
    reader.seek(zero, 8)
    assert values(reader, 2) == [b"8", b"9"]
    reader.seek_to_beginning(zero)
    assert (reader.position(zero), reader.position(one)) == (0, 0)
    reader.seek_to_end()
    assert reader.position(zero) == 10
    assert reader.beginning_offsets([zero]) == {zero: 0}
    assert reader.end_offsets([zero, one]) == {zero: 10, one: 0}
    found = reader.offsets_for_times({zero: 1005, one: 1})
    assert found[zero] is not None
    assert (found[zero].offset, found[zero].timestamp_ms, found[one]) == (5, 1005, None)
    reader.pause(zero)
    assert reader.paused() == {zero}
    reader.seek(zero, 9)
    fill(broker, topic, b"other", partition=1)
    assert values(reader, 1) == [b"other"]
    reader.resume(zero)
    assert values(reader, 1) == [b"9"]
    assert [partition.partition for partition in reader.partitions_for(topic)] == [0, 1]
    assert len(reader.list_topics()[topic]) == 2


def test_the_start_of_a_log_that_moves_on_is_followed_or_told(broker, make_topic, consumer):
    topic = make_topic()
    zero = TopicPartition(topic, 0)
    fill(broker, topic, *(b"%d" % number for number in range(10)))
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.delete_records({zero: 6}).raise_first()
    reader = consumer()
    reader.assign([zero])
    reader.seek(zero, 2)
    assert values(reader, 4) == [b"6", b"7", b"8", b"9"]
    strict = consumer(auto_offset_reset="none")
    strict.assign([zero])
    strict.seek(zero, 2)
    with pytest.raises(OffsetOutOfRange, match="offset 2 is not in the log"):
        read(strict, 1)


def test_deserializers_and_what_they_cannot_read(broker, make_topic, consumer):
    topic = make_topic()
    fill(broker, topic, b'{"a": 1}', b"poison", b"[]")
    reader = consumer(value_deserializer="json", key_deserializer="string")
    reader.assign([(topic, 0)])
    [record] = read(reader, 1)
    assert (record.key, record.value) == ("k", {"a": 1})
    with pytest.raises(DeserializationFailed) as raised:
        read(reader, 1)
    assert raised.value.record.value == b"poison"
    reader.seek(TopicPartition(topic, 0), raised.value.record.offset + 1)
    assert values(reader, 1) == [[]]


def test_read_committed_shows_what_was_committed(broker, make_topic, consumer):
    topic = make_topic()
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": topic})
    producer.init_transactions(20)
    for value, commits in ((b"one", True), (b"aborted", False), (b"two", True)):
        producer.begin_transaction()
        producer.produce(topic, value, partition=0)
        producer.flush(20)
        producer.commit_transaction(20) if commits else producer.abort_transaction(20)
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=0)
    producer.flush(20)
    committed, all_of_them = consumer(isolation_level="read_committed"), consumer()
    zero = TopicPartition(topic, 0)
    for reader in (committed, all_of_them):
        reader.assign([zero])
    assert values(committed, 2) == [b"one", b"two"]
    assert committed.poll(0.2) == []
    assert values(all_of_them, 4) == [b"one", b"aborted", b"two", b"open"]
    assert committed.end_offsets([zero])[zero] < all_of_them.end_offsets([zero])[zero]
    producer.abort_transaction(20)


def test_arrow_batches_have_the_same_records(broker, make_topic, consumer):
    topic = make_topic()
    fill(broker, topic, *(b"%d" % number for number in range(1000)))
    reader = consumer(max_poll_records=10)
    reader.assign([(topic, 0)])
    before = values(reader, 10)
    batches = []
    while sum(batch.num_rows for batch in batches) < 990:
        batches.append(reader.poll_arrow(5.0))
    assert before + [value for batch in batches for value in batch["value"].to_pylist()] == [
        b"%d" % number for number in range(1000)
    ]
    assert batches[0]["offset"][0].as_py() == 10
    assert reader.position(TopicPartition(topic, 0)) == 1000
    assert reader.poll_arrow(0.05) is None


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_group_shares_a_topic_and_goes_on_where_it_was(broker, make_topic, consumer, protocol):
    topic, group = make_topic(4), f"group-{next(_numbers)}"
    for partition in range(4):
        fill(broker, topic, *(b"%d" % number for number in range(50)), partition=partition)
    told: list[tuple[str, int]] = []

    class Listener(RebalanceListener):
        def on_partitions_assigned(self, partitions):
            told.append(("assigned", len(partitions)))

        def on_partitions_revoked(self, partitions):
            told.append(("revoked", len(partitions)))

    settings = {"group_id": group, "group_protocol": protocol, "heartbeat_interval_ms": 200}
    if protocol == "consumer":
        del settings["heartbeat_interval_ms"]
    first = consumer(**settings)
    first.subscribe([topic], listener=Listener())
    assert len(read(first, 200)) == 200
    assert len(first.assignment()) == 4
    first.commit()
    second = consumer(**settings)
    second.subscribe([topic])

    def share() -> list[int]:
        first.poll(0.05)
        second.poll(0.05)
        return [len(first.assignment()), len(second.assignment())]

    eventually_within(share, [2, 2])
    assert told[0] == ("assigned", 4)
    assert any(what == "revoked" for what, _ in told)
    first.close()
    eventually_within(lambda: (second.poll(0.1), len(second.assignment()))[1], 4)
    for partition in range(4):
        fill(broker, topic, b"new", partition=partition)
    assert values(second, 4) == [b"new"] * 4
    committed = second.committed(second.assignment())
    assert {offset.offset for offset in committed.values() if offset is not None} <= {50, 51}


def eventually_within(observe: Callable[[], Any], wanted: Any) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while (seen := observe()) != wanted:
        assert time.monotonic() < deadline, f"{seen!r}, and not {wanted!r}"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_offsets_are_committed_by_hand_with_metadata_and_a_callback(broker, make_topic, consumer, protocol):
    topic = make_topic()
    zero = TopicPartition(topic, 0)
    fill(broker, topic, b"a", b"b", b"c")
    reader = consumer(group_id=topic, enable_auto_commit=False, group_protocol=protocol)
    reader.subscribe([topic])
    assert len(read(reader, 3)) == 3
    assert reader.committed([zero]) == {zero: None}
    reader.commit({zero: OffsetAndMetadata(1, "so far")})
    assert reader.committed([zero])[zero] == OffsetAndMetadata(1, "so far")
    outcomes: list[Any] = []
    reader.commit_async({zero: 2}, lambda offsets, error: outcomes.append((offsets[zero].offset, error)))
    eventually_within(lambda: (reader.poll(0.05), outcomes)[1], [(2, None)])
    assert reader.group_metadata().group_id == topic
    reader.close()
    again = consumer(group_id=topic, group_protocol=protocol)
    again.subscribe([topic])
    assert values(again, 1) == [b"c"]


def test_a_number_that_is_committed_where_the_consumer_is_has_its_leader_epoch(broker, make_topic, consumer):
    """So that whoever goes on from there is not misled by a leader that was deposed before (KIP-320)."""
    topic = make_topic()
    zero = TopicPartition(topic, 0)
    fill(broker, topic, b"a", b"b", b"c")
    reader = consumer(group_id=topic, enable_auto_commit=False)
    reader.subscribe([topic])
    assert len(read(reader, 3)) == 3

    def committed() -> OffsetAndMetadata | None:
        return reader.committed([zero])[zero]

    reader.commit({zero: 3})
    assert committed() == OffsetAndMetadata(3, "", 0)
    reader.commit({zero: 2})
    assert committed() == OffsetAndMetadata(2, "", None), "of another record nothing is known"
    reader.commit({zero: OffsetAndMetadata(3, "so far")})
    assert committed() == OffsetAndMetadata(3, "so far", 0)
    with Producer(bootstrap_servers=broker.bootstrap, transactional_id=topic) as producer:
        for member, expected in ((topic, None), (reader.group_metadata(), 0)):
            with producer.transaction():
                producer.send_offsets({zero: 3}, member)
            eventually(committed, OffsetAndMetadata(3, "", expected))


def test_what_was_consumed_is_committed_at_the_end(broker, make_topic, consumer):
    topic = make_topic()
    fill(broker, topic, b"a", b"b")
    reader = consumer(group_id=topic)
    reader.subscribe([topic])
    assert len(read(reader, 2)) == 2
    reader.close()
    again = consumer(group_id=topic)
    assert again.committed([TopicPartition(topic, 0)])[TopicPartition(topic, 0)].offset == 2


def test_a_member_that_was_thrown_out_cannot_commit(broker, make_topic, consumer):
    topic = make_topic()
    fill(broker, topic, b"a")
    slow = consumer(group_id=topic, enable_auto_commit=False, max_poll_interval_ms=300, session_timeout_ms=6000)
    slow.subscribe([topic])
    assert len(read(slow, 1)) == 1
    quick = consumer(group_id=topic, enable_auto_commit=False)
    quick.subscribe([topic])
    eventually_within(lambda: (quick.poll(0.1), len(quick.assignment()))[1], 1)
    with pytest.raises(CommitFailed, match="given the partitions to another member"):
        slow.commit()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_pattern_finds_topics_that_come_later(broker, make_topic, consumer, protocol):
    prefix = f"pattern-{protocol}-{next(_numbers)}"
    first = make_topic(name=f"{prefix}-a")
    settings = {"group_id": prefix, "group_protocol": protocol, "metadata_max_age_ms": 300}
    reader = consumer(**settings)
    reader.subscribe(pattern=f"{prefix}-.*" if protocol == "consumer" else re.compile(f"{prefix}-.*"))
    fill(broker, first, b"a")
    assert values(reader, 1) == [b"a"]
    if protocol == "consumer" and isinstance(broker, ApacheKafka):
        time.sleep(KAFKAS_REGEX_PAUSE_S)
    second = make_topic(name=f"{prefix}-b")
    fill(broker, second, b"b")
    assert values(reader, 1) == [b"b"]


def test_wakeup_ends_a_poll_that_waits(broker, make_topic, consumer):
    reader = consumer()
    reader.assign([(make_topic(), 0)])
    timer = threading.Timer(0.2, reader.wakeup)
    timer.start()
    with pytest.raises(Wakeup):
        reader.poll(PATIENCE_S)
    timer.join()
    assert reader.poll(0) == []


def test_iterating_ends_when_the_consumer_is_closed(broker, make_topic, consumer):
    topic = make_topic()
    fill(broker, topic, b"a", b"b", b"c")
    reader = consumer()
    reader.assign([(topic, 0)])
    seen = []
    for record in reader:
        seen.append(record.value)
        if len(seen) == 3:
            reader.close()
    assert seen == [b"a", b"b", b"c"]
    with pytest.raises(ClientClosed):
        reader.poll()


def test_a_closed_consumer_leaves_no_thread_behind(broker, consumer):
    before = set(threading.enumerate())
    reader = consumer()
    assert set(threading.enumerate()) != before
    reader.close()
    assert set(threading.enumerate()) <= before


def test_a_fork_is_refused(broker, make_topic, consumer):
    reader = consumer()
    reader.assign([(make_topic(), 0)])
    reader.poll(0.1)
    child = os.fork()
    if not child:
        signal.alarm(10)
        try:
            reader.poll(0.1)
        except ForkedClient:
            os._exit(42)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 42


def test_subscribing_needs_a_group(broker, consumer):
    with pytest.raises(InvalidGroupId, match=r"needs a group\.id"):
        consumer().subscribe(["t"])


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_asyncio_consumer_does_the_same(broker, make_topic, protocol):
    topic = make_topic(2)
    fill(broker, topic, *(b"%d" % number for number in range(100)))
    fill(broker, topic, *(b"%d" % number for number in range(100)), partition=1)
    told = []

    class Listener(RebalanceListener):
        async def on_partitions_assigned(self, partitions):
            await asyncio.sleep(0)
            told.extend(partitions)

    async def scene() -> None:
        settings = {"bootstrap_servers": broker.bootstrap, "auto_offset_reset": "earliest", "group_protocol": protocol}
        async with aio.Consumer(group_id=topic, **settings) as reader:
            reader.subscribe([topic], listener=Listener())
            seen = []
            async for record in reader:
                seen.append(record)
                if len(seen) == 200:
                    break
            await reader.commit()
            assert set(told) == reader.assignment()
            partition = TopicPartition(topic, 0)
            assert (await reader.committed([partition]))[partition].offset == 100
            assert await reader.end_offsets([partition]) == {partition: 100}
            reader.seek(partition, 98)
            assert [record.value for record in await reader.poll(PATIENCE_S)] == [b"98", b"99"]
            reader.seek(partition, 0)
            rows = 0
            async for batch in reader.arrow():
                rows += batch.num_rows
                if rows == 100:
                    break
        assert threading.active_count() == threads

    threads = threading.active_count()
    asyncio.run(asyncio.wait_for(scene(), PATIENCE_S))
