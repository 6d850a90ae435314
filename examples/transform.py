"""Consume, transform, produce: records and the offsets they came from are written in one transaction.

Whatever happens to this program, or to the broker, the total of each order is in the topic `totals` exactly once for
those who read what is committed.
"""

import json
from typing import Any

from cluster import a_cluster
from ottla import Consumer, NewTopic, Producer, TopicPartition

ORDERS = [
    {"order": 1, "lines": [{"price": 3, "count": 2}, {"price": 10, "count": 1}]},
    {"order": 2, "lines": [{"price": 5, "count": 4}]},
    {"order": 3, "lines": []},
]


def total(order: dict[str, Any]) -> dict[str, int]:
    return {"order": order["order"], "total": sum(line["price"] * line["count"] for line in order["lines"])}


def transform(bootstrap: str) -> None:
    consumer = Consumer(
        bootstrap_servers=bootstrap,
        group_id="totals",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        value_deserializer="json",
    )
    producer = Producer(bootstrap_servers=bootstrap, transactional_id="totals", value_serializer="json")
    with consumer, producer:
        consumer.subscribe(["orders"])
        left = len(ORDERS)
        while left > 0:
            records = consumer.poll(timeout=1.0)
            if not records:
                continue
            left -= len(records)
            with producer.transaction():
                for record in records:
                    producer.send("totals", total(record.value), key=record.key)
                read = {TopicPartition(record.topic, record.partition): record.offset + 1 for record in records}
                producer.send_offsets(read, consumer.group_metadata())


def main() -> None:
    with a_cluster(NewTopic("orders", partitions=3), NewTopic("totals", partitions=3)) as bootstrap:
        with Producer(bootstrap_servers=bootstrap) as producer:
            for order in ORDERS:
                producer.send("orders", json.dumps(order).encode(), key=b"order-%d" % order["order"])
        transform(bootstrap)
        with Consumer(
            bootstrap_servers=bootstrap, isolation_level="read_committed", auto_offset_reset="earliest"
        ) as reader:
            reader.assign([("totals", partition) for partition in range(3)])
            totals = []
            while len(totals) < len(ORDERS):
                totals += [record.value.decode() for record in reader.poll(timeout=1.0)]
        print("\n".join(sorted(totals)))


if __name__ == "__main__":
    main()
