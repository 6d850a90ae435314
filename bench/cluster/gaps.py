"""How long clients wait when a node goes: the longest time between two acknowledgements of one partition.

A producer of ours, idempotent and with acks=all, sends a record to each watched partition every few milliseconds, and
never waits for one of them before it sends the next. The gap is that of the partition that waited longest, so a
partition that nobody leads is seen even while the others go on. Where the active controller dies alone, partitions of
other leaders are watched: with acks=all they wait for the replica that is gone, until it is out of the ISR.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Lock, Thread
from typing import Any

from clusters import NODE_IDS, Cluster, until
from report import Row, compared

from ottla import Producer
from ottla.errors import KafkaError

GAP_TARGET = 0.5
FEW, MANY = 12, 1000
WATCHED = 12
LEADER, CONTROLLER, BOTH = "a leader", "the active controller", "a node that is both"
_PAUSE_S = 0.02
_BEFORE_S = 2.0
_AFTER_S = 2.0
_MOST_WAITING = 400


class Watch:
    """Writes to partitions of a topic until it is told to stop, and notes when each was last acknowledged."""

    def __init__(self, bootstrap: str, topic: str, partitions: list[int]) -> None:
        self._topic = topic
        self._acknowledged_s = dict.fromkeys(partitions, 0.0)
        self._longest_s = dict.fromkeys(partitions, 0.0)
        self._waiting = dict.fromkeys(partitions, 0)
        self.failed = 0
        self._lock = Lock()
        self._over = Event()
        self._producer = Producer(
            bootstrap_servers=bootstrap, acks="all", enable_idempotence=True, delivery_timeout_ms=120_000
        )
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._over.wait(_PAUSE_S):
            for partition, waiting in self._waiting.items():
                if waiting < _MOST_WAITING // len(self._waiting):
                    with self._lock:
                        self._waiting[partition] += 1
                    self._producer.send(self._topic, b"x", partition=partition, on_delivery=self._noting(partition))

    def _noting(self, partition: int) -> Callable[[Any], None]:
        def note(delivery: Any) -> None:
            now_s = time.monotonic()
            with self._lock:
                self._waiting[partition] -= 1
                if delivery.exception() is not None:
                    self.failed += 1
                    return
                last_s = self._acknowledged_s[partition]
                if last_s:
                    self._longest_s[partition] = max(self._longest_s[partition], now_s - last_s)
                self._acknowledged_s[partition] = now_s

        return note

    def wait_until_acknowledged(self) -> None:
        """Of every partition, a record that was sent after now."""
        since_s = time.monotonic() + _PAUSE_S
        until(lambda: min(self._acknowledged_s.values()) > since_s, "every partition is written to", 0.01)

    def forget(self) -> None:
        with self._lock:
            self._longest_s = dict.fromkeys(self._longest_s, 0.0)

    def longest_s(self) -> float:
        return max(self._longest_s.values())

    def close(self) -> None:
        self._over.set()
        self._thread.join()
        with suppress(KafkaError):
            self._producer.close()


def measure_gaps(clusters: list[Cluster], rounds: int, partitions: int) -> list[Row]:
    """One and the same crash for both clusters, in turns; nodes that were killed come back in between."""
    rows = []
    topic = f"watched-{partitions}"
    for cluster in clusters:
        cluster.create_topic(topic, partitions)
    for who in (LEADER, CONTROLLER, BOTH):
        found: dict[str, list[float]] = {cluster.name: [] for cluster in clusters}
        for _ in range(rounds):
            for cluster in clusters:
                found[cluster.name].append(_killed(cluster, topic, who))
        what = f"kill -9 of {who}, {partitions:,} partitions: longest gap"
        rows.append(compared(what, found, lambda s: f"{s:.2f} s", at_most=GAP_TARGET))
    for cluster in clusters:
        cluster.delete_topic(topic)
    return rows


def measure_rolling(clusters: list[Cluster], rounds: int) -> list[Row]:
    """Every node is stopped and started once; each time all replicas are in sync before the next."""
    topic = "rolled"
    found: dict[str, list[float]] = {cluster.name: [] for cluster in clusters}
    for cluster in clusters:
        cluster.create_topic(topic, WATCHED)
    for _ in range(rounds):
        for cluster in clusters:
            watch = Watch(cluster.bootstrap, topic, list(range(WATCHED)))
            try:
                watch.wait_until_acknowledged()
                watch.forget()
                for node_id in NODE_IDS:
                    cluster.stop(node_id)
                    watch.wait_until_acknowledged()
                    cluster.start(node_id)
                    cluster.wait_until_in_sync(topic)
                found[cluster.name].append(watch.longest_s())
                if watch.failed:
                    raise RuntimeError(f"{watch.failed} records failed during the restart of {cluster.name}")
            finally:
                watch.close()
    for cluster in clusters:
        cluster.delete_topic(topic)
    return [compared("rolling restart: longest gap", found, lambda s: f"{s:.2f} s", at_most=GAP_TARGET)]


def _killed(cluster: Cluster, topic: str, who: str) -> float:
    cluster.lead_by_preference()
    active = cluster.active_controller()
    node_id = active if who != LEADER else next(one for one in NODE_IDS if one != active)
    leads = who != CONTROLLER
    led = [one.partition for one in cluster.described(topic).partitions if (one.leader == node_id) == leads]
    watch = Watch(cluster.bootstrap, topic, led[:WATCHED])
    try:
        watch.wait_until_acknowledged()
        time.sleep(_BEFORE_S)
        watch.forget()
        cluster.kill(node_id)
        watch.wait_until_acknowledged()
        time.sleep(_AFTER_S)
        longest_s = watch.longest_s()
    finally:
        watch.close()
    cluster.start(node_id)
    cluster.wait_until_in_sync(topic)
    return longest_s
