"""Cleaning a topic with ten times as many records as keys: how fast, and how long the loop does not answer meanwhile.

The rate is `bench/cleaning.py`'s, the same log cleaned by either: ours as its cleaning process does it, Kafka's as its
log tells. For the stall a node is started on such a log, which becomes a compacted one when the node has come to rest;
a probe asks without pause while its cleaner goes over it. What the machine does to an idle node is shown beside it.
"""

import shutil
import tempfile
import time
from pathlib import Path

from cleaning import MB, PARTITION, clean_here, clean_with_kafka, make_log
from contenders import Contender, contenders
from report import Row, compared, limited
from stalls import Probe
from wire_client import WireClient

from ottla.log.checkpoint import read_offsets
from ottla.log.disk import OsDisk

RECORD_BYTES, BATCH_RECORDS = 1000, 16
LIMIT_MS = 20
WAIT_S = 300.0
CLEANING = {
    "log.cleaner.enable": "true",
    "log.cleaner.backoff.ms": 300,
    "log.cleaner.min.cleanable.ratio": 0,
}


def measure_cleaning(names: list[str], megabytes: int, rounds: int) -> list[Row]:
    rates: dict[str, list[float]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory(prefix="ottla-bench-") as place:
        made = Path(place) / "made"
        make_log(made, size=megabytes * MB, record=RECORD_BYTES, batch=BATCH_RECORDS)
        for number in range(rounds):
            if "kafka" in names:
                rates["kafka"].append(clean_with_kafka(made, Path(place) / f"kafka-{number}"))
                shutil.rmtree(Path(place) / f"kafka-{number}")
            if "ottla" in names:
                copy = shutil.copytree(made, Path(place) / "copy")
                rates["ottla"].append(clean_here(copy))
                shutil.rmtree(copy)
        stalls = {name: _stalls_ms(name, made) for name in names}
    idle = {name: f"{idle:.1f} ms" for name, (idle, _) in stalls.items()}
    busy = {name: f"{busy:.1f} ms" for name, (_, busy) in stalls.items()}
    return [
        compared(f"cleaning {megabytes} MB", rates, lambda rate: f"{rate:.0f} MB/s", at_least=1.0),
        limited(
            "  longest stall of the loop meanwhile",
            busy.get("ottla", "-"),
            stalls.get("ottla", (0.0, 0.0))[1],
            at_most=LIMIT_MS,
            unit=" ms",
            kafka=busy.get("kafka", "-"),
        ),
        Row("  the same, idle (the machine's own)", idle.get("kafka", "-"), idle.get("ottla", "-")),
    ]


def _stalls_ms(name: str, made: Path) -> tuple[float, float]:
    """While nothing happens, and while the log is cleaned."""
    with contenders([name], CLEANING) as (node,):
        node.start_timed()
        with WireClient(node.bootstrap) as client:
            client.create_topic(PARTITION.topic)
        node.node.stop()
        _put(made, node)
        node.start_timed()
        checkpoint = str(node.data / "cleaner-offset-checkpoint")
        with WireClient(node.bootstrap) as client:
            client.wait_for_leaders(PARTITION.topic, 1)
        time.sleep(2)
        with Probe(node.bootstrap) as probe:
            time.sleep(3)
            idle_ms = probe.longest_ms()
        with WireClient(node.bootstrap) as client, Probe(node.bootstrap) as probe:
            client.set_topic_config(PARTITION.topic, cleanup_policy="compact")
            deadline = time.monotonic() + WAIT_S
            while read_offsets(OsDisk(), checkpoint).get(PARTITION, 0) == 0:
                if time.monotonic() > deadline:
                    raise RuntimeError(f"the log has not been cleaned in {WAIT_S:.0f} s")
                time.sleep(0.05)
            return idle_ms, probe.longest_ms()


def _put(made: Path, node: Contender) -> None:
    """The log in the place of the topic's empty one."""
    place = node.data / f"{PARTITION.topic}-{PARTITION.partition}"
    topic_id = (place / "partition.metadata").read_bytes()
    shutil.rmtree(place)
    shutil.copytree(made, place)
    (place / "partition.metadata").write_bytes(topic_id)
    (node.data / "replication-offset-checkpoint").unlink(missing_ok=True)
