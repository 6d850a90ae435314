"""A consumer in a process of its own, so that a group has a member. It says so once it has read and committed."""

import sys

from confluent_kafka import Consumer

POLL_S = 0.1


def main(bootstrap: str, group: str, protocol: str, topic: str) -> None:
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "group.protocol": protocol,
        "client.id": f"member-of-{group}",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    read = 0
    while read < 3:
        record = consumer.poll(POLL_S)
        if record is not None and not record.error():
            read += 1
    consumer.commit(asynchronous=False)
    print("ready", flush=True)
    while True:
        consumer.poll(POLL_S)


if __name__ == "__main__":
    main(*sys.argv[1:])
