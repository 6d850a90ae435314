"""kafka-python: pure Python, synchronous, a thread underneath."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient, NewTopic
from kafka.errors import BrokerResponseError

from tests.clients.records import Placed, Record, Refused

NAME = "kafka-python"
NULL_HEADERS = False
TIMEOUT_S = 30.0
MAX_BYTES = 8 << 20


def write(bootstrap: str, topic: str, records: Sequence[Record], compression: str = "none", partition: int = 0) -> None:
    producer = KafkaProducer(
        bootstrap_servers=bootstrap,
        compression_type=None if compression == "none" else compression,
        max_request_size=MAX_BYTES,
        linger_ms=20,
    )
    try:
        sent = [
            producer.send(
                topic,
                record.value,
                record.key,
                list(record.headers),
                partition,
                record.timestamp_ms,
            )
            for record in records
        ]
        producer.flush(TIMEOUT_S)
        for future in sent:
            future.get(TIMEOUT_S)
    except BrokerResponseError as problem:
        raise Refused(problem.errno) from problem
    finally:
        producer.close(timeout=TIMEOUT_S)


def read(bootstrap: str, topic: str, count: int, offset: int = 0, partition: int = 0) -> list[Placed]:
    place = TopicPartition(topic, partition)
    with _consumer(bootstrap) as consumer:
        consumer.assign([place])
        consumer.seek(place, offset)
        found: list[Placed] = []
        deadline = time.monotonic() + TIMEOUT_S
        while len(found) < count:
            assert time.monotonic() < deadline, f"{len(found)} of {count} records came"
            for message in consumer.poll(1000, max_records=count - len(found)).get(place, ()):
                record = Record(message.value, message.key, tuple(message.headers), message.timestamp)
                found.append(Placed(message.offset, record))
    return found


def offset_for_time(bootstrap: str, topic: str, timestamp_ms: int) -> int | None:
    place = TopicPartition(topic, 0)
    with _consumer(bootstrap) as consumer:
        found = consumer.offsets_for_times({place: timestamp_ms})[place]
        return None if found is None else found.offset


def bounds(bootstrap: str, topic: str) -> tuple[int, int]:
    place = TopicPartition(topic, 0)
    with _consumer(bootstrap) as consumer:
        return consumer.beginning_offsets([place])[place], consumer.end_offsets([place])[place]


@contextmanager
def _consumer(bootstrap: str) -> Iterator[KafkaConsumer]:
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap, group_id=None, enable_auto_commit=False, max_partition_fetch_bytes=MAX_BYTES
    )
    try:
        yield consumer
    finally:
        consumer.close()


class Admin:
    def __init__(self, bootstrap: str) -> None:
        self._admin = KafkaAdminClient(bootstrap_servers=bootstrap)

    def create(self, topic: str, partitions: int, config: dict[str, str]) -> None:
        self._admin.create_topics([NewTopic(topic, partitions, 1, topic_configs=config)])

    def topics(self) -> set[str]:
        return set(self._admin.list_topics())

    def partitions(self, topic: str) -> int:
        (described,) = self._admin.describe_topics([topic])
        return len(described["partitions"])

    def grow(self, topic: str, partitions: int) -> None:
        self._admin.create_partitions({topic: partitions})

    def config(self, topic: str) -> dict[str, str]:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        described = self._admin.describe_configs([resource], config_filter="all")
        (entries,) = described[ConfigResourceType.TOPIC.name.lower()].values()
        return {name: entry["value"] for name, entry in entries.items()}

    def set_config(self, topic: str, name: str, value: str) -> None:
        """Errors are texts here: `[Error 40] …`."""
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, {name: value})
        result = self._admin.alter_configs([resource], incremental=True)["topic"][topic]
        if result != "OK":
            raise Refused(int(result.split("]")[0].removeprefix("[Error ")))

    def delete_records(self, topic: str, before: int) -> int:
        place = TopicPartition(topic, 0)
        return self._admin.delete_records({place: before})[place]["low_watermark"]

    def delete(self, topic: str) -> None:
        self._admin.delete_topics([topic])

    def nodes(self) -> list[tuple[str, int]]:
        return [(node["host"], node["port"]) for node in self._admin.describe_cluster()["brokers"]]

    def close(self) -> None:
        self._admin.close()


class Stream:
    """Sends numbers one after the other, idempotently, and remembers which were acknowledged; see `restarts`."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._topic = topic
        self.acknowledged: list[int] = []
        self.problems: list[str] = []
        self._producer = KafkaProducer(
            bootstrap_servers=bootstrap,
            enable_idempotence=True,
            linger_ms=1,
            reconnect_backoff_ms=20,
            reconnect_backoff_max_ms=200,
            retry_backoff_ms=20,
            delivery_timeout_ms=120_000,
        )

    def send(self, number: int) -> None:
        sent = self._producer.send(self._topic, b"%d" % number, partition=0)
        sent.add_callback(lambda _: self.acknowledged.append(number))
        sent.add_errback(lambda problem: self.problems.append(repr(problem)))

    def finish(self) -> None:
        self._producer.flush(120)
        self._producer.close(timeout=TIMEOUT_S)
