"""Our consumer in company and in trouble: nodes that end, applications that are slow, other clients in its group."""

import threading
import time
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import confluent_kafka
import pytest
from kafka import KafkaConsumer

from ottla import Consumer, Producer, TopicPartition
from ottla.testing.node import RunningNode

QUICK = {
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 300,
    "group.consumer.heartbeat.interval.ms": 500,
    "group.consumer.min.heartbeat.interval.ms": 500,
    "num.partitions": 6,
}
PROTOCOLS = ("classic", "consumer")
PATIENCE_S = 60.0
_numbers = count()


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningNode]:
    with RunningNode(config=QUICK) as node:
        yield node


@pytest.fixture
def topic(broker: RunningNode) -> str:
    return f"scene-{next(_numbers)}"


def fill(broker: RunningNode, topic: str, records: int, first: int = 0, size: int = 0, partitions: int = 6) -> None:
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for number in range(first, first + records):
            producer.send(topic, b"%d" % number + bytes(size), partition=number % partitions)


def until(seen: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not seen():
        assert time.monotonic() < deadline, "it never came about"


def numbers(records: list[Any]) -> set[int]:
    return {int(record.value) for record in records}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_consumer_goes_on_when_its_node_comes_back(protocol: str, end: str) -> None:
    with RunningNode(config=QUICK) as node:
        fill(node, "t", 300)
        settings = {"bootstrap_servers": node.bootstrap, "group_id": "g", "auto_offset_reset": "earliest"}
        with Consumer(**settings, group_protocol=protocol, enable_auto_commit=False) as consumer:
            consumer.subscribe(["t"])
            seen: list[Any] = []

            def has_all(wanted: int) -> bool:
                seen.extend(consumer.poll(0.2))
                return len(numbers(seen)) == wanted

            until(lambda: has_all(300))
            consumer.commit()
            getattr(node, end)()
            consumer.poll(0.2)
            node.start()
            fill(node, "t", 300, first=300)
            until(lambda: has_all(600))
            assert len(seen) == 600  # nothing twice: the positions were never lost
            until(lambda: len(consumer.assignment()) == 6)
            consumer.commit()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_heartbeats_go_on_while_the_application_works(broker: RunningNode, topic: str, protocol: str) -> None:
    fill(broker, topic, 6)
    settings: dict[str, Any] = {
        "bootstrap_servers": broker.bootstrap,
        "auto_offset_reset": "earliest",
    }
    if protocol == "classic":
        settings |= {"session_timeout_ms": 1500, "heartbeat_interval_ms": 200}
    with Consumer(**settings, group_id=topic, group_protocol=protocol, enable_auto_commit=False) as consumer:
        consumer.subscribe([topic])
        seen: list[Any] = []
        until(lambda: bool(seen.extend(consumer.poll(0.2)) or len(seen) == 6))
        generation = consumer.group_metadata()
        busy_until = time.monotonic() + 3.0
        while time.monotonic() < busy_until:
            sum(range(10_000))  # holds the interpreter, as applications do
        consumer.commit()
        consumer.poll(0.2)
        assert consumer.group_metadata() == generation


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_one_that_waits_in_poll_is_no_slow_member_and_commits_by_the_way(
    broker: RunningNode, topic: str, protocol: str
) -> None:
    fill(broker, topic, 6)
    with Consumer(
        bootstrap_servers=broker.bootstrap,
        auto_offset_reset="earliest",
        group_id=topic,
        group_protocol=protocol,
        max_poll_interval_ms=2500,
        auto_commit_interval_ms=200,
    ) as consumer:
        consumer.subscribe([topic])
        seen: list[Any] = []
        until(lambda: bool(seen.extend(consumer.poll(0.2)) or len(seen) == 6))
        generation = consumer.group_metadata()
        assert consumer.poll(3.5) == []
        assert consumer.group_metadata() == generation
        committed = consumer.committed(consumer.assignment())
        assert {place.offset for place in committed.values() if place is not None} == {1}


def test_a_group_is_left_joined_again_and_made_to_rebalance(broker: RunningNode, topic: str) -> None:
    fill(broker, topic, 6)
    with Consumer(bootstrap_servers=broker.bootstrap, group_id=topic, auto_offset_reset="earliest") as consumer:
        consumer.subscribe([topic])
        seen: list[Any] = []
        until(lambda: bool(seen.extend(consumer.poll(0.2)) or len(seen) == 6))
        consumer.enforce_rebalance()
        before = consumer.group_metadata().generation_id
        until(lambda: bool(consumer.poll(0.1) or consumer.group_metadata().generation_id > before))
        consumer.unsubscribe()
        assert (consumer.assignment(), consumer.subscription()) == (frozenset(), frozenset())
        consumer.assign([(topic, 0)])
        assert consumer.position(TopicPartition(topic, 0)) == 1
        consumer.unsubscribe()
        consumer.subscribe([topic])
        until(lambda: bool(consumer.poll(0.1) or len(consumer.assignment()) == 6))
        assert len(seen) == 6


def test_a_consumer_that_is_not_polled_keeps_little(broker: RunningNode, topic: str) -> None:
    fill(broker, topic, 3000, size=10_000)
    with Consumer(
        bootstrap_servers=broker.bootstrap,
        auto_offset_reset="earliest",
        fetch_max_bytes=2_000_000,
        max_partition_fetch_bytes=500_000,
        max_poll_records=1,
    ) as consumer:
        consumer.assign([(topic, index) for index in range(6)])
        most, seen = 0, 0
        until(lambda: consumer._core.chunks.buffered_bytes > 500_000 or not consumer.poll(0.1))
        for _ in range(600):
            seen += len(consumer.poll(1.0))
            most = max(most, consumer._core.chunks.buffered_bytes)
        assert seen == 600
        assert 500_000 < most < 2_500_000


@pytest.mark.parametrize("as_arrow", [False, True])
def test_large_responses_of_many_partitions_come_whole_although_buffers_are_used_again(
    broker: RunningNode, topic: str, as_arrow: bool
) -> None:
    fill(broker, topic, 3000, size=10_000)
    seen: dict[int, int] = {}
    with Consumer(bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest") as consumer:
        partitions = [TopicPartition(topic, index) for index in range(6)]
        consumer.assign(partitions)

        def values() -> list[bytes]:
            if as_arrow:
                batch = consumer.poll_arrow(0.5)
                return [] if batch is None else batch["value"].to_pylist()
            return [record.value for record in consumer.poll(0.5)]

        def has_all() -> bool:
            for value in values():
                number = int(value.rstrip(b"\0"))
                assert value == b"%d" % number + bytes(10_000)
                seen[number] = seen.get(number, 0) + 1
            consumer.pause(partitions[len(seen) % 6])
            consumer.resume(*partitions)
            return len(seen) == 3000

        until(has_all)
        assert set(seen.values()) == {1}
        assert consumer._core.cluster.spare_buffers.kept_bytes > 0


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_group_of_ours_and_librdkafkas_and_kafka_pythons(broker: RunningNode, topic: str, protocol: str) -> None:
    """Members join, leave and join again; every partition always finds one of them, and every record is read."""
    fill(broker, topic, 600)
    group = f"{topic}-{protocol}"
    seen: set[int] = set()
    running = threading.Event()
    running.set()

    def confluent() -> None:
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": broker.bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "group.protocol": protocol,
                **({"session.timeout.ms": 6000} if protocol == "classic" else {}),
            }
        )
        consumer.subscribe([topic])
        while running.is_set():
            for record in consumer.consume(100, 0.1):
                if not record.error():
                    seen.add(int(record.value()))
        consumer.close()

    def kafka_python() -> None:
        consumer = KafkaConsumer(
            topic, bootstrap_servers=broker.bootstrap, group_id=group, auto_offset_reset="earliest"
        )
        while running.is_set():
            for records in consumer.poll(100).values():
                seen.update(int(record.value) for record in records)
        consumer.close()

    others = [threading.Thread(target=confluent)]
    if protocol == "classic":
        others.append(threading.Thread(target=kafka_python))
    for other in others:
        other.start()
    try:
        settings = {"bootstrap_servers": broker.bootstrap, "group_id": group, "auto_offset_reset": "earliest"}
        share = 6 // (len(others) + 1)
        for turn in range(2):
            with Consumer(**settings, group_protocol=protocol) as ours:
                ours.subscribe([topic])

                def has_share() -> bool:
                    seen.update(numbers(ours.poll(0.1)))
                    return len(ours.assignment()) == share

                until(has_share)
                fill(broker, topic, 600, first=600 * (turn + 1))
                until(lambda: (has_share(), len(seen))[1] >= 600 * (turn + 2))  # noqa: B023
        assert seen == set(range(1800))
    finally:
        running.clear()
        for other in others:
            other.join(PATIENCE_S)


def test_offsets_are_committed_with_a_transaction(broker: RunningNode, topic: str) -> None:
    """Consume, transform, produce: what was aborted is read again, and nothing is seen twice."""
    fill(broker, topic, 100)
    target = f"{topic}-target"
    settings = {
        "bootstrap_servers": broker.bootstrap,
        "auto_offset_reset": "earliest",
        "isolation_level": "read_committed",
    }
    with (
        Producer(bootstrap_servers=broker.bootstrap, transactional_id=topic) as producer,
        Consumer(**settings, group_id=topic, enable_auto_commit=False, max_poll_records=30) as consumer,
    ):
        producer.init_transactions()
        consumer.subscribe([topic])
        done, aborted = 0, False
        while done < 100:
            records = consumer.poll(1.0)
            if not records:
                continue
            producer.begin()
            for record in records:
                producer.send(target, record.value, partition=record.partition)
            offsets = {}
            for record in records:
                offsets[TopicPartition(record.topic, record.partition)] = record.offset + 1
            producer.send_offsets(offsets, consumer.group_metadata())
            if done and not aborted:
                producer.abort()
                aborted = True
                for partition in consumer.assignment():
                    committed = consumer.committed([partition])[partition]
                    consumer.seek(partition, committed.offset if committed else 0)
                continue
            producer.commit()
            done += len(records)
        with Consumer(**settings) as reader:
            reader.assign([(target, index) for index in range(6)])
            copies: list[Any] = []
            until(lambda: bool(copies.extend(reader.poll(0.2)) or len(copies) >= 100))
            assert reader.poll(0.3) == []
        assert aborted
        assert sorted(int(record.value) for record in copies) == list(range(100))
