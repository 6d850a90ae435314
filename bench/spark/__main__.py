"""Our source beside Spark's own Kafka connector: the same topics of the same node, in alternating rounds.

    python bench/spark                        all of it
    python bench/spark --only scan --rounds 5
    python bench/spark --sessions ottla       ours alone

Needs Java and Maven (for Spark's connector, fetched once). A ratio is ours over Spark's within a round; the median over
rounds is shown with its quartiles.
"""

import argparse
import sys
from pathlib import Path
from statistics import median, quantiles

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from compare import print_table  # noqa: E402
from sessions import Session, ours, sparks  # noqa: E402
from topics import ORDER, fill, fill_avro  # noqa: E402

from ottla.testing import Broker, SchemaRegistry  # noqa: E402

SCANS = [(100, 1, 2_000_000), (100, 8, 2_000_000), (1000, 1, 500_000), (1000, 8, 500_000)]
"""Bytes of a record, partitions, records."""
MEASURES = {"rows/s": "seconds", "rows/CPU s": "cpu_s"}
"""The second counts the processors' time of the session, its workers included: it is the same on a busy machine."""
TARGETS = {"scan": 2.5, "avro": 3.0, "stream": 1.5, "small": 1.0, "sink": 1.0}
"""What the ratio of rows/s, or of times, is to be at least."""
DELIVERIES = ["exactly-once", "single-transaction", "at-least-once"]
PARTS = ["scan", "avro", "stream", "small", "idle", "sink"]


def main() -> None:
    options = _parser().parse_args()
    makers = {"ottla": ours, "spark": sparks}
    with Broker({"log.segment.bytes": 1 << 30}) as broker:
        sessions = [makers[name]() for name in options.sessions]
        try:
            for part in options.only:
                print(f"\n{part}", flush=True)
                globals()[f"_{part}"](sessions, broker, options)
        finally:
            for session in sessions:
                session.close()


def _scan(sessions: list[Session], broker: Broker, options: argparse.Namespace) -> None:
    rows = []
    for size, partitions, count in SCANS:
        count = count // options.smaller
        topic = fill(broker, size, partitions, count)
        for session in sessions:
            session.do("scan", servers=broker.bootstrap, topic=topic)
        found = _rounds(sessions, options.rounds, "scan", servers=broker.bootstrap, topic=topic)
        for unit, measure in MEASURES.items():
            rates = {name: [count / one[measure] for one in times] for name, times in found.items()}
            target = TARGETS["scan"] if measure == "seconds" else None
            rows.append([f"{size} B, {partitions} partitions", *_cells(rates, unit, target)])
    print_table(["batch scan", *_headings(sessions)], rows)


def _avro(sessions: list[Session], broker: Broker, options: argparse.Namespace) -> None:
    """Our `value.format=avro`, with a registry, beside Spark's connector and `from_avro`."""
    rows = []
    count = 1_000_000 // options.smaller
    with SchemaRegistry(broker.bootstrap) as registry:
        for partitions in (1, 8):
            topic = fill_avro(broker, registry, partitions, count)
            job = {"servers": broker.bootstrap, "topic": topic, "registry": registry.url, "schema": ORDER}
            for session in sessions:
                session.do("avro", **job)
            found = _rounds(sessions, options.rounds, "avro", **job)
            for unit, measure in MEASURES.items():
                rates = {name: [count / one[measure] for one in times] for name, times in found.items()}
                target = TARGETS["avro"] if measure == "seconds" else None
                rows.append([f"{partitions} partitions", *_cells(rates, unit, target)])
    print_table(["Avro to columns", *_headings(sessions)], rows)


def _stream(sessions: list[Session], broker: Broker, options: argparse.Namespace) -> None:
    rows = []
    for size, partitions, count in SCANS[1::2]:
        count = count // options.smaller
        topic = fill(broker, size, partitions, count)
        job = {"servers": broker.bootstrap, "topic": topic, "rows_per_batch": count // 8}
        for session in sessions:
            session.do("stream", **job)
        found = _rounds(sessions, options.rounds, "stream", **job)
        rates = {name: [one["rows_per_s"] for one in times] for name, times in found.items()}
        rows.append([f"{size} B, {partitions} partitions", *_cells(rates, "rows/s", TARGETS["stream"])])
        rates = {name: [count / one["cpu_s"] for one in times] for name, times in found.items()}
        rows.append([f"{size} B, {partitions} partitions", *_cells(rates, "rows/CPU s")])
    print_table(["micro-batches", *_headings(sessions)], rows)


def _small(sessions: list[Session], broker: Broker, options: argparse.Namespace) -> None:
    rows = []
    for partitions in (1, 8):
        topic = fill(broker, 100, partitions, 10_000)
        job = {"servers": broker.bootstrap, "topic": topic}
        found = _rounds(sessions, options.rounds, "small_batches", **job, count=12)
        rows.append([f"a row of each of {partitions} partitions", *_time_cells(found, TARGETS["small"])])
        found = _rounds(sessions, options.rounds, "empty_runs", **job, count=5)
        rows.append([f"nothing, of {partitions} partitions", *_time_cells(found, TARGETS["small"])])
    print_table(["a micro-batch of", *_headings(sessions)], rows)
    print("Nothing: a started query with Trigger.AvailableNow that ends because all is read.")


def _sink(sessions: list[Session], broker: Broker, options: argparse.Namespace) -> None:
    """Spark's sink is at least once. Ours is compared with it in each of its deliveries."""
    rows = []
    for size, partitions, count in SCANS[1::2]:
        count = count // options.smaller
        source = fill(broker, size, partitions, count)
        target = fill(broker, size, partitions, 0)
        job = {"servers": broker.bootstrap, "topic": source, "target": target, "rows_per_batch": count // 4}
        for delivery in options.deliveries:
            given = {session.name: {"delivery": delivery} if session.name == "ottla" else {} for session in sessions}
            for session in sessions:
                session.do("sink", **job, **given[session.name])
            found: dict[str, list[dict[str, float]]] = {session.name: [] for session in sessions}
            for number in range(options.rounds):
                for session in sessions if number % 2 else reversed(sessions):
                    found[session.name].append(session.do("sink", **job, **given[session.name]))
            for unit, measure in MEASURES.items():
                rates = {name: [count / one[measure] for one in times] for name, times in found.items()}
                target = TARGETS["sink"] if measure == "seconds" else None
                rows.append([f"{size} B, {partitions} partitions, {delivery}", *_cells(rates, unit, target)])
        rows += _floor(sessions, options.rounds, count, f"{size} B, {partitions} partitions", job)
    print_table(["topic to topic", *_headings(sessions)], rows)


def _floor(sessions: list[Session], rounds: int, count: int, what: str, job: dict[str, object]) -> list[list[str]]:
    """What PySpark takes for any sink in Python: rows from Java, and nothing done with them."""
    rows = []
    if mine := [session for session in sessions if session.name == "ottla"]:
        arguments = {name: value for name, value in job.items() if name != "target"}
        mine[0].do("floor", **arguments)
        found = _rounds(mine, rounds, "floor", **arguments)
        for unit, measure in MEASURES.items():
            cells = _cells({"ottla": [count / one[measure] for one in found["ottla"]]}, unit)
            rows.append(
                [f"{what}, a sink in Python that keeps nothing", *cells, *[""] * (len(_headings(sessions)) - 1)]
            )
    return rows


def _idle(sessions: list[Session], broker: Broker, options: argparse.Namespace) -> None:
    topic = fill(broker, 100, 1, 1000)
    rows = []
    for session in sessions:
        found = session.do("idle", servers=broker.bootstrap, topic=topic, seconds=10)
        rows.append([session.name, f"{found['cores']:.3f}", f"{found['stop_s'] * 1000:.0f} ms"])
    print_table(["an idle query", "cores", "stop()"], rows)


def _rounds(sessions: list[Session], rounds: int, job: str, **arguments: object) -> dict[str, list[dict[str, float]]]:
    found: dict[str, list[dict[str, float]]] = {session.name: [] for session in sessions}
    for number in range(rounds):
        for session in sessions if number % 2 else reversed(sessions):
            found[session.name].append(session.do(job, **arguments))
    return found


def _headings(sessions: list[Session]) -> list[str]:
    return [*(session.name for session in sessions), *(["ratio", "target", "verdict"] if len(sessions) == 2 else [])]


def _cells(rates: dict[str, list[float]], unit: str, target: float | None = None) -> list[str]:
    cells = [
        f"{median(one):,.3g} {unit}" if median(one) < 1000 else f"{median(one):,.0f} {unit}" for one in rates.values()
    ]
    if len(rates) == 2:
        mine, theirs = rates.values()
        cells += _ratio_cells([one / other for one, other in zip(mine, theirs, strict=True)], target)
    return cells


def _time_cells(found: dict[str, list[dict[str, float]]], target: float) -> list[str]:
    times_s = [[one["seconds"] for one in times] for times in found.values()]
    cells = [f"{median(one) * 1000:,.0f} ms" for one in times_s]
    if len(times_s) == 2:
        mine, theirs = times_s
        cells += _ratio_cells([other / one for one, other in zip(mine, theirs, strict=True)], target)
    return cells


def _ratio_cells(ratios: list[float], target: float | None) -> list[str]:
    spread = quantiles(ratios, n=4) if len(ratios) > 1 else [ratios[0]] * 3
    cells = [f"{median(ratios):.2f} ({spread[0]:.2f}-{spread[2]:.2f})"]
    if target is None:
        return [*cells, "", ""]
    return [*cells, f">= {target:g}", "ok" if median(ratios) >= target else "short"]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--sessions", nargs="+", choices=["ottla", "spark"], default=["ottla", "spark"])
    parser.add_argument("--deliveries", nargs="+", choices=DELIVERIES, default=DELIVERIES, help="of our sink")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--smaller", type=int, default=1, help="divides the numbers of records")
    return parser


if __name__ == "__main__":
    main()
