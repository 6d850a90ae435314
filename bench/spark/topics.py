"""Topics to read: random records, written once."""

import os

import pyarrow as pa

import ottla
from ottla.testing import Broker

_CHUNK = 20_000


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
