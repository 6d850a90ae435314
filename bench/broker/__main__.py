"""One node of Apache Kafka 4.3.1 and one of ours, side by side under the same load, in alternating rounds.

    python bench/broker                        all of it, in about ten minutes
    python bench/broker --only produce fetch   parts of it
    python bench/broker --long                 10,000 partitions as well
    python bench/broker --only cores           `ottla start --cores 2` beside one node of Kafka's on the same two cores
    python bench/broker --nodes ottla          one of the two alone, to look at it closely

Needs Java, and Apache Kafka's jars (Maven fetches them once). A ratio is ours over Kafka's within a round; the median
over rounds is shown with its quartiles. The JVM is warmed up first.
"""

import argparse
import sys
from collections.abc import Callable, Sequence

from contenders import Contender, contenders
from cores import measure_cores
from footprint import measure_connections, measure_memory, measure_starting
from many_connections import measure_many
from many_partitions import measure_partitions
from report import Row, print_rows, summed_up
from response_times import measure_latency
from stalls import measure_stalls
from throughput import measure_fetch, measure_produce, warm_up
from tls import measure_tls

PARTS = [
    "produce",
    "fetch",
    "many",
    "latency",
    "clients",
    "starting",
    "connections",
    "partitions",
    "stalls",
    "cores",
    "tls",
]
ON_WARM_NODES = {"produce", "fetch", "many", "latency", "clients"}


def main() -> int:
    options = _parser().parse_args()
    rows: list[Row] = []

    def show(part: str, found: Sequence[Row]) -> None:
        print_rows(part, found)
        rows.extend(found)

    if ON_WARM_NODES & set(options.only):
        with contenders(options.nodes) as nodes:
            for node in nodes:
                node.start_timed()
            warm_up(nodes, options.warm_up_s)
            for part, run in _on(nodes, options.rounds).items():
                if part in options.only:
                    show(part, run())
            show("memory", measure_memory(nodes))
    if "starting" in options.only:
        show("starting", measure_starting(options.nodes, 3))
    if "connections" in options.only:
        show("connections", measure_connections(options.nodes, 10_000))
    if "partitions" in options.only:
        for count in (1000, 10_000) if options.long else (1000,):
            show("partitions", measure_partitions(options.nodes, count))
    if "stalls" in options.only:
        show("stalls", measure_stalls(options.nodes))
    if "cores" in options.only:
        show("cores", measure_cores(options.nodes, options.rounds, options.warm_up_s))
    if "tls" in options.only:
        show("tls", measure_tls(options.nodes, options.rounds, options.warm_up_s))
    return summed_up(rows)


def _on(nodes: list[Contender], rounds: int) -> dict[str, Callable[[], list[Row]]]:
    def clients() -> list[Row]:
        from other_clients import measure_clients

        return measure_clients(nodes, 3)

    return {
        "produce": lambda: measure_produce(nodes, rounds, 0.5),
        "fetch": lambda: measure_fetch(nodes, rounds),
        "many": lambda: measure_many(nodes, rounds, 0.7),
        "latency": lambda: measure_latency(nodes, rounds, 1.5),
        "clients": clients,
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench/broker", description="One node beside Apache Kafka's.")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--nodes", nargs="+", choices=["kafka", "ottla"], default=["kafka", "ottla"])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--warm-up-s", type=float, default=12.0)
    parser.add_argument("--long", action="store_true", help="10,000 partitions as well")
    return parser


if __name__ == "__main__":
    sys.exit(main())
