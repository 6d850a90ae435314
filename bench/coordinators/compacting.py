"""Cleaning a topic with ten times as many records as keys: how fast, and how long the loop does not answer meanwhile.

The rate is `bench/cleaning.py`'s, the same log cleaned by either: ours as its cleaning process does it, Kafka's as its
log tells. For the stall a node is started on such a log, its cleaner goes over it, and a probe asks without pause.
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
    "log.cleanup.policy": "compact",
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
        stalls = {name: _stall_ms(name, made) for name in names}
    shown = {name: f"{stall:.1f} ms" for name, stall in stalls.items()}
    return [
        compared(f"cleaning {megabytes} MB", rates, lambda rate: f"{rate:.0f} MB/s", at_least=1.0),
        limited(
            "  longest stall of the loop meanwhile",
            shown.get("ottla", "-"),
            stalls.get("ottla", 0.0),
            at_most=LIMIT_MS,
            unit=" ms",
            kafka=shown.get("kafka", "-"),
        ),
    ]


def _stall_ms(name: str, made: Path) -> float:
    with contenders([name], CLEANING) as (node,):
        node.start_timed()
        with WireClient(node.bootstrap) as client:
            client.create_topic(PARTITION.topic)
        node.node.stop()
        _put(made, node)
        node.start_timed()
        checkpoint = str(node.data / "cleaner-offset-checkpoint")
        with Probe(node.bootstrap) as probe:
            deadline = time.monotonic() + WAIT_S
            while read_offsets(OsDisk(), checkpoint).get(PARTITION, 0) == 0:
                if time.monotonic() > deadline:
                    raise RuntimeError(f"the log has not been cleaned in {WAIT_S:.0f} s")
                time.sleep(0.05)
            return probe.longest_ms()


def _put(made: Path, node: Contender) -> None:
    """The log in the place of the topic's empty one."""
    place = node.data / f"{PARTITION.topic}-{PARTITION.partition}"
    topic_id = (place / "partition.metadata").read_bytes()
    shutil.rmtree(place)
    shutil.copytree(made, place)
    (place / "partition.metadata").write_bytes(topic_id)
    (node.data / "replication-offset-checkpoint").unlink(missing_ok=True)
