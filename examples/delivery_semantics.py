"""At most once, at least once and exactly once, side by side under the same crashes.

Three workers copy 1,000 orders to a topic of their own, and crash three times on the way: after the record was taken
and before the work is done. What is in their topics in the end is what their way of committing promises.
"""

from collections import Counter

from cluster import a_cluster
from ottla import Consumer, NewTopic, Producer, TopicPartition

ORDERS = 1_000
CRASH_AT = {137, 500, 777}
"""The worker crashes when it meets one of these for the first time."""


class Crash(Exception):
    """Stands for a process that is killed."""


class Luck:
    """Crashes once at each of the places."""

    def __init__(self) -> None:
        self._left = set(CRASH_AT)

    def try_it(self, order: int) -> None:
        if order in self._left:
            self._left.remove(order)
            raise Crash


def at_most_once(consumer: Consumer, producer: Producer, luck: Luck) -> None:
    """Commits, then works: what is in hand at a crash is lost."""
    while records := consumer.poll(timeout=5.0, max_records=50):
        consumer.commit()
        for record in records:
            luck.try_it(int(record.value))
            producer.send("at-most-once", record.value)
        producer.flush()


def at_least_once(consumer: Consumer, producer: Producer, luck: Luck) -> None:
    """Works, then commits: what is in hand at a crash is done again."""
    while records := consumer.poll(timeout=5.0, max_records=50):
        for record in records:
            producer.send("at-least-once", record.value)
            luck.try_it(int(record.value))
        producer.flush()
        consumer.commit()


def exactly_once(consumer: Consumer, producer: Producer, luck: Luck) -> None:
    """Works and commits in one transaction: a crash undoes both."""
    while records := consumer.poll(timeout=5.0, max_records=50):
        with producer.transaction():
            for record in records:
                producer.send("exactly-once", record.value)
                luck.try_it(int(record.value))
            read = {TopicPartition(record.topic, record.partition): record.offset + 1 for record in records}
            producer.send_offsets(read, consumer.group_metadata())


def run(bootstrap: str, worker: str) -> None:
    """Starts the worker again whenever it has crashed."""
    luck = Luck()
    work = {"at-most-once": at_most_once, "at-least-once": at_least_once, "exactly-once": exactly_once}[worker]
    transactional = {"transactional_id": worker} if worker == "exactly-once" else {}
    while True:
        consumer = Consumer(
            bootstrap_servers=bootstrap, group_id=worker, enable_auto_commit=False, auto_offset_reset="earliest"
        )
        with consumer, Producer(bootstrap_servers=bootstrap, **transactional) as producer:
            consumer.subscribe(["orders"])
            try:
                work(consumer, producer, luck)
                return
            except Crash:
                continue


def count(bootstrap: str, topic: str) -> Counter[int]:
    """How often each order is in a topic, of what is committed."""
    with Consumer(
        bootstrap_servers=bootstrap, auto_offset_reset="earliest", isolation_level="read_committed"
    ) as consumer:
        consumer.assign([(topic, 0)])
        seen: Counter[int] = Counter()
        while records := consumer.poll(timeout=5.0):
            seen.update(int(record.value) for record in records)
        return seen


def main() -> None:
    names = ("at-most-once", "at-least-once", "exactly-once")
    with a_cluster(*(NewTopic(name, partitions=1) for name in ("orders", *names))) as bootstrap:
        with Producer(bootstrap_servers=bootstrap) as producer:
            for order in range(ORDERS):
                producer.send("orders", b"%d" % order)
        print(f"{'':15} {'lost':>5} {'twice':>6}")
        for name in names:
            run(bootstrap, name)
            seen = count(bootstrap, name)
            twice = sum(times > 1 for times in seen.values())
            print(f"{name:15} {ORDERS - len(seen):5} {twice:6}")


if __name__ == "__main__":
    main()
