"""`kafka-consumer-perf-test`: reads records in a group, and prints how many and how fast.

Options and lines are those of Apache Kafka 4.3.1. Where it differs: `--date-format` knows the usual letters of Java's
patterns and refuses others by name, and `--include` is a regular expression of Python's, which most of Java's are.
"""

import re
import sys
import time
from argparse import Namespace
from random import randrange
from typing import TYPE_CHECKING, Any

from ottla.cli.client_settings import settings_in_file
from ottla.cli.performance.java_dates import date_formatter
from ottla.cli.performance.tool_options import (
    FAILURES,
    ToolParser,
    complain,
    key_value,
    positive,
    print_metrics,
    tell_troubles,
)
from ottla.config.scopes import Scope

if TYPE_CHECKING:
    from ottla.client.blocking.consumer import Consumer

_CLIENT_ID = "perf-consumer-client"
_MB = 1024 * 1024
_POLL_S = 0.1


def main(arguments: list[str] | None = None) -> int:
    parser = argument_parser()
    options = parser.parse_args(arguments)
    if (options.num_records is None) == (options.messages is None):
        parser.error("exactly one of the options --num-records and --messages is needed")
    if (options.topic is None) == (options.include is None):
        parser.error("exactly one of the options --topic and --include is needed")
    if options.messages is not None:
        print("Warning: --messages is deprecated. Use --num-records instead.")
    if options.consumer_config:
        print("Warning: --consumer.config is deprecated. Use --command-config instead.")
    try:
        options.format = date_formatter(options.date_format)
        return _run(options)
    except ValueError as problem:
        parser.error(str(problem))
    except FAILURES as problem:
        return complain("kafka-consumer-perf-test", problem)


def argument_parser() -> ToolParser:
    parser = ToolParser("kafka-consumer-perf-test", "Measures how fast a consumer of a group reads records.")
    parser.add_servers()
    parser.add_argument("--topic", help="the topic to read")
    parser.add_argument("--include", metavar="PATTERN", help="the topics to read, as a regular expression")
    parser.add_argument("--group", default=f"perf-consumer-{randrange(100_000)}", help="the group (default: a new one)")
    parser.add_argument("--num-records", type=positive, help="how many to read")
    parser.add_argument("--messages", type=positive, help="the old name of --num-records")
    parser.add_argument("--fetch-size", type=positive, default=_MB, help="bytes of a partition in a fetch (1048576)")
    parser.add_argument("--from-latest", action="store_true", help="where the group has no offsets, begin at the end")
    parser.add_argument("--socket-buffer-size", type=int, default=2 * _MB, help="bytes to receive (2097152)")
    parser.add_argument("--command-config", metavar="FILE", help="a properties file of the consumer")
    parser.add_argument(
        "--consumer.config", dest="consumer_config", metavar="FILE", help="the old name of --command-config"
    )
    parser.add_argument("--command-property", type=key_value, action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--print-metrics", action="store_true", help="print the consumer's metrics in the end")
    parser.add_argument("--show-detailed-stats", action="store_true", help="a line for every reporting interval")
    parser.add_argument("--reporting-interval", type=positive, default=5000, metavar="MS", help="(default: 5000)")
    parser.add_argument("--timeout", type=int, default=10_000, metavar="MS", help="how long to wait for more (10000)")
    parser.add_argument("--hide-header", action="store_true", help="do not name the columns")
    parser.add_argument("--date-format", default="yyyy-MM-dd HH:mm:ss:SSS", help="in Java's letters")
    parser.add_version()
    return parser


def _settings(options: Namespace) -> dict[str, object]:
    settings: dict[str, object] = dict(
        settings_in_file(options.command_config or options.consumer_config, Scope.CONSUMER)
    )
    settings |= dict(options.command_property)
    settings |= {
        "bootstrap.servers": options.bootstrap_server,
        "group.id": options.group,
        "receive.buffer.bytes": options.socket_buffer_size,
        "max.partition.fetch.bytes": options.fetch_size,
        "auto.offset.reset": "latest" if options.from_latest else "earliest",
    }
    settings.setdefault("client.id", _CLIENT_ID)
    return {name: value for name, value in settings.items() if not name.endswith(".deserializer")}


def _run(options: Namespace) -> int:
    from ottla.client.blocking.consumer import Consumer

    if not options.hide_header:
        first = "time, threadId" if options.show_detailed_stats else "start.time, end.time"
        print(
            f"{first}, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, fetch.time.ms, "
            "fetch.MB.sec, fetch.nMsg.sec"
        )
    settings = _settings(options)
    tell_troubles()
    with Consumer(settings) as consumer:
        reading = _Reading(options, consumer)
        reading.run()
        if not options.show_detailed_stats:
            print(reading.summary_line())
        if options.print_metrics:
            print_metrics("consumer-metrics", str(settings["client.id"]), consumer.metrics())
    return 0


class _Reading:
    """Counts, and is the listener of the group: the time in which it had no partitions was spent on rebalances."""

    def __init__(self, options: Namespace, consumer: "Consumer") -> None:
        self._options = options
        self._consumer = consumer
        self._wanted = options.num_records or options.messages
        self._records = self._bytes = 0
        self._join_ms = self._join_ms_of_round = 0
        self._began_ms = self._ended_ms = self._join_began_ms = _now_ms()

    def on_partitions_revoked(self, partitions: Any) -> None:
        self._join_began_ms = _now_ms()

    def on_partitions_lost(self, partitions: Any) -> None:
        self._join_began_ms = _now_ms()

    def on_partitions_assigned(self, partitions: Any) -> None:
        took_ms = _now_ms() - self._join_began_ms
        self._join_ms += took_ms
        self._join_ms_of_round += took_ms

    def run(self) -> None:
        options, consumer = self._options, self._consumer
        if options.topic:
            consumer.subscribe([options.topic], listener=self)
        else:
            consumer.subscribe(pattern=re.compile(options.include), listener=self)
        last_ms = reported_ms = now_ms = _now_ms()
        reported_records = reported_bytes = 0
        while self._records < self._wanted and now_ms - last_ms <= options.timeout:
            records = consumer.poll(_POLL_S)
            now_ms = _now_ms()
            if records:
                last_ms = now_ms
            for record in records:
                self._records += 1
                self._bytes += max(record.serialized_key_size, 0) + max(record.serialized_value_size, 0)
                if now_ms - reported_ms >= options.reporting_interval:
                    if options.show_detailed_stats:
                        print(self._line(reported_bytes, reported_records, reported_ms, now_ms), flush=True)
                    self._join_ms_of_round = 0
                    reported_ms, reported_records, reported_bytes = now_ms, self._records, self._bytes
        self._ended_ms = _now_ms()
        if self._records < self._wanted:
            print(
                "WARNING: Exiting before consuming the expected number of records: timeout "
                f"({options.timeout} ms) exceeded. You can use the --timeout option to increase the timeout."
            )

    def _line(self, old_bytes: int, old_records: int, old_ms: int, now_ms: int) -> str:
        elapsed_ms = max(now_ms - old_ms, 1)
        fetch_ms = elapsed_ms - self._join_ms_of_round
        size, count = (self._bytes - old_bytes) / _MB, self._records - old_records
        return (
            f"{self._options.format(now_ms)}, 0, {self._bytes / _MB:.4f}, {1000 * size / elapsed_ms:.4f}, "
            f"{self._records}, {1000 * count / elapsed_ms:.4f}, {self._join_ms_of_round}, {fetch_ms}, "
            f"{_rate(size, fetch_ms)}, {_rate(count, fetch_ms)}"
        )

    def summary_line(self) -> str:
        elapsed_ms = max(self._ended_ms - self._began_ms, 1)
        fetch_ms = elapsed_ms - self._join_ms
        size = self._bytes / _MB
        return (
            f"{self._options.format(self._began_ms)}, {self._options.format(self._ended_ms)}, {size:.4f}, "
            f"{1000 * size / elapsed_ms:.4f}, {self._records}, {1000 * self._records / elapsed_ms:.4f}, "
            f"{self._join_ms}, {fetch_ms}, {_rate(size, fetch_ms)}, {_rate(self._records, fetch_ms)}"
        )


def _rate(amount: float, elapsed_ms: int) -> str:
    """As Java prints a division by zero."""
    if elapsed_ms <= 0:
        return "Infinity" if amount else "NaN"
    return f"{1000 * amount / elapsed_ms:.4f}"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


if __name__ == "__main__":
    sys.exit(main())
