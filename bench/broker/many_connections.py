"""Many small requests over many connections: what a node does for a crowd of producers, and of tailing consumers.

Each rate stands beside the processor time that the node spent on a request, the user's and the kernel's. Kafka uses
every core for its rate and a node of ours one, so the second tells more of what a larger machine would show.
"""

from collections.abc import Callable
from functools import partial
from itertools import count

from contenders import Contender
from load import LARGE, LARGE_RECORDS, SMALL, SMALL_RECORDS, alternating
from report import Row, compared
from tailing import CROWD, fetch_stored, prepare_topics, tail
from windows import connected, run_windows, the_same
from wire_client import WireClient, produce_request

WARM_UP_REQUESTS = 200_000
MOST_BYTES = 256 << 20
CPU_TARGET = 0.6

_numbers = count()


def warm_up_crowd(nodes: list[Contender]) -> None:
    """Before so many requests the JVM is half as fast as after."""
    for node in nodes:
        for connections, in_flight in ((1, 1), (1, 5), (8, 1), (CROWD, 1), (CROWD, 5)):
            _produced(node, "warm-up-crowd", SMALL, connections, in_flight, 60, WARM_UP_REQUESTS // 5)
        _produced(node, "warm-up-crowd", LARGE, CROWD, 1, 2, 1 << 30)
        with WireClient(node.bootstrap) as client:
            client.delete_topic("warm-up-crowd")


def measure_many(nodes: list[Contender], rounds: int, seconds: float) -> list[Row]:
    """The rows of the crowd: produced small and large, fetched small."""
    warm_up_crowd(nodes)
    rows = []
    for size, batch, records in (("10 x 100 B", SMALL, SMALL_RECORDS), ("64 x 1 KB", LARGE, LARGE_RECORDS)):
        for connections in (1, 8, CROWD):
            for in_flight in (1, 5):
                run = partial(_checked, batch=batch, records=records, connections=connections, in_flight=in_flight)
                one = f"{connections} connection{'s' if connections > 1 else ''} x {in_flight}"
                rate_target = _rate_target(batch, connections, in_flight)
                cpu_target = CPU_TARGET if batch is SMALL else None
                what = f"produce {size}, {one}"
                rows += measured(nodes, rounds, what, partial(run, seconds=seconds), rate_target, cpu_target)
    for node in nodes:
        prepare_topics(node)
    for what, run in ((f"fetch 1 KB, {CROWD} connections x 1", fetch_stored), (f"tail, {CROWD} consumers", tail)):
        for node in nodes:
            run(node, 4.0)
        rows += measured(nodes, rounds, what, partial(run, seconds=seconds), 1.0, CPU_TARGET)
    return rows


def _rate_target(batch: bytearray, connections: int, in_flight: int) -> float:
    if connections == 1:
        return 3.0 if in_flight > 1 else 1.0
    return 1.0 if batch is SMALL else 1.2


def measured(
    nodes: list[Contender],
    rounds: int,
    what: str,
    run: Callable[[Contender], tuple[int, float]],
    rate_target: float,
    cpu_target: float | None,
) -> list[Row]:
    """The rate, and below it the processor time of a request."""
    cpu: dict[str, list[float]] = {node.name: [] for node in nodes}

    def one(node: Contender) -> float:
        before = node.cpu_s()
        answered, took = run(node)
        cpu[node.name].append((node.cpu_s() - before) / answered)
        return answered / took

    results = alternating(rounds, [partial(one, node) for node in nodes])
    rates = dict(zip([node.name for node in nodes], results, strict=True))
    return [
        compared(what, rates, lambda rate: f"{rate / 1000:.1f} k/s", at_least=rate_target),
        compared("  processor time of a request", cpu, lambda s: f"{s * 1e6:.1f} us", at_most=cpu_target),
    ]


def _checked(
    node: Contender, *, batch: bytearray, records: int, connections: int, in_flight: int, seconds: float
) -> tuple[int, float]:
    """One round of producing to a topic of its own; raises unless every acknowledged record is there."""
    topic = f"produce-crowd-{next(_numbers)}"  # A topic of the same name may still be on its way out.
    answered, took, end_offset = _produced(
        node, topic, batch, connections, in_flight, seconds, MOST_BYTES // len(batch)
    )
    if end_offset != (answered + 1) * records:  # the first request told the size of the answers
        raise RuntimeError(f"{(answered + 1) * records} records were acknowledged, and {end_offset} are there")
    with WireClient(node.bootstrap) as client:
        client.delete_topic(topic)
    return answered, took


def _produced(
    node: Contender, topic: str, batch: bytearray, connections: int, in_flight: int, seconds: float, most: int
) -> tuple[int, float, int]:
    """Answered requests, the seconds that they took, and where the topic ends afterwards."""
    request = produce_request(topic, bytes(batch), -1)
    with WireClient(node.bootstrap) as client:
        if client.metadata([topic]).topics[0].error_code:
            client.create_topic(topic)
        with connected(node.bootstrap, connections) as opened:
            following = the_same([request] * connections, in_flight)
            answered, took = run_windows(opened, following, in_flight, seconds, most)
        return answered, took, client.end_offset(topic)
