"""The longest time our loop does not answer while there is work for the disk.

A second connection, in a process of its own, asks for ApiVersions again and again; the longest it waited is the longest
stall, or what the machine did to the two processes: the same probe on an idle node says how much that is.
"""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from contenders import Contender, contenders
from load import LARGE, LARGE_RECORDS, fetch, produce
from lookup_stalls import (
    cold_indexes,
    cold_lookups,
    fill_expanding,
    fill_segments,
    lookups_that_decompress,
    many_members,
)
from report import Row, limited
from throughput import drop_from_page_cache, fill
from wire_client import WireClient

LIMIT_MS = 20
SEGMENT_BYTES = 1 << 20

Work = Callable[[Contender], float]
"""Returns the longest stall, in milliseconds."""


class Probe:
    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def __enter__(self) -> "Probe":
        script = Path(__file__).with_name("stall_probe.py")
        self._process = subprocess.Popen(
            [sys.executable, str(script), self.bootstrap], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self._process.stdout.readline()
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()

    def longest_ms(self) -> float:
        """Ends the probe."""
        return float(self._process.communicate("stop\n", timeout=60)[0].split()[-1])


def measure_stalls(names: list[str]) -> list[Row]:
    results: dict[str, dict[str, float]] = {}
    for name in names:
        with contenders([name], {"log.initial.task.delay.ms": 500}) as (node,):
            node.start_timed()
            for what, work in WORK.items():
                results.setdefault(what, {})[name] = work(node)
    rows = []
    for what, found in results.items():
        shown = {name: f"{value:.1f} ms" for name, value in found.items()}
        ours = found.get("ottla", 0.0)
        rows.append(
            limited(
                f"longest stall, {what}",
                shown.get("ottla", "-"),
                ours,
                at_most=LIMIT_MS,
                unit=" ms",
                kafka=shown.get("kafka", "-"),
            )
        )
    return rows


def idle(node: Contender) -> float:
    with Probe(node.bootstrap) as probe:
        time.sleep(3)
        return probe.longest_ms()


def cold_read(node: Contender) -> float:
    requests = fill(node, "cold", 512 << 20)
    drop_from_page_cache(node.data / "cold-0")
    with Probe(node.bootstrap) as probe, WireClient(node.bootstrap) as client:
        fetch(client.socket, requests)
        return probe.longest_ms()


def retention(node: Contender) -> float:
    """Hundreds of segments to delete, all at once."""
    with WireClient(node.bootstrap) as client:
        client.create_topic("expiring", segment_bytes=str(SEGMENT_BYTES))
        produce(node.bootstrap, "expiring", LARGE, LARGE_RECORDS, acks=1, in_flight=5, seconds=30, most_bytes=300 << 20)
        directory = node.data / "expiring-0"
        segments = len(list(directory.glob("*.log")))
        with Probe(node.bootstrap) as probe:
            client.set_topic_config("expiring", retention_bytes="1")
            _wait(lambda: len(list(directory.glob("*.log"))) < segments // 10)
            return probe.longest_ms()


def creating(node: Contender) -> float:
    """A thousand directories with their files."""
    with Probe(node.bootstrap) as probe, WireClient(node.bootstrap) as client:
        client.create_topic("many", 1000)
        return probe.longest_ms()


def recovery(node: Contender) -> float:
    """Killed with half a gigabyte that no recovery point covers; from the first answer of the node that recovers it."""
    with WireClient(node.bootstrap) as client:
        client.create_topic("unflushed")
    produce(node.bootstrap, "unflushed", LARGE, LARGE_RECORDS, acks=1, in_flight=5, seconds=30, most_bytes=512 << 20)
    node.node.kill()
    node.node.start()
    with Probe(node.bootstrap) as probe, WireClient(node.bootstrap) as client:
        client.wait_for_leaders("unflushed", 1)
        time.sleep(2)
        return probe.longest_ms()


def rolling(node: Contender) -> float:
    """Segments that are full are flushed, hundreds of them."""
    with Probe(node.bootstrap) as probe:
        fill_segments(node)
        return probe.longest_ms()


def probed(work: Callable[[Contender], None], prepare: Callable[[Contender], None] | None = None) -> Work:
    def measure(node: Contender) -> float:
        if prepare is not None:
            prepare(node)
        with Probe(node.bootstrap) as probe:
            work(node)
            return probe.longest_ms()

    return measure


def _wait(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not done():
        if time.monotonic() > deadline:
            raise RuntimeError("what was waited for did not happen in 30 s")
        time.sleep(0.05)


WORK: dict[str, Work] = {
    "idle (the machine's own)": idle,
    "cold read of 512 MB": cold_read,
    "retention of 300 segments": retention,
    "creation of 1,000 partitions": creating,
    "300 segments that become full": rolling,
    "reads with cold indexes": probed(cold_indexes),
    "lookups by time in 300 cold segments": probed(cold_lookups),
    "lookups by time that decompress": probed(lookups_that_decompress, fill_expanding),
    "gzip of 45,000 members": probed(many_members),
    "recovery of 512 MB": recovery,
}
