"""The schema registry beside Apicurio's, on the same broker, in alternating rounds.

    python bench/registry                           all of it, in about six minutes
    python bench/registry --only reads loading
    python bench/registry --storage mem             Apicurio's schemas in memory alone, ours in the topic all the same

Needs Java 21 (`JAVA_21` names it where `java` is older), and Maven, which fetches Apicurio's registry once. Both are
warmed up first, with the work that is measured. A ratio is ours over theirs within a round; the median over rounds is
shown.
"""

import argparse
import hashlib
import json
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "broker"), str(Path(__file__).resolve().parents[1])]

from registries import Apicurio, Ottla, Registry  # noqa: E402  (what is shared lies beside)
from report import Row, limited, print_rows, spread_of, summed_up, verdict  # noqa: E402

from ottla import Producer, SchemaRegistryClient  # noqa: E402
from ottla.base.errors import OttlaError  # noqa: E402
from ottla.testing import Broker  # noqa: E402

PARTS = ["starts", "reads", "registrations", "loading", "killing"]
CONNECTIONS = (1, 8, 50)
KNOWN = 100
VERSIONS, SUBJECTS = 100_000, 10_000
SESSION_MS = 6_000
LOAD = str(Path(__file__).resolve().parent / "http_load.py")


def main() -> int:
    options = _parser().parse_args()
    rows: list[Row] = []

    def show(part: str, found: Sequence[Row]) -> None:
        print_rows(f"{part} (where it says kafka, it is Apicurio)", found)
        rows.extend(found)

    with TemporaryDirectory(prefix="ottla-bench-") as directory:
        if {"starts", "reads", "registrations"} & set(options.only):
            with Broker() as broker:
                pair = [
                    Apicurio(broker.bootstrap, Path(directory), options.storage),
                    Ottla(broker.bootstrap, Path(directory)),
                ]
                try:
                    show("starts", _starts(pair, options.rounds))
                    for kind, part in (("read", "reads"), ("register", "registrations")):
                        if part in options.only:
                            show(part, _load(pair, kind, options.rounds, options.seconds))
                    show(
                        "memory",
                        [_ratio("memory after all that", [[one.memory_mb()] for one in pair], "MB", at_most=0.2)],
                    )
                finally:
                    for one in pair:
                        one.stop()
        if "loading" in options.only:
            show("loading", _loading(Path(directory)))
        if "killing" in options.only:
            show("killing", _killing(Path(directory), options.rounds))
    return summed_up(rows)


def _starts(pair: Sequence[Registry], rounds: int) -> list[Row]:
    """Each is started and stopped so often; the last one stays. Their topics are there from the first time on."""
    times: list[list[float]] = [[], []]
    work: list[list[float]] = [[], []]
    for number in range(rounds + 1):
        for which, one in enumerate(pair):
            took_s = one.start()
            if number:
                times[which].append(took_s)
                work[which].append(one.processor_s())
            if number < rounds:
                one.stop()
    for one in pair:
        _run(one, 8, 15.0, "register", "warm")
        while not one.answers(f"/schemas/ids/{KNOWN + 1}"):
            _run(one, 8, 5.0, "register", f"warm{time.monotonic_ns()}")
        _run(one, 8, 15.0, "read", "warm")
    return [
        _ratio("from the start to the first answer", times, "s", at_most=0.05),
        _ratio("processor time of a start", work, "s"),
    ]


def _load(pair: Sequence[Registry], kind: str, rounds: int, seconds: float) -> list[Row]:
    rows = []
    for connections in CONNECTIONS:
        found: list[list[dict[str, float]]] = [[], []]
        for number in range(rounds):
            for which, one in enumerate(pair):
                found[which].append(
                    _run(one, connections, seconds, kind, f"{connections}x{number}x{time.monotonic_ns()}")
                )
        many = f"{connections} connection{'s' if connections > 1 else ''}"
        rates, p50s, p99s = ([[one[name] for one in each] for each in found] for name in ("rate", "p50", "p99"))
        rows.append(_ratio(f"{kind}, {many}", rates, "/s", at_least=3))
        rows.append(_ratio("  half of them within", p50s, "ms"))
        rows.append(_ratio("  99 of 100 within", p99s, "ms", at_most=0.5))
    return rows


def _run(registry: Registry, connections: int, seconds: float, kind: str, run: str) -> dict[str, float]:
    command = [sys.executable, LOAD, registry.place, str(connections), str(seconds), kind, run]
    found: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return found


def _ratio(
    what: str,
    values: Sequence[Sequence[float]],
    unit: str,
    *,
    at_least: float | None = None,
    at_most: float | None = None,
) -> Row:
    theirs, ours = values
    ratios = [mine / other for mine, other in zip(ours, theirs, strict=True)]
    target = f">= {at_least:g}" if at_least is not None else f"<= {at_most:g}" if at_most is not None else ""
    shown = [f"{median(one):,.{0 if unit in ('/s', 'MB') else 2}f} {unit}" for one in values]
    ratio = median(ratios)
    return Row(what, *shown, f"{ratio:.3f}", spread_of(ratios), target, verdict(ratio, at_least, at_most))


def _loading(directory: Path) -> list[Row]:
    """A topic with many versions, and a registry that starts on it."""
    with Broker() as broker:
        broker.create_topic("_schemas", settings={"cleanup.policy": "compact"})
        with Producer(bootstrap_servers=broker.bootstrap) as producer:
            for number in range(VERSIONS):
                producer.send("_schemas", key=_key(number), value=_value(number))
        registry = Ottla(broker.bootstrap, directory)
        took_s = registry.start()
        try:
            assert registry.answers(f"/schemas/ids/{VERSIONS}")
            memory = registry.memory_mb()
            processor_s = registry.processor_s()
        finally:
            registry.stop()
    return [
        limited(f"{VERSIONS:,} versions, to the first answer", f"{took_s:.2f} s", took_s, at_most=5, unit=" s"),
        Row("  processor time", "", f"{processor_s:.2f} s"),
        limited("  memory", f"{memory:.0f} MB", memory, at_most=250, unit=" MB"),
    ]


def _name(number: int) -> tuple[str, int]:
    return f"orders-{number % SUBJECTS}-value", number // SUBJECTS + 1


def _key(number: int) -> bytes:
    subject, version = _name(number)
    return _compact({"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1})


def _value(number: int) -> bytes:
    subject, version = _name(number)
    optional = {"type": ["null", "string"], "default": None}
    fields = [{"name": "id", "type": "long"}, *({"name": f"field_{n}", **optional} for n in range(version + 2))]
    schema = _compact({"type": "record", "name": f"Order{number % SUBJECTS}", "fields": fields})
    value = {
        "subject": subject,
        "version": version,
        "id": number + 1,
        "md5": b64encode(hashlib.md5(schema).digest()).decode(),
    }
    return _compact({**value, "schemaType": "AVRO", "schema": schema.decode(), "deleted": False})


def _compact(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _killing(directory: Path, rounds: int) -> list[Row]:
    """Two registries, and a writer that asks the one that lives while the leader is killed."""
    gaps = []
    for _ in range(rounds):
        with Broker() as broker:
            pair = [Ottla(broker.bootstrap, directory, kafkagroup_session_timeout_ms=SESSION_MS) for _ in range(2)]
            for one in pair:
                one.start()
            # Names are compared as text, and the smaller leads.
            leader, other = sorted(pair, key=lambda one: str(one.port))
            with SchemaRegistryClient(f"http://{other.place}", max_retries=0) as client:
                _until_written(client, "before")
                began_s = time.perf_counter()
                leader.kill()
                _until_written(client, "after")
                gaps.append(time.perf_counter() - began_s)
            other.stop()
    most_s = SESSION_MS / 1000 + 1
    shown = ", ".join(f"{gap:.2f}" for gap in gaps) + " s"
    return [
        limited(
            f"kill -9 of the leader, session of {SESSION_MS / 1000:g} s", shown, max(gaps), at_most=most_s, unit=" s"
        )
    ]


def _until_written(client: SchemaRegistryClient, name: str) -> None:
    while True:
        try:
            client.ask("PUT", f"/config/{name}", {"compatibility": "NONE"})
            return
        except OttlaError:
            time.sleep(0.02)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python bench/registry", description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="parts to run")
    parser.add_argument("--rounds", type=int, default=3, help="how often each is measured (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=5.0, help="of load in a round (default: %(default)s)")
    parser.add_argument("--storage", choices=("kafkasql", "mem"), default="kafkasql", help="Apicurio's")
    return parser


if __name__ == "__main__":
    sys.exit(main())
