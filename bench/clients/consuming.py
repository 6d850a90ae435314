"""Reads a topic from its beginning, as fast as a client gives records out. No group: all clients assign partitions.

The topic is filled once, by a process of its own, in batches of about 64 KB. Each client reads in its own best way: by
lists where it has them. Python objects are looked at (the value of each record), so that none can defer its work.
"""

import asyncio
import subprocess
import sys
from typing import Any

import bare_loopback
from metering import Meter

RECORDS = {"kafka-python": 30_000, "aiokafka": 100_000, "aiokafka getmany": 100_000}
MOST_RECORDS = 400_000
WAIT_S = 1.0
PORTION = 500

FILL = """
import random, sys
from confluent_kafka import Producer
bootstrap, topic, size, codec, partitions, records = sys.argv[1:]
chance = random.Random(1)
values = [bytes(chance.choices(b"abcdefghij klmnopqrst", k=int(size))) for _ in range(1000)]
producer = Producer({
    "bootstrap.servers": bootstrap, "linger.ms": 50, "compression.type": codec, "batch.size": 65_536,
    "queue.buffering.max.messages": 10_000_000, "queue.buffering.max.kbytes": 1_000_000,
})
for number in range(int(records)):
    producer.produce(topic, values[number % 1000], partition=number % int(partitions))
assert producer.flush(120) == 0
"""


def run(client: str, bootstrap: str, size: int, codec: str, partitions: int, round: int) -> Any:
    if client == "bare loopback":
        return bare_loopback.run(MOST_RECORDS, size)
    topic = f"consume-{size}-{codec}-{partitions}"
    _fill(bootstrap, topic, size, codec, partitions, MOST_RECORDS)
    wanted = RECORDS.get(client, MOST_RECORDS) // (1 if size < 1000 or client not in RECORDS else 4)
    return _RUNS[client](bootstrap, topic, partitions, wanted)


def _fill(bootstrap: str, topic: str, size: int, codec: str, partitions: int, records: int) -> None:
    import ottla
    from ottla.admin import NewTopic
    from ottla.errors import TopicAlreadyExists

    with ottla.Admin(bootstrap_servers=bootstrap) as admin:
        try:
            admin.create_topics([NewTopic(topic, partitions=partitions, replication_factor=1)]).raise_first()
        except TopicAlreadyExists:
            return
    asked = [bootstrap, topic, str(size), codec, str(partitions), str(records)]
    subprocess.run([sys.executable, "-c", FILL, *asked], check=True)


def _ottla(bootstrap: str, topic: str, partitions: int, wanted: int) -> Any:
    import ottla

    with ottla.Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([(topic, index) for index in range(partitions)])
        meter, seen = None, 0
        while seen < wanted:
            records = consumer.poll(WAIT_S)
            if meter is None and records:
                meter, wanted = Meter(), wanted - len(records)
                continue
            for record in records:
                record.value  # noqa: B018  (looked at, as by every client)
            seen += len(records)
        assert meter is not None
        return meter.read(seen)


def _ottla_aio(bootstrap: str, topic: str, partitions: int, wanted: int) -> Any:
    import ottla.aio

    async def main() -> Any:
        async with ottla.aio.Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
            consumer.assign([(topic, index) for index in range(partitions)])
            meter, seen = None, 0
            async for record in consumer:
                if meter is None:
                    meter = Meter()
                record.value  # noqa: B018
                seen += 1
                if seen == wanted:
                    break
            assert meter is not None
            return meter.read(seen)

    return asyncio.run(main())


def _ottla_aio_poll(bootstrap: str, topic: str, partitions: int, wanted: int) -> Any:
    import ottla.aio

    async def main() -> Any:
        async with ottla.aio.Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
            consumer.assign([(topic, index) for index in range(partitions)])
            meter, seen, left = None, 0, wanted
            while seen < left:
                records = await consumer.poll(WAIT_S)
                if meter is None and records:
                    meter, left = Meter(), wanted - len(records)
                    continue
                for record in records:
                    record.value  # noqa: B018
                seen += len(records)
            assert meter is not None
            return meter.read(seen)

    return asyncio.run(main())


def _ottla_arrow(bootstrap: str, topic: str, partitions: int, wanted: int) -> Any:
    import ottla

    with ottla.Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([(topic, index) for index in range(partitions)])
        meter, seen = None, 0
        while seen < wanted:
            batch = consumer.poll_arrow(WAIT_S)
            rows = 0 if batch is None else batch.num_rows
            if meter is None and rows:
                meter, wanted = Meter(), wanted - rows
                continue
            seen += rows
        assert meter is not None
        return meter.read(seen)


def _confluent(bootstrap: str, topic: str, partitions: int, wanted: int) -> Any:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": topic, "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
    meter, seen = None, 0
    while seen < wanted:
        records = consumer.consume(PORTION, WAIT_S)
        if meter is None and records:
            meter, wanted = Meter(), wanted - len(records)
            continue
        for record in records:
            record.value()
        seen += len(records)
    assert meter is not None
    read = meter.read(seen)
    consumer.close()
    return read


def _kafka_python(bootstrap: str, topic: str, partitions: int, wanted: int) -> Any:
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", enable_auto_commit=False)
    consumer.assign([TopicPartition(topic, index) for index in range(partitions)])
    meter, seen = None, 0
    while seen < wanted:
        found = consumer.poll(int(WAIT_S * 1000))
        count = sum(len(records) for records in found.values())
        if meter is None and count:
            meter, wanted = Meter(), wanted - count
            continue
        for records in found.values():
            for record in records:
                record.value  # noqa: B018
        seen += count
    assert meter is not None
    read = meter.read(seen)
    consumer.close()
    return read


def _aiokafka(bootstrap: str, topic: str, partitions: int, wanted: int, by_lists: bool = False) -> Any:
    from aiokafka import AIOKafkaConsumer, TopicPartition

    async def main() -> Any:
        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", enable_auto_commit=False)
        await consumer.start()
        consumer.assign([TopicPartition(topic, index) for index in range(partitions)])
        meter, seen = None, 0
        if by_lists:
            while seen < wanted:
                found = await consumer.getmany(timeout_ms=int(WAIT_S * 1000), max_records=PORTION)
                meter = meter or Meter()
                for records in found.values():
                    for record in records:
                        record.value  # noqa: B018
                    seen += len(records)
        else:
            async for record in consumer:
                meter = meter or Meter()
                record.value  # noqa: B018
                seen += 1
                if seen == wanted:
                    break
        assert meter is not None
        read = meter.read(seen)
        await consumer.stop()
        return read

    return asyncio.run(main())


_RUNS = {
    "ottla.Consumer": _ottla,
    "ottla.aio.Consumer": _ottla_aio,
    "ottla.aio poll": _ottla_aio_poll,
    "ottla poll_arrow": _ottla_arrow,
    "confluent-kafka": _confluent,
    "kafka-python": _kafka_python,
    "aiokafka": _aiokafka,
    "aiokafka getmany": lambda *asked: _aiokafka(*asked, by_lists=True),
}
