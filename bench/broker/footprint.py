"""Starting, and memory. Each measurement has nodes of its own."""

import time
from contextlib import ExitStack

from contenders import Contender, contenders
from load import LARGE, LARGE_RECORDS, SMALL, SMALL_RECORDS, fetch, produce
from report import Row, compared, limited
from wire_client import WireClient, fetch_request

from ottla.node.descriptors import raise_descriptor_limit
from ottla.wire.messages import ApiVersionsRequest


def measure_starting(names: list[str], rounds: int) -> list[Row]:
    """On a directory that has been formatted and used before, as after every restart but the first."""
    times: dict[str, list[float]] = {name: [] for name in names}
    idle: dict[str, list[float]] = {name: [] for name in names}
    loaded: dict[str, list[float]] = {name: [] for name in names}
    with contenders(names) as nodes:
        for node in nodes:
            node.start_timed()
            with WireClient(node.bootstrap) as client:
                client.create_topic("some")
            node.node.stop()
        for _ in range(rounds):
            for node in nodes:
                times[node.name].append(node.start_timed())
                time.sleep(1)
                idle[node.name].append(node.rss_mb())
                node.node.stop()
        for node in nodes:
            node.start_timed()
            _load(node)
            loaded[node.name].append(node.peak_rss_mb())
    rows = [
        compared("start to first Metadata answer", times, lambda s: f"{s:.2f} s", at_most=0.1),
        compared("memory, idle", idle, lambda mb: f"{mb:.0f} MB", at_most=0.125),
        compared("memory, peak under load", loaded, lambda mb: f"{mb:.0f} MB", at_most=0.125),
    ]
    if "ottla" in times:
        slowest = max(times["ottla"])
        rows.insert(1, limited("  ours alone, slowest", f"{slowest:.2f} s", slowest, at_most=0.5, unit=" s"))
    return rows


def measure_connections(names: list[str], count: int) -> list[Row]:
    """Connections that have asked for the versions once, and then say nothing."""
    if raise_descriptor_limit() < count + 100:
        raise RuntimeError(f"{count:,} connections need more descriptors than this process may have (ulimit -Hn)")
    found = {}
    with contenders(names) as nodes:
        for node in nodes:
            node.start_timed()
            before = node.rss_mb()
            with ExitStack() as opened:
                for _ in range(count):
                    opened.enter_context(WireClient(node.bootstrap)).ask(ApiVersionsRequest(), 0)
                found[node.name] = max(node.rss_mb() - before, 0.1)
            node.node.kill()
    shown = {name: f"{growth:.0f} MB" for name, growth in found.items()}
    return [
        limited(
            f"memory for {count:,} idle connections",
            shown.get("ottla", "-"),
            found.get("ottla", 0.0),
            at_most=100,
            unit=" MB",
            kafka=shown.get("kafka", "-"),
        )
    ]


def measure_memory(nodes: list[Contender]) -> list[Row]:
    """Of nodes that have just been through all the rest."""
    found = {node.name: [node.rss_mb()] for node in nodes}
    return [compared("memory, after the load above", found, lambda mb: f"{mb:.0f} MB", at_most=0.125)]


def _load(node: Contender) -> None:
    with WireClient(node.bootstrap) as client:
        client.create_topic("load")
        for batch, records in ((SMALL, SMALL_RECORDS), (LARGE, LARGE_RECORDS)):
            produce(node.bootstrap, "load", batch, records, acks=-1, in_flight=5, seconds=3)
        fetch(client.socket, [fetch_request("load", 0, 1 << 20)] * 500)
