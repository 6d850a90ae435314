"""`ottla demo node`: a million records through a node that is killed in the middle, and read back.

It is a tour for a newcomer: a node is started on a free port, our own clients write to it and read from it, and the
screen shows how far it is, how fast, and how much memory the node takes. Half-way the node is killed
as a power cut would, and started again. In the end every record that was acknowledged must be there, once.

    --records N     how many records (default 1,000,000)
"""

import sys
import time
from typing import TYPE_CHECKING

from ottla.testing.node import RunningNode

if TYPE_CHECKING:
    from ottla.client.producer.append import Delivery

TOPIC = "orders"
PARTITIONS = 4
RECORDS = 1_000_000
SHOW_EVERY_S = 0.5
GIVE_UP_AFTER_S = 120.0


def main(arguments: list[str]) -> int:
    if arguments in (["-h"], ["--help"]):
        print(__doc__)
        return 0
    records = _wanted(arguments)
    if records is None:
        print(f"ottla demo node: what is {' '.join(arguments)}? Only --records N is known", file=sys.stderr)
        return 2
    step("Start", "a broker and controller in one process, on a free port")
    started = time.perf_counter()
    with RunningNode() as node:
        tell(f"ready at {node.bootstrap} in {time.perf_counter() - started:.2f} s, {_memory(node)} of memory")
        create(node)
        acknowledged = write(node, records)
        is_well = read_back(node, acknowledged)
        step("Stop", "as SIGTERM does")
        node.stop()
        tell("its logs are flushed, and a marker says so to the next start")
    print("\nNext: `ottla start`; `ottla demo` shows a Spark pipeline; README.md has the tour.")
    return 0 if is_well else 1


def _wanted(arguments: list[str]) -> int | None:
    match arguments:
        case []:
            return RECORDS
        case ["--records", number] if number.isdecimal() and int(number):
            return int(number)
    return None


def create(node: RunningNode) -> None:
    from ottla.admin import NewTopic
    from ottla.client.blocking.admin import Admin

    step("Create", f"the topic {TOPIC} with {PARTITIONS} partitions")
    with Admin(bootstrap_servers=node.bootstrap) as admin:
        admin.create_topics([NewTopic(TOPIC, partitions=PARTITIONS)]).raise_first()
    tell("done")


def write(node: RunningNode, records: int) -> bytearray:
    """Returns a byte for each record: whether the node has acknowledged it."""
    from logging import ERROR, getLogger

    from ottla.client.blocking.producer import Producer

    step("Write", f"{records:,} records, and kill -9 the node half-way")
    getLogger("ottla.client").setLevel(ERROR)  # this command says what becomes of the connection
    deliveries: list[Delivery] = []
    with Producer(bootstrap_servers=node.bootstrap, linger_ms=5, reconnect_backoff_max_ms=100) as producer:
        progress = Progress("written", records, node)
        for number in range(records):
            if number == records // 2:
                progress.show(number, is_last=True)
                crash(node, deliveries)
            value = b'%010d {"customer": %d, "total": %d.50, "currency": "EUR"}' % (number, number % 997, number % 500)
            deliveries.append(producer.send(TOPIC, value))
            if number % 1000 == 0:
                progress.maybe_show(number)
        producer.flush(GIVE_UP_AFTER_S)
    acknowledged = bytearray(delivery.exception() is None for delivery in deliveries)
    progress.show(sum(acknowledged), is_last=True)
    if left := records - sum(acknowledged):
        tell(f"{left:,} records were never acknowledged")
    return acknowledged


def crash(node: RunningNode, deliveries: "list[Delivery]") -> None:
    node.kill()
    tell(f"killed, with {sum(delivery.done() for delivery in deliveries):,} records acknowledged")
    started = time.perf_counter()
    node.start()
    tell(f"back after {time.perf_counter() - started:.2f} s; the client continues by itself")


def read_back(node: RunningNode, acknowledged: bytearray) -> bool:
    """Whether every acknowledged record is there, and none twice."""
    from ottla.base.ids import TopicPartition
    from ottla.client.blocking.consumer import Consumer

    wanted = sum(acknowledged)
    step("Read", "everything, from the beginning")
    partitions = [TopicPartition(TOPIC, index) for index in range(PARTITIONS)]
    seen = bytearray(len(acknowledged))
    with Consumer(bootstrap_servers=node.bootstrap, auto_offset_reset="earliest", max_poll_records=10_000) as consumer:
        consumer.assign(partitions)
        total = sum(consumer.end_offsets(partitions).values())
        count, repeated, deadline = 0, 0, time.monotonic() + GIVE_UP_AFTER_S
        progress = Progress("read", total, node)
        while count < total and time.monotonic() < deadline:
            for record in consumer.poll(1.0):
                number = int(record.value[:10])
                repeated += seen[number]
                seen[number] = 1
                count += 1
            progress.maybe_show(count)
        progress.show(count, is_last=True)
    lost = sum(1 for is_promised, is_there in zip(acknowledged, seen, strict=True) if is_promised > is_there)
    tell(f"{wanted:,} records were acknowledged: {lost:,} of them lost, {repeated:,} there twice")
    return lost == 0 and repeated == 0


class Progress:
    """A line that says how far it is. On a terminal it is written over; elsewhere only the last is printed."""

    def __init__(self, done: str, total: int, node: RunningNode) -> None:
        self._done = done
        self._total = total
        self._node = node
        self._began_s = self._shown_s = time.perf_counter()

    def maybe_show(self, count: int) -> None:
        if sys.stdout.isatty() and time.perf_counter() - self._shown_s > SHOW_EVERY_S:
            self.show(count)

    def show(self, count: int, *, is_last: bool = False) -> None:
        self._shown_s = time.perf_counter()
        rate = count / max(self._shown_s - self._began_s, 0.001)
        line = f"    {count:>9,} of {self._total:,} {self._done}, {rate:>9,.0f} a second, node {_memory(self._node)}"
        print(f"\r{line:<90}" if sys.stdout.isatty() else line, end="\n" if is_last else "", flush=True)


def _memory(node: RunningNode) -> str:
    return f"{node.rss_bytes() >> 20} MB"


def step(title: str, what: str) -> None:
    print(f"\n{title}: {what}", flush=True)


def tell(what: str) -> None:
    print(f"    {what}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
