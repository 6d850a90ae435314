"""A broker of ours and one of Apache Kafka's are replicas of the same partitions, under a controller of either kind."""

from itertools import count
from pathlib import Path

import pytest

from ottla import Admin, Consumer, NewTopic, Producer, TopicPartition
from ottla.admin import ElectionType
from tests.interop.mixed_cluster import APACHE_KAFKA, OURS, MixedCluster, eventually

pytestmark = pytest.mark.interop

KAFKAS, MINE = 2, 3
TOPIC = "orders"
# Led by one each, and followed by the other.
PARTITIONS = [TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 1)]
BATCH = 50


@pytest.mark.parametrize("controller", [APACHE_KAFKA, OURS])
def test_each_kind_of_broker_replicates_from_the_other(tmp_path: Path, controller: str) -> None:
    kinds = {1: controller, KAFKAS: APACHE_KAFKA, MINE: OURS}
    roles = {1: "controller", KAFKAS: "broker", MINE: "broker"}
    numbers = count()
    sent: list[int] = []
    with MixedCluster(tmp_path, kinds, roles) as cluster, Admin(bootstrap_servers=cluster.bootstrap) as admin:

        def isr(partition: TopicPartition) -> set[int]:
            return set(admin.describe_topics([TOPIC])[TOPIC].partitions[partition.partition].in_sync_replicas)

        def leaders() -> list[int | None]:
            return [one.leader for one in admin.describe_topics([TOPIC])[TOPIC].partitions]

        def write(producer: Producer) -> None:
            """To both partitions, in a transaction: its coordinator is one of them, and both write markers."""
            numbers_sent = [next(numbers) for _ in range(BATCH)]
            with producer.transaction():
                for number in numbers_sent:
                    producer.send(TOPIC, b"%d" % number, partition=number % len(PARTITIONS))
            sent.extend(numbers_sent)

        eventually(lambda: len(admin.describe_cluster().nodes) == 2, "both brokers are there")
        admin.create_topics([NewTopic(TOPIC, assignment={0: [KAFKAS, MINE], 1: [MINE, KAFKAS]})]).raise_first()
        eventually(lambda: leaders() == [KAFKAS, MINE], "each leads one partition")
        with Producer(bootstrap_servers=cluster.bootstrap, transactional_id="writer") as producer:
            write(producer)
            for gone, left in ((KAFKAS, MINE), (MINE, KAFKAS)):
                cluster.kill(gone)
                eventually(lambda left=left: leaders() == [left, left], f"node {left} leads both")
                write(producer)
                cluster.start(gone)
                eventually(
                    lambda: all(isr(partition) == {KAFKAS, MINE} for partition in PARTITIONS), "both are in sync"
                )
                write(producer)
            admin.elect_leaders(ElectionType.PREFERRED, PARTITIONS[1:]).raise_first()
            eventually(lambda: leaders() == [KAFKAS, MINE], "each leads its own again")
            write(producer)
        assert read_all(cluster.bootstrap, len(sent)) == sent
        # What either of them alone has.
        for gone, left in ((KAFKAS, MINE), (MINE, KAFKAS)):
            cluster.kill(gone)
            eventually(lambda left=left: leaders() == [left, left], f"node {left} leads both")
            assert read_all(cluster.addresses[left], len(sent)) == sent
            cluster.start(gone)
            eventually(lambda: all(isr(partition) == {KAFKAS, MINE} for partition in PARTITIONS), "both are in sync")


def read_all(bootstrap: str, wanted: int) -> list[int]:
    found: list[int] = []
    with Consumer(bootstrap_servers=bootstrap, isolation_level="read_committed") as consumer:
        consumer.assign(PARTITIONS)
        consumer.seek_to_beginning(*PARTITIONS)

        def read() -> bool:
            found.extend(int(record.value) for record in consumer.poll(0.5))
            return len(found) >= wanted

        eventually(read, f"{wanted} records are read")
        found.extend(int(record.value) for record in consumer.poll(0.5))
    return sorted(found)
