"""Topics to read: random records, written once."""

import os

import pyarrow as pa

import ottla
from ottla.schemas import Avro
from ottla.testing import Broker, SchemaRegistry

_CHUNK = 20_000
ORDER = """{"type": "record", "name": "Order", "fields": [
    {"name": "id", "type": "long"}, {"name": "customer", "type": "string"},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    {"name": "price", "type": "double"}, {"name": "count", "type": "int"},
    {"name": "note", "type": ["null", "string"], "default": null},
    {"name": "tags", "type": {"type": "array", "items": "string"}},
    {"name": "paid", "type": "boolean"}]}"""


def fill(broker: Broker, size: int, partitions: int, count: int) -> str:
    """A topic of so many records of about that size, evenly over its partitions. Made once."""
    name = f"bench-{size}-{partitions}-{count}"
    with ottla.Admin(bootstrap_servers=broker.bootstrap) as admin:
        if any(one.name == name for one in admin.list_topics()):
            return name
    broker.create_topic(name, partitions=partitions)
    key_size = 10
    pool = os.urandom(size * 1000)
    values = [pool[start : start + size - key_size] for start in range(0, len(pool) - size, size)]
    with ottla.Producer(bootstrap_servers=broker.bootstrap, linger_ms=20, batch_size=256 * 1024) as producer:
        for partition in range(partitions):
            left = count // partitions
            while left:
                rows = min(left, _CHUNK)
                column = pa.array([values[number % len(values)] for number in range(rows)], pa.binary())
                keys = pa.array([b"%010d" % (left - number) for number in range(rows)], pa.binary())
                batch = pa.RecordBatch.from_arrays([keys, column], names=["key", "value"])
                producer.send_arrow(name, batch, partition=partition)
                left -= rows
        producer.flush()
    return name


def fill_avro(broker: Broker, registry: SchemaRegistry, partitions: int, count: int) -> str:
    """A topic of orders in Avro, each with the id of its schema before it."""
    name = f"bench-avro-{partitions}"
    broker.create_topic(name, partitions=partitions)
    orders = Avro(ottla.SchemaRegistryClient(registry.url), ORDER)
    values = [
        orders.serialize(
            name,
            {
                "id": number << 20,
                "customer": f"customer {number % 97}",
                "at": 1_700_000_000_000_000 + number,
                "price": number / 8,
                "count": number % 5,
                "note": None if number % 3 else "as soon as possible",
                "tags": ["new"] * (number % 3),
                "paid": number % 2 == 0,
            },
        )
        for number in range(1_000)
    ]
    with ottla.Producer(bootstrap_servers=broker.bootstrap, linger_ms=20, batch_size=256 * 1024) as producer:
        for partition in range(partitions):
            left = count // partitions
            while left:
                rows = min(left, _CHUNK)
                column = pa.array([values[number % len(values)] for number in range(rows)], pa.binary())
                producer.send_arrow(name, pa.RecordBatch.from_arrays([column], names=["value"]), partition=partition)
                left -= rows
        producer.flush()
    return name
