"""One consumer in a process of its own: `python group_reader.py KIND BOOTSTRAP GROUP TOPIC STRATEGY`.

KIND is ottla or confluent. STRATEGY is an assignor of classic groups, or `consumer` for the new protocol. Every record
that it reads is a line on standard output: partition, offset, value. SIGTERM has it leave in good order.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SESSION_TIMEOUT_MS = 6_000
_is_over = False


def main(kind: str, bootstrap: str, group: str, topic: str, strategy: str) -> None:
    signal.signal(signal.SIGTERM, _end)
    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "auto.commit.interval.ms": 500,
    }
    if strategy == "consumer":
        settings["group.protocol"] = "consumer"
    else:
        settings |= {
            "partition.assignment.strategy": strategy,
            "session.timeout.ms": SESSION_TIMEOUT_MS,
            "heartbeat.interval.ms": 1_000,
        }
    with (_ottla if kind == "ottla" else _confluent)(settings, topic) as records:
        for partition, offset, value in records:
            print(partition, offset, value.decode(), flush=True)


def _end(*_: object) -> None:
    global _is_over
    _is_over = True


Read = tuple[int, int, bytes]


@contextmanager
def _ottla(settings: dict[str, Any], topic: str) -> Iterator[Iterator[Read]]:
    from ottla import Consumer

    with Consumer(settings) as consumer:
        consumer.subscribe([topic])

        def read() -> Iterator[Read]:
            while not _is_over:
                for record in consumer.poll(0.2):
                    yield record.partition, record.offset, record.value

        yield read()


@contextmanager
def _confluent(settings: dict[str, Any], topic: str) -> Iterator[Iterator[Read]]:
    from confluent_kafka import Consumer

    consumer = Consumer(settings)
    consumer.subscribe([topic])

    def read() -> Iterator[Read]:
        while not _is_over:
            record = consumer.poll(0.2)
            if record is not None and not record.error():
                yield record.partition(), record.offset(), record.value()

    yield read()
    consumer.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
