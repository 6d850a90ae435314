"""Clients that people use: Kafka's own tools, and confluent-kafka."""

import re
import time

from confluent_kafka import Consumer, Producer, TopicPartition
from contenders import Contender
from load import alternating
from report import Row, compared
from wire_client import WireClient

JAVA_RECORDS = {1000: 500_000, 100: 2_000_000}
"""By size. Some seconds: a JVM takes the first one to get up to its speed."""
RECORDS = 300_000
JAVA_OPTIONS = ("-Xmx512M",)  # as Kafka's scripts have it for tools
RATE = re.compile(r"([\d.]+) records/sec")


def measure_clients(nodes: list[Contender], rounds: int) -> list[Row]:
    names = [node.name for node in nodes]
    measured = {
        "Java perf producer, 1 KB records": (java_producer_large, 1.5),
        "Java perf producer, 100 B records": (java_producer_small, 1.5),
        "Java perf consumer": (java_consumer, None),
        "confluent-kafka producer, 100 B records": (confluent_producer, None),
        "confluent-kafka consumer, 100 B records": (confluent_consumer, None),
    }
    for node in nodes:
        with WireClient(node.bootstrap) as client:
            client.create_topic("clients")
    rows = []
    for what, (run, target) in measured.items():
        results = alternating(rounds, [lambda node=node, run=run: run(node) for node in nodes])
        by_name = dict(zip(names, results, strict=True))
        rows.append(compared(what, by_name, lambda rate: f"{rate / 1000:.0f} k rec/s", at_least=target))
    return rows


def java_producer_large(node: Contender) -> float:
    return _java_producer(node, 1000)


def java_producer_small(node: Contender) -> float:
    return _java_producer(node, 100)


def _java_producer(node: Contender, size: int) -> float:
    from tests.interop.apache_kafka import MAIN_CLASSES, java

    words = f"--topic clients --num-records {JAVA_RECORDS[size]} --record-size {size} --throughput -1"
    done = java(
        MAIN_CLASSES["kafka-producer-perf-test"],
        *words.split(),
        "--command-property",
        f"bootstrap.servers={node.bootstrap}",
        java_options=JAVA_OPTIONS,
    )
    return float(RATE.findall(done.stdout)[-1])


def java_consumer(node: Contender) -> float:
    """What it reports for the time in which it fetched: without the start of the JVM and the join of the group."""
    from tests.interop.apache_kafka import MAIN_CLASSES, java

    words = f"--topic clients --num-records {JAVA_RECORDS[100]} --bootstrap-server {node.bootstrap} --hide-header"
    done = java(MAIN_CLASSES["kafka-consumer-perf-test"], *words.split(), java_options=JAVA_OPTIONS)
    return float(done.stdout.strip().splitlines()[-1].split(",")[-1])


def confluent_producer(node: Contender) -> float:
    config = {"bootstrap.servers": node.bootstrap, "linger.ms": 5, "queue.buffering.max.messages": RECORDS}
    producer = Producer(config)
    value = bytes(100)
    started = time.perf_counter()
    for number in range(RECORDS):
        producer.produce("clients", value)
        if number % 1000 == 0:
            producer.poll(0)
    if producer.flush(60):
        raise RuntimeError("not everything was acknowledged")
    return RECORDS / (time.perf_counter() - started)


def confluent_consumer(node: Contender) -> float:
    config = {"bootstrap.servers": node.bootstrap, "group.id": "bench", "enable.auto.commit": False}
    config["fetch.queue.backoff.ms"] = 5  # its queue is full soon, and by default it then rests for a second
    consumer = Consumer(config)
    with WireClient(node.bootstrap) as client:
        first = max(client.end_offset("clients") - RECORDS, 0)
    consumer.assign([TopicPartition("clients", 0, first)])
    started = time.perf_counter()
    received = 0
    while received < RECORDS:
        messages = consumer.consume(10_000, 10)
        if not messages:
            raise RuntimeError(f"{received} of {RECORDS} records came")
        received += len(messages)
    took = time.perf_counter() - started
    consumer.close()
    return RECORDS / took
