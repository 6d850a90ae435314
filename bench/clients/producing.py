"""Sends records as fast as a client takes them, and waits until all are acknowledged. All clients are idempotent."""

import asyncio
import random
from contextlib import suppress
from typing import Any

from metering import Meter

LINGER_MS = 5
FIRST_S = 30
RECORDS = {"kafka-python": 30_000, "aiokafka": 60_000}
MOST_RECORDS = 300_000
MEMORY_BYTES = 64 << 20


def run(client: str, bootstrap: str, size: int, codec: str, partitions: int, batch_size: int | None, round: int) -> Any:
    topic = f"produce-{partitions}"
    _create(bootstrap, topic, partitions)
    records = RECORDS.get(client, MOST_RECORDS) // (1 if size < 1000 else 2)
    values = _values(size)
    return _RUNS[client](bootstrap, topic, codec, batch_size, values, records)


def _create(bootstrap: str, topic: str, partitions: int) -> None:
    import ottla
    from ottla.admin import NewTopic
    from ottla.client.errors import TopicAlreadyExists

    with ottla.Admin(bootstrap_servers=bootstrap) as admin, suppress(TopicAlreadyExists):
        admin.create_topics([NewTopic(topic, partitions=partitions, replication_factor=1)]).raise_first()


def _values(size: int) -> list[bytes]:
    """A thousand different values of letters, which compress as text does."""
    chance = random.Random(1)
    return [bytes(chance.choices(b"abcdefghij klmnopqrst", k=size)) for _ in range(1000)]


def _ottla(bootstrap: str, topic: str, codec: str, batch_size: int | None, values: list[bytes], records: int) -> Any:
    import ottla

    settings = _settings(bootstrap, codec, batch_size)
    with ottla.Producer(settings) as producer:
        producer.send(topic, values[0]).result(FIRST_S)
        meter = Meter()
        for number in range(records):
            producer.send(topic, values[number % 1000])
        producer.flush()
        return meter.read(records)


def _ottla_aio(
    bootstrap: str, topic: str, codec: str, batch_size: int | None, values: list[bytes], records: int
) -> Any:
    import ottla.aio

    async def main() -> Any:
        async with ottla.aio.Producer(_settings(bootstrap, codec, batch_size)) as producer:
            await producer.send_and_wait(topic, values[0])
            meter = Meter()
            for number in range(records):
                await producer.send(topic, values[number % 1000])
            await producer.flush()
            return meter.read(records)

    return asyncio.run(main())


def _ottla_arrow(
    bootstrap: str, topic: str, codec: str, batch_size: int | None, values: list[bytes], records: int
) -> Any:
    import pyarrow as pa

    import ottla

    rows = pa.table({"key": [value[:8] for value in values] * 10, "value": values * 10})
    with ottla.Producer(_settings(bootstrap, codec, batch_size)) as producer:
        producer.send_arrow(topic, rows).result(FIRST_S)
        meter = Meter()
        for _ in range(records // rows.num_rows):
            producer.send_arrow(topic, rows)
        producer.flush()
        return meter.read(records // rows.num_rows * rows.num_rows)


def _confluent(
    bootstrap: str, topic: str, codec: str, batch_size: int | None, values: list[bytes], records: int
) -> Any:
    from confluent_kafka import Producer

    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "enable.idempotence": True,
        "linger.ms": LINGER_MS,
        "compression.type": codec,
        "queue.buffering.max.messages": 1_000_000,
        "queue.buffering.max.kbytes": MEMORY_BYTES >> 10,
    }
    if batch_size is not None:
        settings["batch.size"] = batch_size
    producer = Producer(settings)
    producer.produce(topic, values[0])
    producer.flush(FIRST_S)
    meter = Meter()
    for number in range(records):
        while True:
            try:
                producer.produce(topic, values[number % 1000])
                break
            except BufferError:
                producer.poll(0.01)
        if number % 1000 == 0:
            producer.poll(0)
    assert producer.flush(FIRST_S) == 0
    return meter.read(records)


def _kafka_python(
    bootstrap: str, topic: str, codec: str, batch_size: int | None, values: list[bytes], records: int
) -> Any:
    from kafka import KafkaProducer

    sized = {} if batch_size is None else {"batch_size": batch_size}
    producer = KafkaProducer(
        bootstrap_servers=bootstrap,
        enable_idempotence=True,
        linger_ms=LINGER_MS,
        compression_type=None if codec == "none" else codec,
        **sized,
    )
    producer.send(topic, values[0]).get(FIRST_S)
    meter = Meter()
    for number in range(records):
        producer.send(topic, values[number % 1000])
    producer.flush()
    read = meter.read(records)
    producer.close()
    return read


def _aiokafka(bootstrap: str, topic: str, codec: str, batch_size: int | None, values: list[bytes], records: int) -> Any:
    from aiokafka import AIOKafkaProducer

    sized = {} if batch_size is None else {"max_batch_size": batch_size}

    async def main() -> Any:
        producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            enable_idempotence=True,
            linger_ms=LINGER_MS,
            compression_type=None if codec == "none" else codec,
            **sized,
        )
        await producer.start()
        await producer.send_and_wait(topic, values[0])
        meter = Meter()
        for number in range(records):
            await producer.send(topic, values[number % 1000])
        await producer.flush()
        read = meter.read(records)
        await producer.stop()
        return read

    return asyncio.run(main())


def _settings(bootstrap: str, codec: str, batch_size: int | None) -> dict[str, object]:
    return {
        "bootstrap.servers": bootstrap,
        "linger.ms": LINGER_MS,
        "compression.type": codec,
        "buffer.memory": MEMORY_BYTES,
        "batch.size": batch_size,
    }


_RUNS = {
    "ottla.Producer": _ottla,
    "ottla.aio.Producer": _ottla_aio,
    "ottla send_arrow": _ottla_arrow,
    "confluent-kafka": _confluent,
    "kafka-python": _kafka_python,
    "aiokafka": _aiokafka,
}
