"""How long a command-line tool takes, ours beside Apache Kafka's, against the same node of ours.

The median of several rounds, which alternate, in milliseconds of the clock, and of processor time. Kafka's tool is the
Java process that its script starts, without the script; with the flags that make a JVM start quickest.

    python bench/tools.py [--rounds N]     needs Java and Maven
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from compare import print_table

sys.path[:0] = [str(Path(__file__).parents[1])]

from tests.interop.apache_kafka import MAIN_CLASSES, QUICK_START, libraries  # noqa: E402  (beside the tests)

from ottla.testing import Broker  # noqa: E402

BIN = Path(sys.executable).parent
COMMANDS = [
    ("kafka-topics", "--version"),
    ("kafka-topics", "--list"),
    ("kafka-topics", "--describe"),
    ("kafka-configs", "--describe", "--entity-type", "topics", "--entity-name", "orders"),
    ("kafka-consumer-groups", "--list"),
    ("kafka-get-offsets", "--topic", "orders"),
    ("kafka-broker-api-versions",),
    ("kafka-console-consumer", "--topic", "orders", "--from-beginning", "--max-messages", "1"),
]


def clocked(words: list[str]) -> tuple[float, float]:
    """Milliseconds of the clock, and of the processor."""
    begun_s, before = time.perf_counter(), os.times()
    subprocess.run(words, check=True, capture_output=True, timeout=120)
    after = os.times()
    cpu_s = after.children_user + after.children_system - before.children_user - before.children_system
    return (time.perf_counter() - begun_s) * 1000, cpu_s * 1000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    java = ["java", *QUICK_START, "-cp", f"{libraries()}/*"]
    rows = []
    with Broker() as broker:
        broker.create_topic("orders")
        producer = [str(BIN / "kafka-console-producer"), "--bootstrap-server", broker.bootstrap, "--topic", "orders"]
        subprocess.run(producer, input=b"an order\n", check=True, timeout=60)
        for name, *options in COMMANDS:
            words = options if "--version" in options else ["--bootstrap-server", broker.bootstrap, *options]
            ours, theirs = [], []
            for _ in range(rounds):
                ours.append(clocked([str(BIN / name), *words]))
                theirs.append(clocked([*java, MAIN_CLASSES[name], *words]))
            (mine_ms, mine_cpu), (kafkas_ms, kafkas_cpu) = (
                (median(clock for clock, _ in found), median(cpu for _, cpu in found)) for found in (ours, theirs)
            )
            times = [f"{mine_ms:.0f}", f"{kafkas_ms:.0f}", f"{kafkas_ms / mine_ms:.1f}", f"{mine_cpu:.0f}"]
            rows.append([" ".join([name, *options]), *times, f"{kafkas_cpu:.0f}"])
    print_table(["a tool, ms", "ours", "Kafka's", "ratio", "CPU ours", "CPU Kafka's"], rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
