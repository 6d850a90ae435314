"""Copying what is there already: to a node that was away, and to one that is given more replicas."""

import time

from clusters import NODE_IDS, Cluster, until
from load import LARGE, LARGE_RECORDS
from report import Row, compared
from wire_client import WireClient, produce_request

from ottla import Admin, TopicPartition

MEGABYTES = 200
COPY_TARGET = 1.5


def measure_catching_up(clusters: list[Cluster], rounds: int) -> list[Row]:
    """From the start of the node's process until it is in the ISR again, having missed a few hundred megabytes.

    So it has the start of the process in it, which for Kafka is a good part of it.
    """
    found: dict[str, list[float]] = {cluster.name: [] for cluster in clusters}
    for number in range(rounds):
        for cluster in clusters:
            topic = f"missed-{number}"
            cluster.create_topic(topic, 1)
            leader = cluster.described(topic).partitions[0].leader
            away = next(node_id for node_id in NODE_IDS if node_id != leader)
            cluster.stop(away)
            _fill(cluster, topic, 0, leader)
            began_s = time.monotonic()
            cluster.start(away)
            cluster.wait_until_in_sync(topic)
            found[cluster.name].append(MEGABYTES / (time.monotonic() - began_s))
            cluster.delete_topic(topic)
    return [compared("catching up after a node's return", found, lambda rate: f"{rate:.0f} MB/s", at_least=COPY_TARGET)]


def measure_reassignment(clusters: list[Cluster], rounds: int) -> list[Row]:
    """Partitions with one replica get another, on a node that has none of it."""
    found: dict[str, list[float]] = {cluster.name: [] for cluster in clusters}
    one, other, _ = NODE_IDS
    for number in range(rounds):
        for cluster in clusters:
            topic = f"moved-{number}"
            cluster.create_topic(topic, 2, {0: [one], 1: [one]})
            for index in (0, 1):
                _fill(cluster, topic, index, one, MEGABYTES // 2)
            with Admin(bootstrap_servers=cluster.bootstrap) as admin:
                wanted = {TopicPartition(topic, index): [other] for index in (0, 1)}
                began_s = time.monotonic()
                admin.alter_partition_reassignments(wanted).raise_first()
                until(lambda admin=admin: not admin.list_partition_reassignments(), f"{topic} is moved", 0.02)
                found[cluster.name].append(MEGABYTES / (time.monotonic() - began_s))
            _check(cluster, topic, other)
            cluster.delete_topic(topic)
    return [compared("reassignment to another node", found, lambda rate: f"{rate:.0f} MB/s", at_least=COPY_TARGET)]


def _check(cluster: Cluster, topic: str, leader: int) -> None:
    """That all of it is there now."""
    until(lambda: cluster.leaders_that_answer(topic) == [leader, leader], f"node {leader} leads {topic}")
    with WireClient(cluster.addresses[leader]) as client:
        there = sum(client.end_offset(topic, index) for index in (0, 1))
    batches = 2 * (MEGABYTES // 2 * 1_000_000 // len(LARGE))
    if there != batches * LARGE_RECORDS:
        raise RuntimeError(f"{batches * LARGE_RECORDS} records were moved, and {there} are there")


def _fill(cluster: Cluster, topic: str, partition: int, leader: int, megabytes: int = MEGABYTES) -> None:
    """With acks=1, and a few requests ahead: how long it takes is not measured."""
    request = produce_request(topic, bytes(LARGE), 1, partition)
    ahead = 10
    with WireClient(cluster.addresses[leader]) as client:
        for number in range(megabytes * 1_000_000 // len(LARGE)):
            client.socket.sendall(request)
            if number >= ahead:
                client.read_frame()
        for _ in range(ahead):
            client.read_frame()
