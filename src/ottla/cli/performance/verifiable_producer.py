"""`kafka-verifiable-producer`: sends numbers that go up, and prints as JSON what was confirmed and what was not."""

import signal
import sys
import time
from argparse import Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.cli.client_settings import settings_in_file
from ottla.cli.failures import error_text
from ottla.cli.java_names import java_exception
from ottla.cli.performance.events import event
from ottla.cli.performance.throttle import Throttle
from ottla.cli.performance.tool_options import FAILURES, ToolParser, complain, deprecated, tell_troubles
from ottla.config.scopes import Scope

if TYPE_CHECKING:
    from ottla.client.blocking.producer import Producer
    from ottla.client.producer.append import Delivery


def main(arguments: list[str] | None = None) -> int:
    options = argument_parser().parse_args(arguments)
    deprecated(options, "--producer.config", "--command-config", "producer_config")
    try:
        return _run(options)
    except FAILURES as problem:
        return complain("kafka-verifiable-producer", problem)


def argument_parser() -> ToolParser:
    parser = ToolParser("kafka-verifiable-producer", "Sends numbers that go up, and prints JSON events.")
    parser.add_argument("--topic", required=True, help="where to send")
    parser.add_argument("--max-messages", type=int, default=-1, help="how many; -1 is until it is stopped")
    parser.add_argument("--throughput", type=float, default=-1, help="records a second; -1 is as fast as can be")
    parser.add_argument("--acks", type=int, default=-1, help="who confirms: 0, 1 or -1 for all (default: -1)")
    parser.add_argument("--producer.config", dest="producer_config", metavar="FILE", help="the old --command-config")
    parser.add_argument("--message-create-time", type=int, default=-1, metavar="MS", help="the first record's time")
    parser.add_argument("--value-prefix", type=int, help="written before every value, with a dot")
    parser.add_argument("--repeating-keys", type=int, help="keys from 0 to before this, again and again")
    parser.add_argument("--command-config", metavar="FILE", help="a properties file of the producer")
    parser.add_servers()
    return parser


def _run(options: Namespace) -> int:
    from ottla.client.blocking.producer import Producer

    settings: dict[str, object] = dict(
        settings_in_file(options.command_config or options.producer_config, Scope.PRODUCER)
    )
    # As Kafka's tool: a failure is reported at once, and not tried again behind its back.
    settings |= {"bootstrap.servers": options.bootstrap_server, "acks": str(options.acks), "retries": "0"}
    settings.setdefault("enable.idempotence", "false")
    known = {name: value for name, value in settings.items() if not name.endswith(".serializer")}
    sending = _Sending(options)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, sending.stop)
    began_s = time.monotonic()
    tell_troubles()
    with Producer(known) as producer:
        event("startup_complete")
        sending.send_all(producer)
    event("shutdown_complete")
    seconds = max(time.monotonic() - began_s, 0.001)
    event(
        "tool_data",
        sent=sending.sent,
        acked=sending.acked,
        target_throughput=int(options.throughput),
        avg_throughput=sending.acked / seconds,
    )
    return 0


class _Sending:
    def __init__(self, options: Namespace) -> None:
        self.sent = self.acked = 0
        self._options = options
        self._is_stopped = False

    def stop(self, *_: object) -> None:
        """For a signal: what was sent is waited for, and reported."""
        self._is_stopped = True

    def send_all(self, producer: "Producer") -> None:
        options = self._options
        throttle = Throttle(options.throughput, lambda: self._is_stopped)
        created_ms = options.message_create_time
        while not self._is_stopped and (options.max_messages < 0 or self.sent < options.max_messages):
            number = self.sent
            value = f"{options.value_prefix}.{number}" if options.value_prefix is not None else str(number)
            key = str(number % options.repeating_keys) if options.repeating_keys else None
            producer.send(
                options.topic,
                value.encode(),
                None if key is None else key.encode(),
                timestamp_ms=created_ms + number if created_ms >= 0 else None,
                on_delivery=self._on_delivery(key, value),
            )
            self.sent += 1
            throttle.wait(self.sent)

    def _on_delivery(self, key: str | None, value: str) -> Callable[["Delivery"], None]:
        def delivered(delivery: "Delivery") -> None:
            if problem := delivery.exception():
                event(
                    "producer_send_error",
                    topic=self._options.topic,
                    key=key,
                    value=value,
                    exception=f"class {java_exception(problem)}",
                    message=error_text(problem),
                )
                return
            self.acked += 1
            place = delivery.result()
            event(
                "producer_send_success",
                key=key,
                value=value,
                offset=-1 if place.offset is None else place.offset,
                topic=place.topic,
                partition=place.partition,
            )

        return delivered


if __name__ == "__main__":
    sys.exit(main())
