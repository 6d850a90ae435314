"""Records that cannot be processed: tried again a few times, then set aside with the reason.

An order that is no number is poison: it will never work. One that names a shop that is closed may work later. Both go
to `orders-retry` first, with headers that say why and how often; what has failed three times goes to `orders-dead`,
where a person looks at it. The orders behind them are not held up.
"""

from cluster import a_cluster
from ottla import Consumer, ConsumerRecord, NewTopic, Producer
from ottla.client.consumer.dead_letters import DeadLetters, attempts_of, origin_of

ORDERS = [b"12", b"many", b"closed:7", b"30"]
MOST_ATTEMPTS = 3


class Shop:
    """Opens when it was asked twice."""

    def __init__(self) -> None:
        self.handled: list[int] = []
        self._asked = 0

    def handle(self, order: bytes) -> None:
        shop, _, count = order.rpartition(b":")
        if shop == b"closed":
            self._asked += 1
            if self._asked <= 2:
                raise ConnectionError("the shop is closed")
        self.handled.append(int(count))


def next_topic(record: ConsumerRecord) -> str:
    """Where a record goes that has failed once more."""
    return "orders-retry" if attempts_of(record) + 1 < MOST_ATTEMPTS else "orders-dead"


def work(bootstrap: str, shop: Shop) -> None:
    consumer = Consumer(
        bootstrap_servers=bootstrap, group_id="shop", auto_offset_reset="earliest", enable_auto_commit=False
    )
    with consumer, Producer(bootstrap_servers=bootstrap) as producer:
        letters = DeadLetters(producer, next_topic, group_id="shop")
        consumer.subscribe(["orders", "orders-retry"])
        while records := consumer.poll(timeout=5.0):
            for record in records:
                try:
                    shop.handle(record.value)
                except Exception as problem:
                    letters.send(record, problem).result()  # before the offset is committed, or it could be lost
            consumer.commit()


def main() -> None:
    with a_cluster(*(NewTopic(name, partitions=1) for name in ("orders", "orders-retry", "orders-dead"))) as bootstrap:
        with Producer(bootstrap_servers=bootstrap) as producer:
            for order in ORDERS:
                producer.send("orders", order)
        shop = Shop()
        work(bootstrap, shop)
        print(f"handled: {sorted(shop.handled)}")
        with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as reader:
            reader.assign([("orders-dead", 0)])
            for record in reader.poll(timeout=5.0):
                story = dict(record.headers)
                topic, _, offset = origin_of(record)
                why = f"{story['dead-letter.reason'].decode()}: {story['dead-letter.message'].decode()}"
                times = attempts_of(record)
                print(f"dead: {record.value.decode()!r}, {topic} at offset {offset}, {times} times, {why}")


if __name__ == "__main__":
    main()
