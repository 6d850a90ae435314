"""Makes the golden directories: Apache Kafka runs a workload, and we keep its bytes and what it says of them.

    python -m tests.golden.make_golden [TARGET]

For each name in README.md's first table it writes into TARGET:

    NAME/              the log directory, byte for byte
    NAME.expected/     per partition, every record that a Java consumer reads, and what it reads with read_committed
    NAME.dump/         per partition, what kafka-dump-log prints of its files

Every run gives other bytes (timestamps, producer ids, topic ids), so new golden data is a deliberate commit. Takes
about two minutes; needs Java 17 and, the first time, Maven (see tests/interop/apache_kafka.py).
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.interop.apache_kafka import MAIN_CLASSES, VERSION, ApacheKafka, java

HERE = Path(__file__).resolve().parent

CONFIG = {
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.num.partitions": 1,
    "share.coordinator.state.topic.num.partitions": 1,
    "log.index.size.max.bytes": 2048,  # what a killed node leaves of an active segment's index
    "log.retention.ms": -1,  # the records' timestamps lie years back
    "log.retention.check.interval.ms": 1000,
    "log.initial.task.delay.ms": 1000,
    "log.segment.delete.delay.ms": 86_400_000,  # keeps the directory of a deleted topic; topics set their own
    "log.cleaner.backoff.ms": 500,
    "log.cleaner.dedupe.buffer.size": 4 * 1024 * 1024,
    "metadata.log.max.record.bytes.between.snapshots": 8000,
    "internal.metadata.log.segment.bytes": 10000,
    "metadata.max.idle.interval.ms": 5000,
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
DECODERS = {
    "__consumer_offsets": "--offsets-decoder",
    "__transaction_state": "--transaction-log-decoder",
    "__share_group_state": "--share-group-state-decoder",
    "__cluster_metadata": "--cluster-metadata-decoder",
    "large": "--deep-iteration",  # its values would make a megabyte of text
}
DUMPED_SUFFIXES = {".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".checkpoint"}
METADATA_INDEX_KEPT_BYTES = 4096


def work(kafka: ApacheKafka, *steps: str) -> None:
    print("  ", *(step.split("/")[0] for step in steps), flush=True)
    java(str(HERE / "Workload.java"), kafka.bootstrap, *steps, timeout_s=300)


def wait_until(what: str, condition: Callable[[], bool], limit_s: float = 60) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not {what} after {limit_s} s")
        time.sleep(0.2)


def wait_until_quiet(partition: Path, quiet_s: float = 4) -> None:
    """Returns once no file of the partition has come, gone or changed for a while: the cleaner is done with it."""
    seen: object = None
    since = time.monotonic()

    def quiet() -> bool:
        nonlocal seen, since
        now = sorted((file.name, file.stat().st_mtime_ns) for file in partition.iterdir())
        if now != seen:
            seen, since = now, time.monotonic()
        return time.monotonic() - since > quiet_s

    wait_until(f"{partition.name} quiet", quiet)


def cleaned_up_to(data: Path, topic: str) -> int:
    checkpoint = data / "cleaner-offset-checkpoint"
    lines = checkpoint.read_text().splitlines() if checkpoint.exists() else []
    return next((int(line.split()[2]) for line in lines if line.startswith(f"{topic} ")), 0)


def wait_for_cleaner(data: Path, beyond: dict[str, int]) -> dict[str, int]:
    """Returns how far the cleaner has come in each compacted topic, once that is further than `beyond` and stays so."""
    for topic, offset in beyond.items():
        wait_until(f"{topic} cleaned", lambda topic=topic, offset=offset: cleaned_up_to(data, topic) > offset)
        wait_until_quiet(data / f"{topic}-0")
    return {topic: cleaned_up_to(data, topic) for topic in beyond}


def wait_for_retention(data: Path) -> None:
    wait_until("retained", lambda: not (data / "retained-0" / f"{0:020}.log").exists())
    wait_until("deleting", lambda: any((data / "deleting-0").glob("*.deleted")))
    wait_until_quiet(data / "retained-0")


def make_clean(directory: Path, expected: Path) -> Path:
    """Everything we know how to make, over three runs of the node that each end with a clean stop."""
    with ApacheKafka(directory, config=CONFIG) as kafka:
        work(kafka, "topics", "plain", "codecs", "large", "recompressed", "timestamps", "idempotent=20", "transactions")
        work(kafka, "compacted", "epochs=first", "retention", "cluster", "groups", "share")
        once = wait_for_cleaner(kafka.data, beyond={"compacted": 0, "compacted-expired": 0})
        work(kafka, "compacted-again")
        wait_for_cleaner(kafka.data, beyond=once)
        wait_for_retention(kafka.data)
        kafka.stop()
        kafka.start()
        work(kafka, "epochs=second", "idempotent=7")
        kafka.stop()
        kafka.start()
        work(kafka, "freeze-compaction", "epochs=third", "open-transaction", f"expected={expected}")
        kafka.stop()
        return kafka.data


def make_killed(directory: Path, expected: Path) -> Path:
    """Stopped cleanly once, then killed with writes that no checkpoint knows of."""
    with ApacheKafka(directory, config=CONFIG) as kafka:
        work(kafka, "topics", "idempotent=20", "transactions", "timestamps")
        kafka.stop()
        kafka.start()
        work(kafka, "plain", "codecs", "idempotent=10", "epochs=second", "retention", "cluster", "groups")
        work(kafka, "open-transaction", f"expected={expected}")
        kafka.kill()
        return kafka.data


def make_recovered(directory: Path, killed: Path, expected: Path) -> Path:
    """What Kafka's own recovery makes of the killed directory."""
    shutil.copytree(killed, directory / "data")
    with ApacheKafka(directory, config=CONFIG) as kafka:
        work(kafka, f"expected={expected}")
        kafka.stop()
        return kafka.data


def make_standalone(directory: Path) -> Path:
    """Formatted for a dynamic quorum (KIP-853), never started: its first snapshot holds the voters."""
    quorum = {"controller.quorum.voters": None, "controller.quorum.bootstrap.servers": "127.0.0.1:9093"}
    kafka = ApacheKafka(directory, config=CONFIG | quorum)
    kafka.format("--standalone")
    return kafka.data


def keep(data: Path, target: Path) -> None:
    """Copies a log directory, without the zeros that a killed node leaves in the metadata log's 10 MB indexes."""
    shutil.copytree(data, target)
    for index in (target / "__cluster_metadata-0").glob("*index"):
        if index.stat().st_size > METADATA_INDEX_KEPT_BYTES:
            tail = index.read_bytes()[METADATA_INDEX_KEPT_BYTES:]
            assert not any(tail), f"{index} has entries beyond what is kept"
            with index.open("r+b") as file:
                file.truncate(METADATA_INDEX_KEPT_BYTES - METADATA_INDEX_KEPT_BYTES % 24)


def dump(target: Path, texts: Path) -> None:
    """Lets kafka-dump-log describe every file, one text per partition, with paths relative to the log directory."""
    texts.mkdir()
    for path in sorted(target.iterdir()):
        if path.is_dir():
            files = sorted(file for file in path.iterdir() if file.suffix in DUMPED_SUFFIXES)
            decoder = DECODERS.get(path.name.rpartition("-")[0], "--print-data-log")
        elif path.name == "bootstrap.checkpoint":
            files, decoder = [path], "--cluster-metadata-decoder"
        else:
            continue
        names = ",".join(str(file.relative_to(target)) for file in files)
        said = java(MAIN_CLASSES["kafka-dump-log"], decoder, "--files", names, cwd=target, check=False)
        (texts / f"{path.name}.txt").write_text(said.stdout)
        if said.stderr:
            (texts / f"{path.name}.err.txt").write_text(said.stderr.replace(f"{target}/", ""))


def main() -> None:
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / f"kafka-{VERSION}"
    with tempfile.TemporaryDirectory(prefix="golden-") as scratch:
        made = Path(scratch) / "made"
        made.mkdir()

        def expected(name: str) -> Path:
            return made / f"{name}.expected"

        print("clean", flush=True)
        keep(make_clean(Path(scratch) / "clean", expected("clean")), made / "clean")
        print("killed", flush=True)
        killed = make_killed(Path(scratch) / "killed", expected("killed"))
        keep(killed, made / "killed")
        print("recovered", flush=True)
        keep(make_recovered(Path(scratch) / "recovered", killed, expected("recovered")), made / "recovered")
        print("standalone, legacy", flush=True)
        keep(make_standalone(Path(scratch) / "standalone"), made / "standalone")
        java(str(HERE / "LegacyLogs.java"), str(made / "legacy"), str(expected("legacy")))
        for name in ("clean", "killed", "recovered", "standalone", "legacy"):
            print("dumping", name, flush=True)
            dump(made / name, made / f"{name}.dump")
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(made, target)


if __name__ == "__main__":
    main()
