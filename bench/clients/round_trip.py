"""One record at a time, from `send` until the consumer has it: what two clients add to the way through the broker."""

import asyncio
import time
from statistics import quantiles
from typing import Any

TRIPS = 1000
WARM_UP = 100
WAIT_S = 10.0


def run(client: str, bootstrap: str, size: int, round: int) -> Any:
    import ottla
    from ottla.admin import NewTopic

    topic = f"round-trip-{time.time_ns()}"
    with ottla.Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topics([NewTopic(topic, partitions=1, replication_factor=1)]).raise_first()
    return _told(_RUNS[client](bootstrap, topic, bytes(size)))


def _told(times_s: list[float]) -> dict[str, float]:
    times_s = times_s[WARM_UP:]
    cuts = quantiles(times_s, n=100)
    return {"rate": len(times_s) / sum(times_s), "p50_ms": cuts[49] * 1000, "p99_ms": cuts[98] * 1000}


def _ottla(bootstrap: str, topic: str, value: bytes) -> list[float]:
    import ottla

    times_s = []
    settings = {"bootstrap.servers": bootstrap}
    with (
        ottla.Producer(settings, linger_ms=0) as producer,
        ottla.Consumer(settings, auto_offset_reset="earliest") as consumer,
    ):
        consumer.assign([(topic, 0)])
        for _ in range(WARM_UP + TRIPS):
            began_s = time.perf_counter()
            producer.send(topic, value)
            assert consumer.poll(WAIT_S)
            times_s.append(time.perf_counter() - began_s)
    return times_s


def _confluent(bootstrap: str, topic: str, value: bytes) -> list[float]:
    from confluent_kafka import Consumer, Producer, TopicPartition

    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "enable.idempotence": True})
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": topic, "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    times_s = []
    for _ in range(WARM_UP + TRIPS):
        began_s = time.perf_counter()
        producer.produce(topic, value)
        producer.poll(0)
        assert consumer.consume(1, WAIT_S)
        times_s.append(time.perf_counter() - began_s)
    producer.flush()
    consumer.close()
    return times_s


def _ottla_aio(bootstrap: str, topic: str, value: bytes) -> list[float]:
    import ottla.aio

    async def main() -> list[float]:
        times_s = []
        settings = {"bootstrap.servers": bootstrap}
        async with (
            ottla.aio.Producer(settings, linger_ms=0) as producer,
            ottla.aio.Consumer(settings, auto_offset_reset="earliest") as consumer,
        ):
            consumer.assign([(topic, 0)])
            for _ in range(WARM_UP + TRIPS):
                began_s = time.perf_counter()
                await producer.send(topic, value)
                assert await consumer.poll(WAIT_S)
                times_s.append(time.perf_counter() - began_s)
        return times_s

    return asyncio.run(main())


def _aiokafka(bootstrap: str, topic: str, value: bytes) -> list[float]:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

    async def main() -> list[float]:
        times_s = []
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, linger_ms=0, enable_idempotence=True)
        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", enable_auto_commit=False)
        await producer.start()
        await consumer.start()
        consumer.assign([TopicPartition(topic, 0)])
        for _ in range(WARM_UP + TRIPS):
            began_s = time.perf_counter()
            await producer.send(topic, value)
            assert await consumer.getone()
            times_s.append(time.perf_counter() - began_s)
        await producer.stop()
        await consumer.stop()
        return times_s

    return asyncio.run(main())


_RUNS = {
    "ottla": _ottla,
    "ottla.aio": _ottla_aio,
    "confluent-kafka": _confluent,
    "aiokafka": _aiokafka,
}
