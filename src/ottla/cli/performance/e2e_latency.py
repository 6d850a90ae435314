"""`kafka-e2e-latency`: sends one record at a time, and measures how long until it was read.

Options and lines are those of Apache Kafka 4.3.1, the old positional arguments too.
"""

import sys
import time
from argparse import Namespace
from random import Random
from typing import TYPE_CHECKING

from ottla.base.errors import OttlaError
from ottla.base.ids import TopicPartition
from ottla.cli.client_settings import settings_in_file
from ottla.cli.performance.tool_options import FAILURES, ToolParser, complain, positive, tell_troubles
from ottla.config.scopes import Scope

if TYPE_CHECKING:
    from ottla.client.blocking.consumer import Consumer
    from ottla.client.blocking.producer import Producer

_TIMEOUT_S = 60.0
_POSITIONAL = ("bootstrap-server", "topic", "num-records", "producer-acks", "record-size", "command-config")
_LETTERS = range(65, 91)


class LatencyError(OttlaError):
    """A record did not come back, or not as it went."""


def main(arguments: list[str] | None = None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    parser = argument_parser()
    if words and not any(word.startswith("--") for word in words) and words[0] != "-h":
        if len(words) not in (5, 6):
            parser.error(
                f"Invalid number of arguments. Expected 5 or 6 positional arguments, but got {len(words)}. Usage: "
                f"{' '.join(_POSITIONAL[:5])} [optional] command-config"
            )
        print(
            "WARNING: Positional argument usage is deprecated and will be removed in Apache Kafka 5.0. Please use "
            f"named arguments instead: {', '.join(f'--{name}' for name in _POSITIONAL)}"
        )
        words = [part for name, word in zip(_POSITIONAL, words, strict=False) for part in (f"--{name}", word)]
    options = parser.parse_args(words)
    try:
        return _run(options)
    except FAILURES as problem:
        return complain("kafka-e2e-latency", problem)


def argument_parser() -> ToolParser:
    parser = ToolParser("kafka-e2e-latency", "Measures how long a record takes from a producer to a consumer.")
    parser.add_servers()
    parser.add_argument("--topic", required=True, help="the topic; made with one partition if it does not exist")
    parser.add_argument("--num-records", required=True, type=positive, help="how many to send")
    parser.add_argument("--producer-acks", required=True, choices=("1", "all"), help="who confirms a record")
    parser.add_argument("--record-size", required=True, type=positive, metavar="BYTES", help="of the value")
    parser.add_argument("--record-key-size", type=int, default=0, metavar="BYTES", help="of the key (0: none)")
    parser.add_argument("--num-headers", type=int, default=0, help="how many headers")
    parser.add_argument("--record-header-key-size", type=int, default=0, metavar="BYTES", help="of a header's name")
    parser.add_argument("--record-header-size", type=int, default=0, metavar="BYTES", help="of a header's value")
    parser.add_argument("--command-config", metavar="FILE", help="a properties file of both clients")
    parser.add_version()
    return parser


def _run(options: Namespace) -> int:
    from ottla.client.blocking.consumer import Consumer
    from ottla.client.blocking.producer import Producer

    servers = {"bootstrap.servers": options.bootstrap_server}
    tell_troubles(_TIMEOUT_S)
    _make_topic(options)
    reading = {**servers, "enable.auto.commit": "false", "auto.offset.reset": "latest", "fetch.max.wait.ms": "0"}
    writing = {**servers, "linger.ms": "0", "max.block.ms": str(2**63 - 1), "acks": options.producer_acks}
    with (
        Consumer({**settings_in_file(options.command_config, Scope.CONSUMER), **reading}) as consumer,
        Producer({**settings_in_file(options.command_config, Scope.PRODUCER), **writing}) as producer,
    ):
        partitions = [TopicPartition(info.topic, info.partition) for info in consumer.partitions_for(options.topic)]
        consumer.assign(partitions)
        for partition, offset in consumer.end_offsets(partitions).items():
            consumer.seek(partition, offset)
        latencies_ns = _measure(options, producer, consumer)
    total_ns = sum(latencies_ns)
    print(f"Avg latency: {total_ns / options.num_records / 1e6:.4f} ms")
    ordered_ms = sorted(latency // 1_000_000 for latency in latencies_ns)
    at = [ordered_ms[int(len(ordered_ms) * share)] for share in (0.5, 0.99, 0.999)]
    print(f"Percentiles: 50th = {at[0]}, 99th = {at[1]}, 99.9th = {at[2]}")
    return 0


def _measure(options: Namespace, producer: "Producer", consumer: "Consumer") -> list[int]:
    random = Random(0)

    def letters(size: int) -> bytes:
        return bytes(random.choices(_LETTERS, k=size))

    latencies_ns: list[int] = []
    for number in range(options.num_records):
        key = letters(options.record_key_size) if options.record_key_size else None
        value = letters(options.record_size)
        headers = [
            (letters(options.record_header_key_size).decode(), letters(options.record_header_size))
            for _ in range(options.num_headers)
        ]
        began_ns = time.perf_counter_ns()
        producer.send(options.topic, value, key, headers=headers or None).result(_TIMEOUT_S)
        records = consumer.poll(_TIMEOUT_S)
        elapsed_ns = time.perf_counter_ns() - began_ns
        if not records:
            raise LatencyError(f"poll() timed out before finding a result (timeout:[{_TIMEOUT_S * 1000:.0f}ms])")
        if len(records) != 1:
            raise LatencyError(f"Only one result was expected during this test. We found [{len(records)}]")
        [record] = records
        if (record.key, record.value, list(record.headers)) != (key, value, headers):
            raise LatencyError(
                "the record that was read is not the one that was sent: something else writes to the topic"
            )
        if not number % 1000:
            print(f"{number}\t{elapsed_ns / 1e6}", flush=True)
        latencies_ns.append(elapsed_ns)
    return latencies_ns


def _make_topic(options: Namespace) -> None:
    from ottla.client.admin.topics import NewTopic
    from ottla.client.blocking.admin import Admin

    settings = settings_in_file(options.command_config, Scope.ADMIN)
    with Admin({**settings, "bootstrap.servers": options.bootstrap_server}) as admin:
        if options.topic not in {topic.name for topic in admin.list_topics()}:
            print(
                f'Topic "{options.topic}" does not exist. '
                "Will create topic with 1 partition(s) and replication factor = 1"
            )
            admin.create_topics([NewTopic(options.topic, 1, 1)]).raise_first()


if __name__ == "__main__":
    sys.exit(main())
