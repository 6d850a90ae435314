"""aiokafka: asyncio. Each call here is one loop from beginning to end."""

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import BrokerResponseError

from tests.clients.records import Placed, Record, Refused

NAME = "aiokafka"
NULL_HEADERS = True
TIMEOUT_S = 30.0
MAX_BYTES = 8 << 20
T = TypeVar("T")


def write(bootstrap: str, topic: str, records: Sequence[Record], compression: str = "none", partition: int = 0) -> None:
    async def writing() -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            compression_type=None if compression == "none" else compression,
            max_request_size=MAX_BYTES,
            linger_ms=20,
        )
        async with producer:
            sent = [
                await producer.send(
                    topic,
                    record.value,
                    record.key,
                    partition,
                    record.timestamp_ms,
                    list(record.headers),
                )
                for record in records
            ]
            try:
                await asyncio.gather(*sent)
            except BrokerResponseError as problem:
                raise Refused(problem.errno) from problem

    _run(writing())


def read(bootstrap: str, topic: str, count: int, offset: int = 0, partition: int = 0) -> list[Placed]:
    place = TopicPartition(topic, partition)

    async def reading() -> list[Placed]:
        found: list[Placed] = []
        async with _consumer(bootstrap) as consumer:
            consumer.assign([place])
            consumer.seek(place, offset)
            while len(found) < count:
                for message in (await consumer.getmany(timeout_ms=1000, max_records=count - len(found))).get(place, ()):
                    record = Record(message.value, message.key, tuple(message.headers), message.timestamp)
                    found.append(Placed(message.offset, record))
        return found

    return _run(reading())


def offset_for_time(bootstrap: str, topic: str, timestamp_ms: int) -> int | None:
    place = TopicPartition(topic, 0)

    async def asking() -> int | None:
        async with _consumer(bootstrap) as consumer:
            found = (await consumer.offsets_for_times({place: timestamp_ms}))[place]
            return None if found is None else found.offset

    return _run(asking())


def bounds(bootstrap: str, topic: str) -> tuple[int, int]:
    place = TopicPartition(topic, 0)

    async def asking() -> tuple[int, int]:
        async with _consumer(bootstrap) as consumer:
            return (await consumer.beginning_offsets([place]))[place], (await consumer.end_offsets([place]))[place]

    return _run(asking())


def _consumer(bootstrap: str) -> AIOKafkaConsumer:
    return AIOKafkaConsumer(
        bootstrap_servers=bootstrap, group_id=None, enable_auto_commit=False, max_partition_fetch_bytes=MAX_BYTES
    )


def _run(work: Coroutine[Any, Any, T]) -> T:
    async def bounded() -> T:
        return await asyncio.wait_for(work, TIMEOUT_S)

    return asyncio.run(bounded())


class Admin:
    def __init__(self, bootstrap: str) -> None:
        self._loop = asyncio.new_event_loop()

        async def started() -> AIOKafkaAdminClient:
            admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
            await admin.start()
            return admin

        self._admin = self._do(started())

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(asyncio.wait_for(work, TIMEOUT_S))

    def create(self, topic: str, partitions: int, config: dict[str, str]) -> None:
        made = self._do(self._admin.create_topics([NewTopic(topic, partitions, 1, topic_configs=config)]))
        assert [error[1] for error in made.topic_errors] == [0]

    def topics(self) -> set[str]:
        return set(self._do(self._admin.list_topics()))

    def partitions(self, topic: str) -> int:
        (described,) = self._do(self._admin.describe_topics([topic]))
        return len(described["partitions"])

    def grow(self, topic: str, partitions: int) -> None:
        grown = self._do(self._admin.create_partitions({topic: NewPartitions(partitions)}))
        assert [error[1] for error in grown.topic_errors] == [0]

    def config(self, topic: str) -> dict[str, str]:
        (described,) = self._do(self._admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)]))
        ((error, _, _, _, entries),) = described.resources
        assert error == 0
        return {entry[0]: entry[1] for entry in entries}

    def set_config(self, topic: str, name: str, value: str) -> None:
        """AlterConfigs, not the incremental one: aiokafka has no other."""
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, {name: value})
        (altered,) = self._do(self._admin.alter_configs([resource]))
        ((code, *_),) = altered.resources
        if code:
            raise Refused(code)

    def delete_records(self, topic: str, before: int) -> int:
        place = TopicPartition(topic, 0)
        return self._do(self._admin.delete_records({place: RecordsToDelete(before)}))[place]

    def delete(self, topic: str) -> None:
        gone = self._do(self._admin.delete_topics([topic]))
        assert [error[1] for error in gone.topic_error_codes] == [0]

    def nodes(self) -> list[tuple[str, int]]:
        return [(node["host"], node["port"]) for node in self._do(self._admin.describe_cluster())["brokers"]]

    def close(self) -> None:
        self._do(self._admin.close())
        self._loop.close()


class Stream:
    """Sends numbers one after the other, idempotently, and remembers which were acknowledged; see `restarts`."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._topic = topic
        self.acknowledged: list[int] = []
        self.problems: list[str] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._tasks: list[Any] = []

        async def started() -> AIOKafkaProducer:
            producer = AIOKafkaProducer(
                bootstrap_servers=bootstrap,
                enable_idempotence=True,
                linger_ms=1,
                retry_backoff_ms=20,
                request_timeout_ms=120_000,
            )
            await producer.start()
            return producer

        self._producer = self._do(started())

    def _do(self, work: Coroutine[Any, Any, T], timeout_s: float = TIMEOUT_S) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout_s)

    def send(self, number: int) -> None:
        async def sending() -> None:
            acknowledgement = await self._producer.send(self._topic, b"%d" % number, partition=0)
            acknowledgement.add_done_callback(done)

        def done(future: asyncio.Future[Any]) -> None:
            if future.exception() is None:
                self.acknowledged.append(number)
            else:
                self.problems.append(repr(future.exception()))

        self._do(sending(), 120)

    def finish(self) -> None:
        self._do(self._producer.flush(), 120)
        self._do(self._producer.stop(), 120)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(TIMEOUT_S)
        self._loop.close()
