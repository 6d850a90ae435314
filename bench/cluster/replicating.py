"""Three replicas, acks=all: how much gets through, how long one request takes, and what the nodes spend on it.

The generator is that of `bench/broker`: requests made beforehand, to the leader of each partition. What was
acknowledged is counted again in the end, at the leaders.
"""

from contextlib import ExitStack
from functools import partial
from itertools import count
from statistics import quantiles

from clusters import Cluster
from load import LARGE, LARGE_RECORDS, SMALL, SMALL_RECORDS, alternating, latencies_at_rate
from report import Row, compared
from windows import run_windows, the_same
from wire_client import WireClient, produce_request

PARTITIONS = 6
IN_FLIGHT = 5
MOST_BYTES = 256 << 20
RATE_TARGET = 1.5
LATENCY_RATE = 100
SIZES = (("64 x 1 KB", LARGE, LARGE_RECORDS), ("10 x 100 B", SMALL, SMALL_RECORDS))

_numbers = count()


def warm_up(clusters: list[Cluster], seconds: float) -> None:
    for cluster in clusters:
        for _, batch, records in SIZES:
            _produced(cluster, batch, records, seconds / 2)


def measure_replication(clusters: list[Cluster], rounds: int, seconds: float) -> list[Row]:
    rows = []
    for size, batch, records in SIZES:
        cpu: dict[str, list[float]] = {cluster.name: [] for cluster in clusters}
        runs = [partial(_rate, cluster, batch, records, seconds, cpu[cluster.name]) for cluster in clusters]
        found = alternating(rounds, [*runs])
        rates = dict(zip([cluster.name for cluster in clusters], found, strict=True))
        what = f"acks=all, 3 replicas, {size}, {PARTITIONS} partitions"
        show = partial(_shown, batch_bytes=len(batch), records=records)
        rows.append(compared(what, rates, show, at_least=RATE_TARGET))
        rows.append(compared("  processor time of all nodes, a GB", cpu, lambda s: f"{s:.1f} s", at_most=1.0))
    return rows + _response_times(clusters, rounds)


def _rate(cluster: Cluster, batch: bytearray, records: int, seconds: float, cpu: list[float]) -> float:
    """Requests a second; what the nodes spent on a gigabyte goes into `cpu`."""
    before_s = cluster.cpu_s()
    answered, took_s = _produced(cluster, batch, records, seconds)
    cpu.append((cluster.cpu_s() - before_s) / (answered * len(batch) / 1e9))
    return answered / took_s


def _shown(rate: float, batch_bytes: int, records: int) -> str:
    return f"{rate * batch_bytes / 1e6:.1f} MB/s, {rate * records / 1000:.0f} k/s"


def _response_times(clusters: list[Cluster], rounds: int) -> list[Row]:
    medians: dict[str, list[float]] = {cluster.name: [] for cluster in clusters}
    worst: dict[str, list[float]] = {cluster.name: [] for cluster in clusters}
    for cluster in clusters:
        cluster.create_topic("answered", 1)
    for _ in range(rounds):
        for cluster in clusters:
            (leader,) = cluster.leaders_that_answer("answered")
            with WireClient(cluster.addresses[leader]) as client:
                request = produce_request("answered", bytes(SMALL), -1)
                times_s = latencies_at_rate(client.socket, request, 2.0, LATENCY_RATE)
            cuts = quantiles(times_s, n=100)
            medians[cluster.name].append(cuts[49])
            worst[cluster.name].append(cuts[98])
    what = f"acks=all, 3 replicas, {LATENCY_RATE} requests a second"
    return [
        compared(f"{what}: p50", medians, lambda s: f"{s * 1000:.2f} ms", at_most=1.0),
        compared(f"{what}: p99", worst, lambda s: f"{s * 1000:.2f} ms", at_most=1.0),
    ]


def _produced(cluster: Cluster, batch: bytearray, records: int, seconds: float) -> tuple[int, float]:
    """A topic of its own. Raises unless every acknowledged record is there, and no other."""
    topic = f"replicated-{next(_numbers)}"
    cluster.create_topic(topic, PARTITIONS)
    leaders = cluster.leaders_that_answer(topic)
    requests = [produce_request(topic, bytes(batch), -1, index) for index in range(PARTITIONS)]
    with ExitStack() as opened:
        clients = [opened.enter_context(WireClient(cluster.addresses[leader])) for leader in leaders]
        sockets = [client.socket for client in clients]
        most = MOST_BYTES // len(batch)
        answered, took_s = run_windows(sockets, the_same(requests, IN_FLIGHT), IN_FLIGHT, seconds, most)
        arrived = sum(client.end_offset(topic, index) for index, client in enumerate(clients))
    cluster.delete_topic(topic)
    if arrived != (answered + 1) * records:  # the first request told the size of the answers
        raise RuntimeError(f"{(answered + 1) * records} records were acknowledged, and {arrived} are there")
    return answered, took_s
