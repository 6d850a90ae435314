"""Produce and fetch as fast as they go."""

import os
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path
from statistics import median

from contenders import Contender
from load import LARGE, LARGE_RECORDS, SMALL, SMALL_RECORDS, alternating, fetch, produce, run_window
from report import Row, compared, limited
from wire_client import WireClient, fetch_request, produce_request

MB = 1 << 20
STORED_BYTES = 256 * MB
FETCH_BYTES = MB


def warm_up(nodes: list[Contender], seconds: float) -> None:
    """The JVM compiles what it runs often; it is given the time to."""
    for node in nodes:
        with WireClient(node.bootstrap) as client:
            client.create_topic("warm-up")
            for _ in range(4):
                for batch, records, in_flight in ((SMALL, SMALL_RECORDS, 5), (LARGE, LARGE_RECORDS, 1)):
                    produce(
                        node.bootstrap, "warm-up", batch, records, acks=-1, in_flight=in_flight, seconds=seconds / 12
                    )
                requests = [fetch_request("warm-up", 0, FETCH_BYTES)] * 50
                fetch(client.socket, requests)
            client.delete_topic("warm-up")


def measure_produce(nodes: list[Contender], rounds: int, seconds: float) -> list[Row]:
    return [
        row
        for size in (("10 x 100 B", SMALL, SMALL_RECORDS), ("64 x 1 KB", LARGE, LARGE_RECORDS))
        for in_flight in (1, 5)
        for acks in (1, -1)
        for row in _measure_produce(nodes, rounds, seconds, *size, in_flight, acks)
    ]


def _measure_produce(
    nodes: list[Contender],
    rounds: int,
    seconds: float,
    size: str,
    batch: bytearray,
    records: int,
    in_flight: int,
    acks: int,
) -> list[Row]:
    """The rate, and the processor time of the node for a request, which a busy machine hardly changes."""
    topic = f"produce-{len(batch)}-{in_flight}-{acks}"
    for node in nodes:
        with WireClient(node.bootstrap) as client:
            client.create_topic(topic)

    cpu: dict[str, list[float]] = {node.name: [] for node in nodes}

    def one(node: Contender) -> float:
        cpu_s, end = node.cpu_s(), end_of(node)
        rate = produce(node.bootstrap, topic, batch, records, acks=acks, in_flight=in_flight, seconds=seconds)
        cpu[node.name].append((node.cpu_s() - cpu_s) * records / (end_of(node) - end))
        return rate

    def end_of(node: Contender) -> int:
        with WireClient(node.bootstrap) as client:
            return client.end_offset(topic)

    with BareAppend(len(produce_request(topic, bytes(batch), acks)), nodes[-1].data) as bare:
        runs = [partial(one, node) for node in nodes]
        results = alternating(rounds, [*runs, lambda: bare.rate(in_flight, seconds)])
    for node in nodes:
        with WireClient(node.bootstrap) as client:
            client.delete_topic(topic)
    rate = compared(
        f"produce {size}, {in_flight} in flight, acks={'all' if acks < 0 else acks}",
        dict(zip([node.name for node in nodes], results, strict=False)),
        lambda rate: f"{rate / 1000:.1f} k/s {rate * len(batch) / 1e6:.0f} MB/s",
        at_least=3.0 if in_flight > 1 else 1.0,
    )
    return [
        rate,
        compared("  processor time of a request", cpu, lambda seconds: f"{seconds * 1e6:.0f} us"),
        Row("  receiving and writing alone", "", f"{median(results[-1]) / 1000:.1f} k/s"),
    ]


class BareAppend:
    """A process that receives requests, writes them to a file and replies, and does nothing else."""

    def __init__(self, size: int, directory: Path) -> None:
        self.size = size
        self.directory = directory

    def __enter__(self) -> "BareAppend":
        script = Path(__file__).with_name("bare_append.py")
        self.process = subprocess.Popen(
            [sys.executable, str(script), str(self.size), str(self.directory)], stdout=subprocess.PIPE
        )
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    def rate(self, in_flight: int, seconds: float) -> float:
        with socket.create_connection(("127.0.0.1", self.port), 60) as sock:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            answered, took = run_window(sock, bytes(self.size), in_flight, seconds, (256 << 20) // self.size)
        return answered / took


def fill(node: Contender, topic: str, total: int = STORED_BYTES) -> list[bytes]:
    """A topic with so many bytes, and the requests that read all of it."""
    with WireClient(node.bootstrap) as client:
        client.create_topic(topic)
    while True:
        produce(node.bootstrap, topic, LARGE, LARGE_RECORDS, acks=1, in_flight=4, seconds=60, most_bytes=total)
        with WireClient(node.bootstrap) as client:
            end = client.end_offset(topic)
        if end * len(LARGE) // LARGE_RECORDS >= total * 0.99:
            break
    step = LARGE_RECORDS * (FETCH_BYTES // len(LARGE))
    return [fetch_request(topic, offset, FETCH_BYTES) for offset in range(0, end - step, step)]


def drop_from_page_cache(directory: Path) -> None:
    for file in directory.glob("*.log"):
        fd = os.open(file, os.O_RDWR)
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)


def measure_fetch(nodes: list[Contender], rounds: int) -> list[Row]:
    topic = "fetch"
    requests = {node.name: fill(node, topic) for node in nodes}
    rows = []
    for is_cold in (False, True):
        sources = [node.data / f"{topic}-0" for node in nodes]

        def one(node: Contender, source: Path, is_cold: bool) -> float:
            if is_cold:
                drop_from_page_cache(source)
            with WireClient(node.bootstrap) as client:
                received, took = fetch(client.socket, requests[node.name])
            if received < len(requests[node.name]) * FETCH_BYTES * 0.8:
                raise RuntimeError(f"{received} bytes for {len(requests[node.name])} fetches of 1 MB")
            return received / took

        runs = [partial(one, node, source, is_cold) for node, source in zip(nodes, sources, strict=True)]
        with BareSendfile(sources[-1]) as bare:
            results = alternating(rounds, [*runs, partial(bare.rate, is_cold)])
        by_name = dict(zip([node.name for node in nodes], results, strict=False))
        kind = "cold" if is_cold else "hot"
        rows.append(compared(f"fetch 1 MB, {kind}", by_name, _gigabytes, at_least=1.5))
        share = sorted(ours / limit for ours, limit in zip(results[len(nodes) - 1], results[-1], strict=True))
        middle = share[len(share) // 2]
        text = f"{middle:.2f} of {_gigabytes(sorted(results[-1])[rounds // 2])}"
        rows.append(limited(f"  share of bare sendfile, {kind}", text, middle, at_least=0.6))
    return rows


def _gigabytes(rate: float) -> str:
    return f"{rate / 1e9:.2f} GB/s"


class BareSendfile:
    """A process that sends a megabyte of the file for every byte that it is sent: what no server can exceed."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.file = max(directory.glob("*.log"), key=lambda file: file.stat().st_size)

    def __enter__(self) -> "BareSendfile":
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("bare_sendfile.py")), str(self.file)], stdout=subprocess.PIPE
        )
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    def rate(self, is_cold: bool) -> float:
        if is_cold:
            drop_from_page_cache(self.directory)
        with socket.create_connection(("127.0.0.1", self.port), 60) as sock:
            received, took = fetch(sock, [b"x"] * (self.file.stat().st_size // FETCH_BYTES))
        return received / took
