"""Three nodes of Apache Kafka 4.3.1 and three of ours, side by side on one machine, in alternating rounds.

    python bench/cluster                           all of it, in about half an hour
    python bench/cluster --only replication gaps   parts of it
    python bench/cluster --only metadata --partitions 1000000
    python bench/cluster --nodes ottla             one of the two alone, to look at it closely

Needs Java, and Apache Kafka's jars (Maven fetches them once). A ratio is ours over Kafka's within a round; the median
over rounds is shown with its quartiles. The JVMs are warmed up first. Timeouts are Kafka's defaults.
"""

import argparse
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from clusters import Cluster, clusters
from gaps import FEW, MANY, measure_gaps, measure_rolling
from metadata_scale import measure_metadata
from replicating import measure_replication, warm_up
from report import Row, compared, print_rows, summed_up
from returning import measure_catching_up, measure_reassignment

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "coordinators")]

from marking import MARKED, measure_marking  # noqa: E402  (what is shared lies beside)

PARTS = ["replication", "memory", "markers", "gaps", "gaps-many", "rolling", "catching-up", "reassignment", "metadata"]
MEMORY_TARGET = 0.1


def main() -> int:
    options = _parser().parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("told to stop"))  # and so ends the nodes
    rows: list[Row] = []

    def show(part: str, found: Sequence[Row]) -> None:
        print_rows(part, found)
        rows.extend(found)

    if set(options.only) - {"metadata"}:
        with clusters(options.nodes) as started:
            warm_up(started, options.warm_up_s)
            for part, run in _on(started, options.rounds).items():
                if part in options.only:
                    show(part, run())
    if "metadata" in options.only:
        for count in options.partitions:
            show(f"metadata of {count:,} partitions", measure_metadata(options.nodes, count))
    return summed_up(rows)


def _on(started: list[Cluster], rounds: int) -> dict[str, Callable[[], list[Row]]]:
    few = min(rounds, 3)  # of what takes as long as a node's start, or as a session
    return {
        "replication": lambda: measure_replication(started, rounds, 2.0),
        "memory": lambda: _memory(started),
        "markers": lambda: _markers(started, rounds),
        "gaps": lambda: measure_gaps(started, few, FEW),
        "gaps-many": lambda: measure_gaps(started, few, MANY),
        "rolling": lambda: measure_rolling(started, few),
        "catching-up": lambda: measure_catching_up(started, few),
        "reassignment": lambda: measure_reassignment(started, few),
    }


def _memory(started: list[Cluster]) -> list[Row]:
    found = {cluster.name: [cluster.rss_mb()] for cluster in started}
    return [compared("memory of three nodes, after the load", found, lambda mb: f"{mb:.0f} MB", at_most=MEMORY_TARGET)]


def _markers(started: list[Cluster], rounds: int) -> list[Row]:
    for cluster in started:
        cluster.create_topic("marked", max(MARKED))
        cluster.leaders_that_answer("marked")
    return [row for partitions in MARKED for row in measure_marking(started, "marked", partitions, rounds)]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench/cluster", description="Three nodes beside Apache Kafka's.")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--nodes", nargs="+", choices=["kafka", "ottla"], default=["kafka", "ottla"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--warm-up-s", type=float, default=12.0)
    parser.add_argument(
        "--partitions", nargs="+", type=int, default=[10_000, 100_000, 1_000_000], help="sizes of the part metadata"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
