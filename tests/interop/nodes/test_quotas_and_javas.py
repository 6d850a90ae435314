"""Quotas beside Apache Kafka's: the same recordings measured alike, and the same requests throttled alike."""

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from ottla import Admin
from ottla.admin import NewTopic
from ottla.machines.quota.limits import TokenBucket
from ottla.machines.quota.rates import SampledRate, Windows
from ottla.testing.node import RunningNode
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import CreateTopicsRequest
from tests.interop.apache_kafka import MAIN_CLASSES, ApacheKafka, java
from tests.interop.wire_connection import WireConnection
from tests.unit.broker.brokers import batch, fetch_request, produce_request

pytestmark = pytest.mark.interop

SEED = 20261116
NOW_MS = 1_700_000_000_000


def recordings(random: Random) -> list[tuple[int, int]]:
    """Values and times: bursts, pauses shorter and longer than all windows, and values that are taken back."""
    now_ms, found = NOW_MS, []
    for _ in range(random.randrange(1, 60)):
        now_ms += random.choice((0, 0, 1, random.randrange(100), random.randrange(2000), random.randrange(20_000)))
        value = random.randrange(100_000)
        found.append((value, now_ms))
        if random.random() < 0.2:
            found.append((-value, now_ms))
    return found


def test_rates_and_buckets_are_measured_as_java_measures_them() -> None:
    random, asked, ours = Random(SEED), [], []
    for _ in range(500):
        windows = Windows(random.choice((1, 2, 11)), random.choice((1, 2)) * 1000)
        limit, kind = random.choice((0.5, 10.0, 1000.0)), random.choice(("rate", "bucket"))
        asked.append(f"{kind} {windows.number} {windows.size_ms // 1000} {limit}")
        rate, bucket = SampledRate(windows), TokenBucket(windows)
        for value, now_ms in recordings(random):
            asked.append(f"{value} {now_ms}")
            if kind == "rate":
                rate.record(value, now_ms)
                ours.append(tuple(rate.measure(now_ms)))
            else:
                bucket.take(value, limit, now_ms)
                ours.append((bucket.tokens(limit, now_ms),))
    told = java(str(Path(__file__).with_name("Quotas.java")), input="\n".join(asked)).stdout.splitlines()
    assert len(told) == len(ours)
    for javas, mine in zip(told, ours, strict=True):
        assert tuple(map(float, javas.split())) == pytest.approx(mine, rel=1e-9, abs=1e-6)


class Throttled(NamedTuple):
    """What a client saw of its quotas."""

    produced: list[int]
    fetched: list[tuple[int, int]]
    created: list[list[int]]
    created_wait_ms: int


@pytest.fixture(scope="module")
def nodes() -> Iterator[list[RunningNode | ApacheKafka]]:
    with RunningNode() as ours, ApacheKafka() as kafkas:
        for node in (ours, kafkas):
            with Admin(bootstrap_servers=node.bootstrap) as admin:
                admin.create_topics([NewTopic("orders", 1, 1)]).raise_first()
        yield [ours, kafkas]


def set_quota(node: RunningNode | ApacheKafka, client_id: str, quotas: str) -> None:
    words = f"--alter --entity-type clients --entity-name {client_id} --add-config {quotas}"
    java(MAIN_CLASSES["kafka-configs"], "--bootstrap-server", node.bootstrap, *words.split())


def see(node: RunningNode | ApacheKafka) -> Throttled:
    """Sets quotas with Kafka's tool, and asks the same of each node, without waiting in between."""
    quotas = "producer_byte_rate=22000,consumer_byte_rate=10000,controller_mutation_rate=2"
    set_quota(node, "slow", quotas)
    produced, fetched, created = [], [], []
    for _ in range(6):
        with WireConnection(node.bootstrap, "slow") as connection:  # One that is not muted yet.
            reply = connection.ask(produce_request(batch(bytes(50_000)), acks=1), 12)
            produced.append(reply.throttle_time_ms)
    for _ in range(3):
        with WireConnection(node.bootstrap, "slow") as connection:
            reply = connection.ask(fetch_request(max_bytes=60_000, partition_max_bytes=60_000), 12)
            size = sum(len(one.records or b"") for topic in reply.responses for one in topic.partitions)
            fetched.append((reply.throttle_time_ms, size))
    wait_ms = 0
    for name, partitions in (("a", 20), ("b", 10), ("c", 1)):
        with WireConnection(node.bootstrap, "slow") as connection:
            topics = [CreateTopicsRequest.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)]
            reply = connection.ask(CreateTopicsRequest(topics=topics, timeout_ms=10_000), 7)
            created.append([topic.error_code for topic in reply.topics])
            wait_ms = max(wait_ms, reply.throttle_time_ms)
    return Throttled(produced, fetched, created, wait_ms)


def test_clients_are_throttled_alike(nodes: list[RunningNode | ApacheKafka]) -> None:
    """Within what a second more or less, and the 8 % that we hold clients to less, make of a rate over ten."""
    ours, kafkas = map(see, nodes)
    for mine, javas in zip(ours.produced, kafkas.produced, strict=True):
        assert mine == pytest.approx(javas, abs=2000)
    assert [size > 0 for _, size in ours.fetched] == [size > 0 for _, size in kafkas.fetched] == [True, False, False]
    for (mine, _), (javas, _) in zip(ours.fetched, kafkas.fetched, strict=True):
        assert mine == pytest.approx(javas, abs=2500)
    assert ours.created == kafkas.created == [[ErrorCode.NONE], [ErrorCode.NONE], [ErrorCode.THROTTLING_QUOTA_EXCEEDED]]
    assert ours.created_wait_ms == pytest.approx(kafkas.created_wait_ms, abs=1500)


def test_both_reply_at_once_and_mute_then(nodes: list[RunningNode | ApacheKafka]) -> None:
    for node in nodes:
        set_quota(node, "muted", "producer_byte_rate=5000")
        with WireConnection(node.bootstrap, "muted") as connection:
            request = produce_request(batch(bytes(100_000)), acks=1)
            assert connection.ask(request, 12).throttle_time_ms > 5000
            connection.send(request, 12)
            assert not connection.has_reply(within_s=1.0)


def test_javas_producer_keeps_to_its_rate_and_tells_of_it(nodes: list[RunningNode | ApacheKafka]) -> None:
    """30 seconds' worth of a rate that allows 10 at once: it takes 20 s, of both."""
    for node in nodes:
        set_quota(node, "perf", "producer_byte_rate=200000")
        done = java(
            MAIN_CLASSES["kafka-producer-perf-test"],
            *[
                "--topic",
                "orders",
                "--num-records",
                "3200",
                "--record-size",
                "1000",
                "--throughput",
                "-1",
                "--print-metrics",
            ],
            *("--bootstrap-server", node.bootstrap, "--command-property", "client.id=perf"),
        ).stdout
        rate = float(done.split("records/sec (")[-1].split(" MB/sec")[0])
        assert 0.15 < rate < 0.45, done
        (most,) = [line for line in done.splitlines() if "produce-throttle-time-max" in line]
        assert float(most.rsplit(":", 1)[1]) > 0
