"""How fast `ottla backup` and `ottla restore` are, beside `kafka-console-consumer` into a file, all of the same node.

Rounds alternate; the median counts. "a core" is megabytes of batches for each second of processor time that the command
itself takes; memory is the most that it had. The topic has JSON of about 200 bytes, in batches of 64 KB that their
producer has not compressed, in four partitions.

    python bench/backup.py [--megabytes N] [--rounds N] [--no-kafka]     needs Java and Maven, unless --no-kafka
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from threading import Thread
from typing import NamedTuple

from compare import print_table

sys.path[:0] = [str(Path(__file__).parents[1])]

from ottla import Admin, NewTopic, Producer  # noqa: E402  (beside the tests)
from ottla.base.ids import TopicPartition  # noqa: E402
from ottla.testing import Broker  # noqa: E402

BIN = Path(sys.executable).parent
PARTITIONS = 4
DIFFERENT = 200_000


class Took(NamedTuple):
    seconds: float
    cpu_s: float
    memory_mb: float


def clocked(words: list[str], out: Path | None = None) -> Took:
    with open(out or os.devnull, "wb") as file:
        begun_s = time.perf_counter()
        process = subprocess.Popen(words, stdout=file, stderr=subprocess.PIPE)
        assert process.stderr is not None
        memory_kb = [0]
        watch = Thread(target=_watch_memory, args=(process.pid, memory_kb), daemon=True)
        watch.start()
        told = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        took_s = time.perf_counter() - begun_s
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(words)}: {told.decode()}")
    watch.join()
    return Took(took_s, usage.ru_utime + usage.ru_stime, memory_kb[0] / 1024)


def _watch_memory(pid: int, most_kb: list[int]) -> None:
    """The most that a process has had, as long as it is there. `ru_maxrss` has what this program had when it began."""
    status = Path(f"/proc/{pid}/status")
    while True:
        try:
            lines = status.read_text().splitlines()
        except OSError:
            return
        found = [int(line.split()[1]) for line in lines if line.startswith("VmHWM:")]
        if not found:
            return  # It has ended.
        most_kb[0] = max(most_kb[0], *found)
        time.sleep(0.02)


def _record(number: int) -> tuple[bytes, bytes]:
    amount = number * 7919 % 1_000_003
    value = (
        f'{{"order": {number}, "customer": "customer-{amount % 50_021}", "amount": {amount / 100}, '
        f'"paid_at": {1_700_000_000_000 + number * 37}, "item": "{amount * 31 % 9973:x}-{number % 97}", '
        f'"state": "paid", "city": "{("Lisbon", "Oslo", "Rome")[number % 3]}", "note": "{amount:b}"}}'
    )
    return b"%d" % amount, value.encode()


def fill(bootstrap: str, megabytes: int) -> tuple[int, int]:
    """Records, and bytes of batches."""
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topics([NewTopic("orders", PARTITIONS, config={"retention.ms": "-1"})]).raise_first()
        # Made before, and again and again: what a block has is not in it twice.
        made = [_record(number) for number in range(DIFFERENT)]
        count = 0
        with Producer(
            bootstrap_servers=bootstrap,
            batch_size=65536,
            linger_ms=10,
        ) as producer:
            while count * 210 < megabytes * 1_000_000:
                for number, (key, value) in enumerate(made):
                    producer.send("orders", value, key, partition=number // 400 % PARTITIONS)
                count += DIFFERENT
        sizes = admin.describe_log_dirs([1])
        of_topic = [
            replica.size_bytes
            for directories in sizes.values()
            for directory in directories.values()
            for at, replica in directory.replicas.items()
            if TopicPartition(*at).topic == "orders"
        ]
    return count, sum(of_topic)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-kafka", action="store_true")
    options = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="ottla-bench-backup-"))
    try:
        return measure(options, directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def measure(options: argparse.Namespace, directory: Path) -> int:
    ottla = str(BIN / "ottla")
    saved = directory / "saved"
    times: dict[str, list[Took]] = {}
    with Broker({"node.id": 1}, faults=False) as source:
        records, size = fill(source.bootstrap, options.megabytes)
        commands = {
            "ottla backup": [ottla, "backup", str(saved), "-b", source.bootstrap],
            "ottla backup, no compression": [
                ottla,
                "backup",
                str(saved),
                "-b",
                source.bootstrap,
                "--compression",
                "none",
            ],
        }
        if not options.no_kafka:
            from tests.interop.apache_kafka import MAIN_CLASSES, libraries

            commands["kafka-console-consumer > file"] = [
                "java",
                "-cp",
                f"{libraries()}/*",
                MAIN_CLASSES["kafka-console-consumer"],
                "--bootstrap-server",
                source.bootstrap,
                "--topic",
                "orders",
                "--from-beginning",
                "--max-messages",
                str(records),
            ]
        for _ in range(options.rounds):
            for name, words in commands.items():
                shutil.rmtree(saved, ignore_errors=True)
                times.setdefault(name, []).append(clocked(words, directory / "lines"))
                (directory / "lines").unlink()
        shutil.rmtree(saved, ignore_errors=True)
        clocked(commands["ottla backup"])
        stored = sum(path.stat().st_size for path in saved.rglob("*.zst"))
        times["ottla backup, nothing new"] = [clocked(commands["ottla backup"]) for _ in range(options.rounds)]
        times["ottla backup --verify"] = [clocked([ottla, "backup", str(saved), "--verify"])]
    for _ in range(options.rounds):
        with Broker({"node.id": 1}, faults=False) as destination:
            words = [ottla, "restore", str(saved), "-b", destination.bootstrap]
            times.setdefault("ottla restore, compared", []).append(clocked(words))
    rows = []
    for name, found in times.items():
        seconds, cpu_s = median(one.seconds for one in found), median(one.cpu_s for one in found)
        rate, a_core = size / 1e6 / seconds, size / 1e6 / cpu_s
        if name.endswith("nothing new"):
            rows.append([name, f"{seconds:.2f}", f"{cpu_s:.2f}", "", "", f"{max(one.memory_mb for one in found):.0f}"])
            continue
        memory_mb = max(one.memory_mb for one in found)
        rows.append([name, f"{seconds:.2f}", f"{cpu_s:.2f}", f"{rate:.0f}", f"{a_core:.0f}", f"{memory_mb:.0f}"])
    print(f"{records:,} records, {size / 1e6:,.0f} MB of batches; {stored / 1e6:,.0f} MB stored with zstd")
    print_table(["of one topic", "s", "CPU s", "MB/s", "MB/s a core", "memory MB"], rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
