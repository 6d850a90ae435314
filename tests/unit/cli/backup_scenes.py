"""A cluster with all that a back-up has to keep, and what clients see of it."""

import time
from collections.abc import Callable, Sequence
from typing import Any

from ottla import Admin, Consumer, NewTopic, Producer
from ottla.base.ids import TopicPartition
from ottla.cli.main import main
from ottla.client.admin.access.acls import AclBinding, AclResourceType
from ottla.client.admin.access.quotas import QuotaEntity
from ottla.client.admin.access.scram import ScramMechanism, ScramUpsertion
from ottla.client.topic_partition import OffsetAndMetadata
from ottla.config.values import Password
from ottla.wire.acls import AclOperation

AUTHORIZED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "log.cleaner.backoff.ms": 100,
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.num.partitions": 1,
}
LONG_AGO_MS = 1_000_000_000_000
Seen = dict[int, list[tuple[Any, ...]]]


def run(*words: str, status: int = 0) -> None:
    found = main(list(words))
    assert found == status, f"exit code {found} of {' '.join(words)}"


def seen(bootstrap: str, topic: str, *, isolation: str = "read_committed") -> Seen:
    """Timestamp, key, value and headers of every record, by partition and in order."""
    settings = {"bootstrap_servers": bootstrap, "isolation_level": isolation, "enable_auto_commit": False}
    with Consumer(auto_offset_reset="earliest", **settings) as consumer:  # type: ignore[arg-type]
        partitions = [TopicPartition(topic, one.partition) for one in consumer.partitions_for(topic)]
        consumer.assign(partitions)
        ends = consumer.end_offsets(partitions)
        found: Seen = {partition.partition: [] for partition in partitions}
        while any(consumer.position(one) < ends[one] for one in partitions):
            for record in consumer.poll(1):
                found[record.partition].append((record.timestamp, record.key, record.value, record.headers))
        return found


def committed(bootstrap: str, group: str) -> dict[TopicPartition, OffsetAndMetadata | None]:
    with Admin(bootstrap_servers=bootstrap) as admin:
        return admin.list_consumer_group_offsets(group)[group]


def next_of_group(bootstrap: str, group: str, topic: str) -> dict[int, tuple[Any, ...] | None]:
    """The record that the group reads next, in each partition where it has a place; None at the end."""
    found: dict[int, tuple[Any, ...] | None] = {}
    with Consumer(bootstrap_servers=bootstrap, enable_auto_commit=False, isolation_level="read_committed") as consumer:
        for at, place in committed(bootstrap, group).items():
            if at.topic != topic or place is None:
                continue
            consumer.assign([at])
            [end] = consumer.end_offsets([at]).values()
            consumer.seek(at, place.offset)
            records: Sequence[Any] = ()
            while not records and consumer.position(at) < end:
                records = consumer.poll(1, 1)
            found[at.partition] = (records[0].timestamp, records[0].key, records[0].value) if records else None
    return found


def until(is_so: Callable[[], bool], what: str, timeout_s: float = 30.0) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not is_so():
        assert time.monotonic() < deadline_s, f"not in time: {what}"
        time.sleep(0.05)


def fill_plain(bootstrap: str, topic: str = "plain", *, first: int = 0, count: int = 600) -> None:
    """Keys or none, values or none, headers, timestamps long ago; small batches of every codec."""
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        with Producer(bootstrap_servers=bootstrap, compression_type=codec, batch_size=2000, linger_ms=5) as producer:
            for number in range(first, first + count // 5):
                producer.send(
                    topic,
                    None if number % 7 == 0 else f"{codec} {number}".encode() * 5,
                    None if number % 3 == 0 else f"key {number % 11}".encode(),
                    partition=number % 3,
                    timestamp_ms=LONG_AGO_MS + number,
                    headers=[("codec", codec.encode()), ("empty", None)] if number % 2 else None,
                )


def fill_transactions(bootstrap: str, topic: str = "paid") -> None:
    """Committed and aborted ones, one after the other and around each other, in the same partitions."""
    settings = {"bootstrap_servers": bootstrap, "transaction_timeout_ms": 60_000}
    with (
        Producer(transactional_id="one", **settings) as one,  # type: ignore[arg-type]
        Producer(transactional_id="two", **settings) as two,  # type: ignore[arg-type]
        Producer(bootstrap_servers=bootstrap) as plain,
    ):
        one.init_transactions()
        two.init_transactions()
        for turn in range(6):
            one.begin()
            two.begin()
            for number in range(5):
                for producer, name in ((one, "one"), (two, "two")):
                    producer.send(topic, f"{name} {turn} {number}".encode(), b"k", partition=number % 2)
                    producer.flush()
                plain.send(topic, f"plain {turn} {number}".encode(), partition=number % 2)
                plain.flush()
            one.commit() if turn % 2 else one.abort()
            two.abort() if turn % 3 else two.commit()


def make_everything(bootstrap: str) -> None:
    """Topics of every kind, with records, groups, rules, quotas and users."""
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topics(
            [
                NewTopic("plain", 3, config={"retention.ms": "-1", "max.message.bytes": "2000000"}),
                NewTopic("paid", 2),
                NewTopic("stamped", 1, config={"message.timestamp.type": "LogAppendTime"}),
                NewTopic("short", 2, config={"retention.ms": "-1"}),
                NewTopic("empty", 2, config={"cleanup.policy": "compact,delete"}),
                NewTopic(
                    "latest",
                    1,
                    config={
                        "cleanup.policy": "compact",
                        "segment.ms": "50",
                        "min.cleanable.dirty.ratio": "0",
                        "delete.retention.ms": "86400000",
                    },
                ),
            ]
        ).raise_first()
        fill_plain(bootstrap)
        fill_transactions(bootstrap)
        fill_compacted(bootstrap)
        with Producer(bootstrap_servers=bootstrap, linger_ms=20) as producer:
            for number in range(50):
                producer.send("stamped", b"%d" % number)
                producer.send("short", b"%d" % number, partition=number % 2, timestamp_ms=LONG_AGO_MS)
        # In the middle of a batch.
        admin.delete_records({TopicPartition("short", 0): 7, TopicPartition("short", 1): 25}).raise_first()
        at = {TopicPartition("plain", 0): 17, TopicPartition("plain", 2): OffsetAndMetadata(40, "noted")}
        admin.alter_consumer_group_offsets("shop", {**at, TopicPartition("short", 0): 11}).raise_first()
        admin.alter_consumer_group_offsets("bank", {TopicPartition("paid", 0): 23, TopicPartition("paid", 1): 9})
        ends = admin.list_offsets({TopicPartition("latest", 0): -1})
        middle = (ends[TopicPartition("latest", 0)].offset or 0) // 2
        admin.alter_consumer_group_offsets("view", {TopicPartition("latest", 0): middle}).raise_first()
        admin.create_acls(
            [
                AclBinding(AclResourceType.TOPIC, "plain", "User:alice", AclOperation.READ),
                AclBinding(AclResourceType.GROUP, "shop", "User:alice", AclOperation.READ, host="10.0.0.1"),
            ]
        ).raise_first()
        admin.alter_client_quotas(
            {
                QuotaEntity.of(user="alice"): {"producer_byte_rate": 1e6},
                QuotaEntity.of(client_id=None): {"consumer_byte_rate": 5e6, "request_percentage": 50.0},
            }
        ).raise_first()
        admin.alter_user_scram_credentials(
            [ScramUpsertion("alice", ScramMechanism.SCRAM_SHA_256, Password("secret"), 5000)]
        ).raise_first()


def fill_compacted(bootstrap: str, topic: str = "latest") -> None:
    """Keys that come again, and tombstones; returns when the cleaner has nothing more to do there."""
    with Producer(bootstrap_servers=bootstrap, batch_size=600) as producer:
        for turn in range(4):
            for number in range(40):
                # A key that comes once in a turn leaves gaps within batches.
                key = f"key {number if number % 3 else f'{turn} {number}'}".encode()
                producer.send(topic, None if number % 10 == 9 else f"{turn} {number}".encode(), key)
            producer.flush()
            time.sleep(0.06)
        producer.send(topic, b"rolls the segment", b"last")

    def is_clean() -> bool:
        keys = [record[1] for record in seen(bootstrap, topic)[0]]
        return len(set(keys)) == len(keys)

    until(is_clean, "the cleaner has been there")


TOPICS = ("plain", "paid", "stamped", "short", "empty", "latest")
