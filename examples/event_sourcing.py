"""State that is rebuilt from a compacted topic: the log is the database, and memory is its index.

Every change of an item of stock is a record with the item as its key; a tombstone (no value) takes it away. A program
that starts reads the topic to its end, and then has the state; compaction keeps the last record of each key.
"""

from cluster import a_cluster
from ottla import Consumer, NewTopic, Producer, TopicPartition

STOCK = TopicPartition("stock", 0)


class Stock:
    """How many of each item there are. `catch_up` reads what others have written meanwhile."""

    def __init__(self, bootstrap: str) -> None:
        self.items: dict[str, int] = {}
        self._producer = Producer(bootstrap_servers=bootstrap)
        self._consumer = Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
        self._consumer.assign([STOCK])
        self.catch_up()

    def catch_up(self) -> None:
        end = self._consumer.end_offsets([STOCK])[STOCK]
        while self._consumer.position(STOCK) < end:
            for record in self._consumer.poll(timeout=1.0):
                item = record.key.decode()
                if record.value is None:
                    self.items.pop(item, None)
                else:
                    self.items[item] = int(record.value)

    def set(self, item: str, count: int | None) -> None:
        """The log first; memory follows from it."""
        value = None if count is None else b"%d" % count
        self._producer.send("stock", value, key=item.encode()).result()
        self.catch_up()

    def close(self) -> None:
        self._producer.close()
        self._consumer.close()


def main() -> None:
    topic = NewTopic("stock", partitions=1, config={"cleanup.policy": "compact"})
    with a_cluster(topic) as bootstrap:
        shop = Stock(bootstrap)
        shop.set("apples", 10)
        shop.set("pears", 4)
        shop.set("apples", 7)
        shop.set("pears", None)
        shop.set("plums", 30)
        shop.close()
        restarted = Stock(bootstrap)
        print(f"before: {shop.items}")
        print(f"after a restart: {restarted.items}")
        restarted.close()


if __name__ == "__main__":
    main()
