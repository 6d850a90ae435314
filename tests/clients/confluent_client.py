"""confluent-kafka, which is librdkafka: what most languages but Java use."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from tests.clients.records import Placed, Record, Refused

NAME = "confluent-kafka"
NULL_HEADERS = True
TIMEOUT_S = 30.0
MAX_BYTES = 8 << 20
RECONNECTS_SOON = {"reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 200, "retry.backoff.ms": 20}


def write(bootstrap: str, topic: str, records: Sequence[Record], compression: str = "none", partition: int = 0) -> None:
    Writer(bootstrap, topic, compression).write({partition: records})


class Writer:
    """A producer that stays: each new one waits half a second in librdkafka until it asks for its producer id."""

    def __init__(self, bootstrap: str, topic: str, compression: str = "none") -> None:
        self._topic = topic
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "compression.type": compression,
                "enable.idempotence": True,  # otherwise what is sent again may be overtaken
                "message.max.bytes": MAX_BYTES,
                "linger.ms": 20,
                **RECONNECTS_SOON,
            }
        )

    def write(self, records: Mapping[int, Sequence[Record]]) -> None:
        """Writes to each partition what it is to get, and returns when all is acknowledged."""
        problems: list[KafkaError] = []

        def delivered(problem: KafkaError | None, _: object) -> None:
            if problem is not None:
                problems.append(problem)

        for partition, of_partition in records.items():
            for record in of_partition:
                self._producer.produce(
                    self._topic,
                    record.value,
                    record.key,
                    partition,
                    delivered,
                    timestamp=record.timestamp_ms,
                    headers=list(record.headers),
                )
        assert self._producer.flush(TIMEOUT_S) == 0, "not everything was acknowledged in time"
        if problems:
            raise Refused(problems[0].code())


def read(bootstrap: str, topic: str, count: int, offset: int = 0, partition: int = 0) -> list[Placed]:
    with _consumer(bootstrap) as consumer:
        consumer.assign([TopicPartition(topic, partition, offset)])
        found: list[Placed] = []
        while len(found) < count:
            messages = consumer.consume(count - len(found), TIMEOUT_S)
            assert messages, f"{len(found)} of {count} records came"
            for message in messages:
                assert message.error() is None, message.error()
                headers = tuple(message.headers() or ())
                record = Record(message.value(), message.key(), headers, message.timestamp()[1])
                found.append(Placed(message.offset(), record))
    return found


def offset_for_time(bootstrap: str, topic: str, timestamp_ms: int) -> int | None:
    with _consumer(bootstrap) as consumer:
        (found,) = consumer.offsets_for_times([TopicPartition(topic, 0, timestamp_ms)], TIMEOUT_S)
        assert found.error is None
        return found.offset if found.offset >= 0 else None


def bounds(bootstrap: str, topic: str) -> tuple[int, int]:
    with _consumer(bootstrap) as consumer:
        return consumer.get_watermark_offsets(TopicPartition(topic, 0), TIMEOUT_S)


@contextmanager
def _consumer(bootstrap: str) -> Iterator[Consumer]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "assigned by hand",
            "enable.auto.commit": False,
            "fetch.message.max.bytes": MAX_BYTES,
        }
    )
    try:
        yield consumer
    finally:
        consumer.close()


class Admin:
    def __init__(self, bootstrap: str) -> None:
        self._admin = AdminClient({"bootstrap.servers": bootstrap})

    def create(self, topic: str, partitions: int, config: dict[str, str]) -> None:
        self._admin.create_topics([NewTopic(topic, partitions, 1, config=config)])[topic].result(TIMEOUT_S)

    def topics(self) -> set[str]:
        return set(self._admin.list_topics(timeout=TIMEOUT_S).topics)

    def partitions(self, topic: str) -> int:
        return len(self._admin.list_topics(topic, TIMEOUT_S).topics[topic].partitions)

    def grow(self, topic: str, partitions: int) -> None:
        self._admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(TIMEOUT_S)

    def config(self, topic: str) -> dict[str, str]:
        resource = ConfigResource(ResourceType.TOPIC, topic)
        entries = self._admin.describe_configs([resource])[resource].result(TIMEOUT_S)
        return {name: entry.value for name, entry in entries.items()}

    def set_config(self, topic: str, name: str, value: str) -> None:
        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        try:
            self._admin.incremental_alter_configs([resource])[resource].result(TIMEOUT_S)
        except KafkaException as problem:
            raise Refused(problem.args[0].code()) from problem

    def delete_records(self, topic: str, before: int) -> int:
        partition = TopicPartition(topic, 0, before)
        return self._admin.delete_records([partition])[partition].result(TIMEOUT_S).low_watermark

    def delete(self, topic: str) -> None:
        self._admin.delete_topics([topic])[topic].result(TIMEOUT_S)

    def nodes(self) -> list[tuple[str, int]]:
        cluster = self._admin.describe_cluster().result(TIMEOUT_S)
        assert cluster.cluster_id
        return [(node.host, node.port) for node in cluster.nodes]

    def close(self) -> None:
        """Nothing to close."""


class Stream:
    """Sends numbers one after the other, idempotently, and remembers which were acknowledged; see `restarts`."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._topic = topic
        self.acknowledged: list[int] = []
        self.problems: list[str] = []
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 1,
                **RECONNECTS_SOON,
                "delivery.timeout.ms": 120_000,
            }
        )

    def send(self, number: int) -> None:
        def delivered(problem: KafkaError | None, _: object) -> None:
            if problem is None:
                self.acknowledged.append(number)
            else:
                self.problems.append(str(problem))

        self._producer.produce(self._topic, b"%d" % number, partition=0, on_delivery=delivered)
        self._producer.poll(0)

    def finish(self) -> None:
        self._producer.flush(120)
