"""`kafka-producer-perf-test`: sends records, and prints how many, how fast and how late they were confirmed.

Options and lines are those of Apache Kafka 4.3.1. Where it differs: payloads of `--record-size` are cut from a block of
random letters, which costs less than to draw each letter; metrics are those that our producer counts.
"""

import sys
import time
from argparse import Namespace
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

from ottla.base.errors import OttlaError
from ottla.cli.client_settings import settings_in_file
from ottla.cli.performance.latencies import Latencies
from ottla.cli.performance.throttle import Throttle
from ottla.cli.performance.tool_options import (
    FAILURES,
    ToolParser,
    complain,
    deprecated,
    key_value,
    positive,
    print_metrics,
    tell_troubles,
)
from ottla.config.scopes import Scope

if TYPE_CHECKING:
    from ottla.client.blocking.producer import Producer
    from ottla.client.producer.append import Delivery

_CLIENT_ID = "perf-producer-client"
_DEFAULT_TRANSACTION_MS = 3000
_BLOCK_BYTES = 1 << 20


class PerfError(OttlaError):
    """There is nothing to send."""


def main(arguments: list[str] | None = None) -> int:
    parser = argument_parser()
    options = parser.parse_args(arguments)
    if options.warmup_records >= options.num_records > 0 and options.warmup_records:
        parser.error("--warmup-records must be below --num-records")
    try:
        settings = _settings(options)
        if not settings.get("bootstrap.servers"):
            parser.error("one of --bootstrap-server, --command-property and --command-config must name a server")
        return _run(options, settings)
    except FAILURES as problem:
        return complain("kafka-producer-perf-test", problem)


def argument_parser() -> ToolParser:
    parser = ToolParser("kafka-producer-perf-test", "Measures how fast records are sent and confirmed.")
    parser.add_servers(required=False)
    parser.add_argument("--topic", required=True, help="where to send")
    parser.add_argument("--num-records", required=True, type=positive, help="how many to send")
    parser.add_argument("--payload-delimiter", default="\\n", help="what divides --payload-file (default: \\n)")
    parser.add_argument("--throughput", required=True, type=float, help="records a second; -1 is as fast as can be")
    for name in ("--producer-props", "--command-property"):
        old = "the old name of --command-property" if name == "--producer-props" else "settings of the producer"
        parser.add_argument(
            name, nargs="+", type=key_value, action="extend", default=[], metavar="NAME=VALUE", help=old
        )
    parser.add_argument(
        "--producer.config", dest="producer_config", metavar="FILE", help="the old name of --command-config"
    )
    parser.add_argument("--command-config", metavar="FILE", help="a properties file of the producer")
    parser.add_argument("--print-metrics", action="store_true", help="print the producer's metrics in the end")
    parser.add_argument("--transactional-id", help="send in transactions of this id")
    parser.add_argument("--transaction-duration-ms", type=positive, help="how long a transaction lasts (default: 3000)")
    parser.add_argument("--warmup-records", type=int, default=0, help="records that the second summary leaves out")
    parser.add_argument("--reporting-interval", type=positive, default=5000, metavar="MS", help="(default: 5000)")
    payload = parser.add_mutually_exclusive_group(required=True)
    payload.add_argument("--record-size", type=positive, metavar="BYTES", help="random letters, so many")
    payload.add_argument("--payload-file", metavar="FILE", help="records are drawn from this file")
    payload.add_argument("--payload-monotonic", action="store_true", help="records are numbers that go up")
    return parser


def _settings(options: Namespace) -> dict[str, object]:
    deprecated(options, "--producer-props", "--command-property", "producer_props")
    deprecated(options, "--producer.config", "--command-config", "producer_config")
    settings = settings_in_file(options.command_config or options.producer_config, Scope.PRODUCER)
    settings |= dict(options.producer_props) | dict(options.command_property)
    if options.bootstrap_server:
        settings["bootstrap.servers"] = options.bootstrap_server
    if options.transactional_id:
        settings["transactional.id"] = options.transactional_id
    if options.transaction_duration_ms and not settings.get("transactional.id"):
        from uuid import uuid4

        settings["transactional.id"] = f"performance-producer-{uuid4()}"
    settings.setdefault("client.id", _CLIENT_ID)
    return {name: value for name, value in settings.items() if name not in ("key.serializer", "value.serializer")}


def _run(options: Namespace, settings: dict[str, object]) -> int:
    from ottla.client.blocking.producer import Producer

    payload = _payloads(options)
    tell_troubles()
    with Producer(settings) as producer:
        if options.warmup_records:
            print(
                f"Warmup first {options.warmup_records} records. Steady state results will print after the complete "
                "test summary."
            )
        run = _PerfRun(options, producer, payload, is_transactional=bool(settings.get("transactional.id")))
        run.send_all()
        producer.flush()
        print(run.all.summary_line())
        if run.steady is not None:
            print(run.steady.summary_line())
        if options.print_metrics:
            print_metrics("producer-metrics", str(settings["client.id"]), producer.metrics())
    return 0


def _payloads(options: Namespace) -> Callable[[int], bytes]:
    """The payload of the record with this number."""
    if options.payload_monotonic:
        return lambda number: str(number).encode()
    random = Random(0)
    if options.payload_file:
        delimiter = options.payload_delimiter.encode().decode("unicode_escape")
        print(f"Reading payloads from: {options.payload_file}")
        with open(options.payload_file, encoding="utf-8") as file:
            lines = [line.encode() for line in file.read().removesuffix(delimiter).split(delimiter)]
        print(f"Number of records read: {len(lines)}")
        if not any(lines):
            raise PerfError(f"{options.payload_file} is empty")
        return lambda number: random.choice(lines)
    block = bytes(random.choices(range(65, 91), k=_BLOCK_BYTES + options.record_size))
    size = options.record_size
    return lambda number: block[(start := random.randrange(_BLOCK_BYTES)) : start + size]


class _PerfRun:
    def __init__(
        self, options: Namespace, producer: "Producer", payload: Callable[[int], bytes], *, is_transactional: bool
    ) -> None:
        self._options = options
        self._producer = producer
        self._payload = payload
        self._is_transactional = is_transactional
        self._transaction_s = (options.transaction_duration_ms or _DEFAULT_TRANSACTION_MS) / 1000
        self.all = Latencies(options.num_records, options.reporting_interval)
        self.steady: Latencies | None = None

    def send_all(self) -> None:
        options, producer = self._options, self._producer
        throttle = Throttle(options.throughput)
        began_s = time.monotonic()
        if self._is_transactional:
            producer.init_transactions()
            producer.begin()
        for number in range(options.num_records):
            if options.warmup_records and number == options.warmup_records:
                left = options.num_records - number
                self.steady = Latencies(left, options.reporting_interval, is_steady=True)
            value = self._payload(number)
            producer.send(options.topic, value, on_delivery=self._on_delivery(len(value), self.steady))
            throttle.wait(number + 1)
            if self._is_transactional and time.monotonic() - began_s >= self._transaction_s:
                producer.commit()
                producer.begin()
                began_s = time.monotonic()
        if self._is_transactional:
            producer.commit()

    def _on_delivery(self, size_bytes: int, steady: Latencies | None) -> Callable[["Delivery"], None]:
        sent_s = time.monotonic()

        def delivered(delivery: "Delivery") -> None:
            if problem := delivery.exception():
                print(f"{type(problem).__name__}: {problem}", file=sys.stderr)
                return
            latency_ms = int((time.monotonic() - sent_s) * 1000)
            self.all.add(latency_ms, size_bytes)
            if steady is not None:
                steady.add(latency_ms, size_bytes)

        return delivered


if __name__ == "__main__":
    sys.exit(main())
