"""`ottla start --cores 2` beside one node of Apache Kafka, both on the same two cores, under a crowd of producers.

A connection writes to one partition of two and goes to the broker that leads it, as clients do. Where the machine has
more cores, the load comes from the others.
"""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import count
from pathlib import Path

from contenders import MAKERS, SETTINGS, Contender, free_ports
from load import LARGE, LARGE_RECORDS, SMALL, SMALL_RECORDS
from many_connections import MOST_BYTES, measured
from report import Row
from windows import run_windows, the_same
from wire_client import TIMEOUT_S, WireClient, produce_request

from ottla.testing.node import RunningNode

CORES = 2
RATE_TARGET = 1.3
CROWDS = (8, 50)
SIZES = (("10 x 100 B", SMALL, SMALL_RECORDS), ("64 x 1 KB", LARGE, LARGE_RECORDS))
ROUND_S = 0.7

_numbers = count()


class NodeOfCores(RunningNode):
    """Stopped in good order: were it killed, the nodes that it watches over would go on."""

    def close(self) -> None:
        if self.is_running:
            self.stop()
        super().close()


class OnCores(Contender):
    """Its processor time is that of all its processes."""

    def cpu_s(self) -> float:
        pids = [self.node.pid, *(int(path.read_text()) for path in self.data.glob("node-*/pid"))]
        return sum(_cpu_s(pid) for pid in pids if pid is not None)


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure_cores(names: list[str], rounds: int, warm_up_s: float) -> list[Row]:
    rows = []
    with _on_two_cores(names) as nodes:
        for node in nodes:
            for _, batch, records in SIZES:
                for connections in CROWDS:
                    ends_s = time.monotonic() + warm_up_s / 4
                    while time.monotonic() < ends_s:  # a round of large batches ends early, by its bytes
                        _checked(node, batch=batch, records=records, connections=connections, seconds=ROUND_S)
        for size, batch, records in SIZES:
            for connections in CROWDS:
                run = partial(_checked, batch=batch, records=records, connections=connections, seconds=ROUND_S)
                what = f"{CORES} cores: produce {size}, {connections} connections x 1"
                rows += measured(nodes, rounds, what, run, RATE_TARGET, None)
    return rows


@contextmanager
def _on_two_cores(names: list[str]) -> Iterator[list[Contender]]:
    """Started. Processes inherit the cores on which they may run: the nodes get two, then the load the others."""
    cores = sorted(os.sched_getaffinity(0))
    with ExitStack() as ends:
        ends.callback(os.sched_setaffinity, 0, cores)
        os.sched_setaffinity(0, cores[:CORES])
        nodes = [_make(name, SETTINGS) for name in names]
        for node in nodes:
            ends.callback(node.node.close)
            node.start_timed()
        os.sched_setaffinity(0, cores[CORES:] or cores)
        yield nodes


def _make(name: str, config: Mapping[str, object]) -> Contender:
    if name != "ottla":
        return MAKERS[name](config)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    (port,) = free_ports(1)
    return OnCores("ottla", NodeOfCores(config=config, port=port, options=("--cores", str(CORES))))


def _checked(node: Contender, *, batch: bytearray, records: int, connections: int, seconds: float) -> tuple[int, float]:
    """One round of producing to a topic of its own; raises unless every acknowledged record is there."""
    topic = f"produce-cores-{next(_numbers)}"
    leaders = _create(node, topic)
    requests = [produce_request(topic, bytes(batch), -1, place % CORES) for place in range(connections)]
    with ExitStack() as opened:
        clients = [opened.enter_context(WireClient(leaders[place % CORES])) for place in range(connections)]
        sockets = [client.socket for client in clients]
        answered, took = run_windows(sockets, the_same(requests, 1), 1, seconds, MOST_BYTES // len(batch))
        arrived = sum(clients[partition].end_offset(topic, partition) for partition in range(CORES))
        clients[0].delete_topic(topic)
    if arrived != (answered + 1) * records:  # the first request told the size of the answers
        raise RuntimeError(f"{(answered + 1) * records} records were acknowledged, and {arrived} are there")
    return answered, took


def _create(node: Contender, topic: str) -> list[str]:
    """The addresses of the partitions' leaders, once they answer as such."""
    ends_s = time.monotonic() + TIMEOUT_S
    with WireClient(node.bootstrap) as client:
        client.create_topics([topic], CORES)
        while True:
            found = client.metadata([topic])
            brokers = {broker.node_id: f"{broker.host}:{broker.port}" for broker in found.brokers}
            partitions = sorted(found.topics[0].partitions, key=lambda partition: partition.partition_index)
            leaders = [brokers[partition.leader_id] for partition in partitions if partition.leader_id in brokers]
            if len(leaders) == CORES and all(_leads(leader, topic, index) for index, leader in enumerate(leaders)):
                return leaders
            if time.monotonic() > ends_s:
                raise RuntimeError(f"topic {topic} has no leaders")
            time.sleep(0.01)


def _leads(address: str, topic: str, partition: int) -> bool:
    with WireClient(address) as client:
        try:
            client.end_offset(topic, partition)
        except RuntimeError:
            return False
    return True
