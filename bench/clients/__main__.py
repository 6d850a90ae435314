"""Our clients beside confluent-kafka, aiokafka and kafka-python, in one run, against our node and Apache Kafka.

    python bench/clients                             all of it (ten minutes)
    python bench/clients --only produce --rounds 1   parts of it
    python bench/clients --nodes ottla               without Apache Kafka, and so without Java
    python bench/clients --before ../before          our own clients, beside those of another checkout that is built

Every measurement is a process of its own, so that processor time and memory are that client's alone; rounds of the
clients alternate, so that a slow moment of the machine hits all alike. The median of the rounds is shown. "ratio" is
ours over the other's rate, taken within each round. All clients have the same settings, except in the rows that say so.
"bare loopback" is no client: the same bytes through one connection, about what a client can reach at best.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parents[1])]

from works import WORKS, Work  # noqa: E402  (beside this file)

RUN_TIMEOUT_S = 180
BEFORE = "ottla, before"


def main() -> int:
    options = _parser().parse_args()
    for name in options.nodes:
        with _node(name) as bootstrap:
            print(f"\n=== against {'our node' if name == 'ottla' else 'Apache Kafka'} ===", flush=True)
            for part in options.only:
                for work in WORKS[part]:
                    _measure(work, bootstrap, options.rounds, options.clients, options.before)
    return 0


def _measure(work: Work, bootstrap: str, rounds: int, clients: list[str], before: Path | None) -> None:
    print(f"\n{work.title}", flush=True)
    if before is None:
        chosen = [client for client in work.clients if not clients or client in clients]
    else:
        chosen = [work.ours, BEFORE]
    found: dict[str, list[dict[str, Any]]] = {client: [] for client in chosen}
    for number in range(rounds):
        for client in chosen if number % 2 == 0 else reversed(chosen):
            if client == BEFORE:
                found[client].append(_run(work, work.ours, bootstrap, number, before))
            else:
                found[client].append(_run(work, client, bootstrap, number))
    ours = found.get(work.ours, [])
    for client in chosen:
        runs = found[client]
        ratios = [mine["rate"] / theirs["rate"] for mine, theirs in zip(ours, runs, strict=False) if theirs["rate"]]
        line = "  ".join(f"{name} {median(run[name] for run in runs):>{width}}" for name, width in _columns(runs[0]))
        beside = "" if client == work.ours or not ratios else f"  ratio {median(ratios):5.2f}"
        if client == BEFORE and "cpu_s_per_million" in runs[0]:
            cpu = [
                mine["cpu_s_per_million"] / theirs["cpu_s_per_million"] for mine, theirs in zip(ours, runs, strict=True)
            ]
            beside += f"  of its processor time {median(cpu):5.2f} ({min(cpu):.2f} to {max(cpu):.2f})"
        print(f"  {client:<24} {line}{beside}", flush=True)


def _columns(run: dict[str, Any]) -> Iterator[tuple[str, str]]:
    formats = {"rate": "9,.0f", "cpu_s_per_million": "6.2f", "memory_mb": "5.0f", "p50_ms": "6.2f", "p99_ms": "6.2f"}
    for name in run:
        yield name, formats[name]


def _run(work: Work, client: str, bootstrap: str, number: int, tree: Path | None = None) -> dict[str, Any]:
    asked = json.dumps({**work.options, "client": client, "bootstrap": bootstrap, "round": number})
    command = [sys.executable, "-W", "ignore", str(HERE / "one_run.py"), work.module, asked]
    environment = os.environ | ({"PYTHONPATH": str(tree / "src")} if tree else {})
    done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_TIMEOUT_S, env=environment)
    if done.returncode:
        raise SystemExit(f"{client}: {work.title} failed\n{done.stdout}{done.stderr}")
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


@contextmanager
def _node(name: str) -> Iterator[str]:
    if name == "ottla":
        from ottla.testing.node import RunningNode

        with RunningNode() as node:
            yield node.bootstrap
    else:
        from tests.interop.apache_kafka import ApacheKafka

        with ApacheKafka() as kafka:
            yield kafka.bootstrap


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(WORKS), default=list(WORKS))
    parser.add_argument("--nodes", nargs="+", choices=["ottla", "kafka"], default=["ottla", "kafka"])
    parser.add_argument("--clients", nargs="+", default=[], help="only these, by the names that are printed")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--before", type=Path, metavar="TREE", help="our clients beside those of this checkout alone")
    return parser


if __name__ == "__main__":
    sys.exit(main())
