"""Our producer beside Kafka's: keys land where Java's land, and Apache Kafka takes what it sends, in both protocols."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

import ottla
from ottla.admin import NewTopic
from ottla.client.errors import ProducerFenced
from ottla.client.producer.append import partition_for_key
from tests.interop.apache_kafka import ApacheKafka, java

pytestmark = pytest.mark.interop

KEYS = 10_000
TIMEOUT_S = 60


def test_ten_thousand_random_keys_are_placed_as_javas_producer_places_them() -> None:
    chance = random.Random(10)
    keys = [(chance.randbytes(chance.randrange(40)), chance.randrange(1, 1000)) for _ in range(KEYS)]
    lines = "".join(f"{key.hex()} {count}\n" for key, count in keys)
    told = java(str(Path(__file__).with_name("KeyPartitions.java")), input=lines).stdout.split()
    assert [partition_for_key(key, count) for key, count in keys] == [int(partition) for partition in told]


@pytest.fixture(scope="module", params=[1, 2], ids=["transaction.version 1", "transaction.version 2"])
def kafka(request: pytest.FixtureRequest) -> Iterator[ApacheKafka]:
    node = ApacheKafka()
    try:
        node.format("--feature", f"transaction.version={request.param}")
        node.start()
        yield node
    finally:
        node.close()


def consumed(kafka: ApacheKafka, topic: str, count: int) -> list[str]:
    """The committed records that Kafka's console consumer prints, from the beginning; it ends when no more come."""
    return kafka.tool(
        "kafka-console-consumer",
        *("--bootstrap-server", kafka.bootstrap, "--topic", topic, "--from-beginning", "--max-messages", str(count)),
        *("--timeout-ms", "20000", "--isolation-level", "read_committed"),
    ).stdout.split("\n")[:-1]


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_kafkas_consumer_reads_what_we_send(kafka: ApacheKafka, compression: str) -> None:
    topic = f"plain-{compression}"
    with ottla.Producer(bootstrap_servers=kafka.bootstrap, compression_type=compression) as producer:
        for number in range(2000):
            producer.send(topic, b"%d and some words" % number)
    assert consumed(kafka, topic, 2000) == [f"{number} and some words" for number in range(2000)]


def test_transactions_are_atomic_and_fence_each_other(kafka: ApacheKafka) -> None:
    with ottla.Producer(bootstrap_servers=kafka.bootstrap, transactional_id="one") as first:
        for number in range(6):
            first.begin()
            for part in range(50):
                first.send("transacted", b"%d %d" % (number, part))
            if number % 2:
                first.flush(TIMEOUT_S)
                first.abort()
            else:
                first.send_offsets({ottla.TopicPartition("transacted", 0): number}, "readers")
                first.commit()
        first.begin()
        first.send("transacted", b"never committed")
        first.flush(TIMEOUT_S)
        with ottla.Producer(bootstrap_servers=kafka.bootstrap, transactional_id="one") as second:
            with second.transaction():
                second.send("transacted", b"the end")
            with pytest.raises(ProducerFenced):
                first.commit()
    kept = [f"{number} {part}" for number in (0, 2, 4) for part in range(50)]
    assert consumed(kafka, "transacted", 151) == [*kept, "the end"]


def test_topics_whose_leaders_are_not_ready_yet_get_every_record(kafka: ApacheKafka) -> None:
    """The first requests are refused here and there, and those behind them must not overtake them."""
    retried = 0.0
    with ottla.Admin(bootstrap_servers=kafka.bootstrap) as admin:
        for number in range(5):
            topic = f"new-{number}"
            admin.create_topics([NewTopic(topic, partitions=8, replication_factor=1)]).raise_first()
            with ottla.Producer(bootstrap_servers=kafka.bootstrap) as producer:
                deliveries = [producer.send(topic, b"x" * 100, partition=index % 8) for index in range(20_000)]
                producer.flush(TIMEOUT_S)
                retried += producer.metrics()["record-retry-total"]
            for partition in range(8):
                offsets = [delivery.result(0).offset for delivery in deliveries[partition::8]]
                assert offsets == list(range(2500))
    assert retried, "no leader was found unready: this proves nothing"


def test_a_broker_that_is_killed_and_comes_back_has_every_record_once(kafka: ApacheKafka) -> None:
    with ottla.Producer(bootstrap_servers=kafka.bootstrap, reconnect_backoff_max_ms=200) as producer:
        producer.send("killed", b"0").result(TIMEOUT_S)
        for number in range(1, 5000):
            producer.send("killed", b"%d" % number)
            if number == 2500:
                kafka.kill()
                kafka.start()
        producer.flush(TIMEOUT_S)
    assert consumed(kafka, "killed", 5000) == [str(number) for number in range(5000)]
