"""The coordinators and the cleaner beside Apache Kafka 4.3.1's, under the same load, in alternating rounds.

    python bench/coordinators                       all of it, in about eight minutes
    python bench/coordinators --only joining commits
    python bench/coordinators --long                cleans 1 GB and not a quarter of it
    python bench/coordinators --nodes ottla         one of the two alone, to look at it closely

Needs Java, and Apache Kafka's jars (Maven fetches them once). The nodes, the generator's window and the report are
those of `bench/broker`: a ratio is ours over Kafka's within a round; the median over rounds is shown with its
quartiles. The JVM is warmed up first, with the same work that is measured.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "broker")]

from committing import measure_commits  # noqa: E402  (what is shared lies beside)
from compacting import measure_cleaning  # noqa: E402
from contenders import Contender, contenders  # noqa: E402
from joining import measure_joining  # noqa: E402
from killing import measure_killing  # noqa: E402
from loading import measure_loading  # noqa: E402
from marking import MARKED, measure_marking  # noqa: E402
from report import Row, print_rows, summed_up  # noqa: E402
from transacting import measure_transactions  # noqa: E402
from wire_client import WireClient  # noqa: E402

PARTS = ["joining", "commits", "transactions", "markers", "killing", "loading", "cleaning"]
ON_WARM_NODES = {"joining", "commits", "transactions", "markers", "killing"}
OFFSETS = 1_000_000
SETTINGS = {
    "group.initial.rebalance.delay.ms": 0,
    # Time that a node lets pass on purpose is not what is compared.
    "group.consumer.assignment.interval.ms": 0,
    "group.consumer.session.timeout.ms": 6000,
    "group.consumer.min.session.timeout.ms": 6000,
    "group.consumer.heartbeat.interval.ms": 300,
    "group.consumer.min.heartbeat.interval.ms": 300,
    "offsets.topic.replication.factor": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
}


def main() -> int:
    options = _parser().parse_args()
    rows: list[Row] = []

    def show(part: str, found: Sequence[Row]) -> None:
        print_rows(part, found)
        rows.extend(found)

    if ON_WARM_NODES & set(options.only):
        with contenders(options.nodes, SETTINGS) as nodes:
            for node in nodes:
                node.start_timed()
            for part, run in _on(nodes, options.rounds).items():
                if part in options.only:
                    show(part, run())
    if "loading" in options.only:
        show("loading", measure_loading(options.nodes, SETTINGS, OFFSETS, min(options.rounds, 3)))
    if "cleaning" in options.only:
        show("cleaning", measure_cleaning(options.nodes, 1000 if options.long else 250, min(options.rounds, 3)))
    return summed_up(rows)


def _on(nodes: list[Contender], rounds: int) -> dict[str, Callable[[], list[Row]]]:
    return {
        "joining": lambda: measure_joining(nodes, rounds),
        "commits": lambda: measure_commits(nodes, rounds, 1.0),
        "transactions": lambda: measure_transactions(nodes, rounds, 1.0),
        "markers": lambda: _markers(nodes, rounds),
        "killing": lambda: measure_killing(nodes, min(rounds, 3)),
    }


def _markers(nodes: list[Contender], rounds: int) -> list[Row]:
    for node in nodes:
        with WireClient(node.bootstrap) as client:
            client.create_topic("marked", max(MARKED))
    return [row for partitions in MARKED for row in measure_marking(nodes, "marked", partitions, rounds)]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench/coordinators", description="Coordinators beside Apache Kafka's.")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--nodes", nargs="+", choices=["kafka", "ottla"], default=["kafka", "ottla"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--long", action="store_true", help="cleans 1 GB and not 250 MB")
    return parser


if __name__ == "__main__":
    sys.exit(main())
