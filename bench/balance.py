"""How long records take to be acknowledged while `ottla balance`, `ottla node drain` and `ottla cluster roll` work.

Four nodes, of which the fourth is new and empty; a producer with acks=all that sends a record every few milliseconds to
three partitions on all of them, and a consumer. Each piece of work is between two spells without any, and its p99 is
held against theirs. Every record that was acknowledged must be read, and no client may see an error.

    python bench/balance.py [--megabytes N] [--seconds N] [--throttle RATE]
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import quantiles
from threading import Thread

from compare import print_table

sys.path[:0] = [str(Path(__file__).parents[1])]


from tests.cluster.processes_of_a_cluster import ClusterOfProcesses  # noqa: E402

from ottla import Admin, Consumer, NewTopic, Producer  # noqa: E402  (beside the tests)
from ottla.cli.local_cluster.cluster_making import make_broker, make_cluster  # noqa: E402

OTTLA = str(Path(sys.executable).parent / "ottla")
EVERY_S = 0.004


class Load:
    """A producer and a consumer; `latencies` are of the spell that is on."""

    def __init__(self, bootstrap: str) -> None:
        self.latencies: list[float] = []
        self.acknowledged: set[int] = set()
        self.read: set[int] = set()
        self.errors: list[BaseException] = []
        self._is_over = False
        self._bootstrap = bootstrap
        self._threads = [Thread(target=self._write), Thread(target=self._read)]
        for thread in self._threads:
            thread.start()

    def _write(self) -> None:
        with Producer(bootstrap_servers=self._bootstrap, acks="all", linger_ms=0) as producer:
            number = 0
            while not self._is_over:
                began_s, mine = time.perf_counter(), number

                def done(delivery: object, began_s: float = began_s, mine: int = mine) -> None:
                    error = delivery.exception()  # type: ignore[attr-defined]
                    if error is not None:
                        self.errors.append(error)
                        return
                    self.latencies.append(time.perf_counter() - began_s)
                    self.acknowledged.add(mine)

                producer.send("busy", b"%d" % number, partition=number % 3, on_delivery=done)
                number += 1
                time.sleep(EVERY_S)

    def _read(self) -> None:
        try:
            with Consumer(bootstrap_servers=self._bootstrap, group_id="g", auto_offset_reset="earliest") as consumer:
                consumer.subscribe(["busy"])
                while not self._is_over or (self.acknowledged - self.read and not self.errors):
                    self.read.update(int(record.value) for record in consumer.poll(0.2))
        except BaseException as problem:
            self.errors.append(problem)

    def spell(self) -> list[float]:
        """What came since the last call, in milliseconds."""
        found, self.latencies = self.latencies, []
        return [one * 1000 for one in found]

    def end(self) -> None:
        self._is_over = True
        for thread in self._threads:
            thread.join(60)


def p(found: list[float], percent: int) -> float:
    return quantiles(found, n=100)[percent - 1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=400)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--throttle", default="20M")
    options = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="ottla-bench-balance-"))
    try:
        return measure(options, directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def measure(options: argparse.Namespace, directory: Path) -> int:
    nodes = make_cluster(directory / "cluster", 3, port=0)
    nodes.append(make_broker(directory / "cluster", nodes))
    rows: list[list[str]] = []
    with ClusterOfProcesses(directory / "cluster", nodes=nodes) as cluster:
        at = ["-b", cluster.bootstrap]
        with Admin(bootstrap_servers=cluster.bootstrap) as admin:
            of = dict.fromkeys(range(12), (1, 2, 3))
            config = {"min.insync.replicas": "2"}
            admin.create_topics([NewTopic("filled", assignment=of, config=config)]).raise_first()
            busy = {0: (1, 2, 3), 1: (2, 3, 1), 2: (3, 1, 2)}
            admin.create_topics([NewTopic("busy", assignment=busy, config=config)]).raise_first()
        with Producer(bootstrap_servers=cluster.bootstrap, linger_ms=10) as producer:
            for number in range(options.megabytes * 1000):
                producer.send("filled", bytes(1000), partition=number // 100 % 12)
        load = Load(cluster.bootstrap)
        steps = {
            "balance": [
                "balance",
                "--sample",
                "2",
                "--throttle",
                options.throttle,
                "--execute",
                "--save",
                "plan.json",
                *at,
            ],
            "undo": ["balance", "--undo", "plan.json", "--throttle", options.throttle, "--execute", *at],
            "balance again": ["balance", "--plan", "plan.json", "--throttle", options.throttle, "--execute", *at],
            "drain 4": ["node", "drain", "4", "--throttle", options.throttle, *at],
            "roll": ["cluster", "roll", "--data", str(directory / "cluster")],
        }
        time.sleep(2)
        load.spell()
        time.sleep(options.seconds)
        before = load.spell()
        for name, words in steps.items():
            began_s = time.perf_counter()
            done = subprocess.run([OTTLA, *words], cwd=directory, capture_output=True, text=True)
            took_s = time.perf_counter() - began_s
            if done.returncode:
                raise SystemExit(f"{name}: {done.stdout}{done.stderr}")
            during = load.spell()
            time.sleep(options.seconds)
            after = load.spell()
            without = p(before, 99), p(after, 99)
            rows.append(
                [
                    name,
                    f"{took_s:.1f}",
                    f"{p(before + after, 50):.1f}",
                    f"{p(during, 50):.1f}",
                    f"{without[0]:.1f}, {without[1]:.1f}",
                    f"{p(during, 99):.1f}",
                    f"{p(during, 99) / (sum(without) / 2):.2f}",
                    f"{max(during):.0f}",
                ]
            )
            before = after
        load.end()
    print_table(["ms to acknowledge", "s", "p50 without", "p50", "p99 before, after", "p99", "ratio", "max"], rows)
    lost = load.acknowledged - load.read
    print(
        f"{len(load.acknowledged):,} records acknowledged, {len(lost)} not read; {len(load.errors)} errors of clients"
    )
    return 1 if lost or load.errors else 0


if __name__ == "__main__":
    sys.exit(main())
