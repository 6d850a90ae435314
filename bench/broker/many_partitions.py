"""Thousands of partitions on one node: making them, stopping and starting with them, writing to each, what they weigh.

They come as topics of a hundred, ten in a request: Apache Kafka refuses a request that would write more than 10,000
records to its metadata. Each node goes through all of it before the next one begins.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from contenders import Contender, contenders
from load import SMALL
from report import Row, compared
from wire_client import WireClient

PARTITIONS_A_TOPIC = 100
TOPICS_A_REQUEST = 10
TIMEOUT_S = 300.0

# What is measured: how it is shown, and what ottla's may be of Apache Kafka's at most.
FIGURES: dict[str, tuple[Callable[[float], str], float | None]] = {
    "create": (lambda s: f"{s:.2f} s", 1.0),
    "memory for them": (lambda mb: f"{mb:.0f} MB", None),
    "stop, none written to": (lambda s: f"{s:.2f} s", 1.0),
    "restart until all have leaders": (lambda s: f"{s:.2f} s", 1.0),
    "memory after the restart": (lambda mb: f"{mb:.0f} MB", 0.125),
    "Metadata of all, the first time": (lambda s: f"{s * 1000:.0f} ms", None),
    "a batch to each": (lambda s: f"{s:.2f} s", 1.0),
    "stop, all written to": (lambda s: f"{s:.2f} s", 1.0),
    "restart after that": (lambda s: f"{s:.2f} s", 1.0),
}


def measure_partitions(names: list[str], count: int) -> list[Row]:
    figures: dict[str, dict[str, list[float]]] = {what: {name: [] for name in names} for what in FIGURES}
    for name in names:
        with contenders([name]) as (node,):
            node.node.start_timeout_s = node.node.stop_timeout_s = TIMEOUT_S
            for what, value in _life_of(node, count):
                figures[what][name].append(value)
    return [
        compared(f"{count:,} partitions: {what}", figures[what], show, at_most=bound)
        for what, (show, bound) in FIGURES.items()
    ]


def _life_of(node: Contender, count: int) -> Iterator[tuple[str, float]]:
    topics = [f"many-{number}" for number in range(count // PARTITIONS_A_TOPIC)]
    node.start_timed()
    before_mb = node.rss_mb()
    with WireClient(node.bootstrap) as client:
        with _timed() as took:
            for start in range(0, len(topics), TOPICS_A_REQUEST):
                client.create_topics(topics[start : start + TOPICS_A_REQUEST], PARTITIONS_A_TOPIC)
            _wait_for_leaders(client, topics)
        yield "create", took[0]
    yield "memory for them", max(node.rss_mb() - before_mb, 0.1)
    yield "stop, none written to", _stop(node)
    yield "restart until all have leaders", _restart(node, topics)
    yield "memory after the restart", node.rss_mb()
    with WireClient(node.bootstrap) as client:
        with _timed() as took:
            client.metadata(None)
        yield "Metadata of all, the first time", took[0]
        with _timed() as took:
            for topic in topics:
                client.produce_to_all(topic, PARTITIONS_A_TOPIC, SMALL)
        yield "a batch to each", took[0]
    yield "stop, all written to", _stop(node)
    yield "restart after that", _restart(node, topics)
    node.node.kill()


def _stop(node: Contender) -> float:
    with _timed() as took:
        node.node.stop()
    return took[0]


def _restart(node: Contender, topics: list[str]) -> float:
    with _timed() as took:
        node.start_timed()
        with WireClient(node.bootstrap) as client:
            _wait_for_leaders(client, topics)
    return took[0]


def _wait_for_leaders(client: WireClient, topics: list[str]) -> None:
    for topic in topics:
        client.wait_for_leaders(topic, PARTITIONS_A_TOPIC)


@contextmanager
def _timed() -> Iterator[list[float]]:
    """The seconds that the block took, in a list that is filled at its end."""
    took: list[float] = []
    started = time.perf_counter()
    yield took
    took.append(time.perf_counter() - started)
