"""`kafka-console-producer`: sends the lines of standard input."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, BinaryIO, Final, Protocol

from ottla.cli.console.client_properties import one_of, parse_pairs, read_file
from ottla.cli.console.console_producer_options import PROGRAM, SETTINGS
from ottla.cli.console.line_reader import LineReader, ParsedLine
from ottla.cli.failures import Terse, error_text
from ottla.cli.options.checks import UsageError, require, run_program
from ottla.cli.options.reading import Given
from ottla.cli.sessions import open_producer
from ottla.client.errors import KafkaError

if TYPE_CHECKING:
    from ottla.client.producer.append import Delivery

_DEPRECATED: Final = "Warning: --{old} is deprecated and will be removed in a future version. Use --{new} instead."
_LINE_READER: Final = "org.apache.kafka.tools.LineMessageReader"


def main(arguments: list[str]) -> int:
    return run_program(PROGRAM, arguments, run, help_with_options=True)


class Reader(Protocol):
    def lines(self, source: BinaryIO) -> Iterator[ParsedLine]: ...


def run(given: Given, make_reader: Callable[[dict[str, str]], Reader] = LineReader) -> int:
    require(given, "topic")
    if "bootstrap-server" not in given:
        raise UsageError("Error while validating the bootstrap address\n")
    settings, reader = _settings(given), make_reader(_reader_properties(given))
    if given.text("line-reader") != _LINE_READER:
        raise Terse(f"java.lang.ClassNotFoundException: {given.text('line-reader')}")
    return _send(given.text("topic"), settings, reader, waits="sync" in given)


def _settings(given: Given) -> dict[str, str]:
    pairs = one_of(given, "producer-property", "command-property", _DEPRECATED)
    file = one_of(given, "producer.config", "command-config", _DEPRECATED)
    settings = {**read_file(given.get(file)), **parse_pairs(given.all(pairs))}
    settings["bootstrap.servers"] = given.text("bootstrap-server")
    if "compression-codec" in given:
        settings["compression.type"] = given.get("compression-codec") or "gzip"
    settings.setdefault("client.id", "console-producer")
    for option, name in SETTINGS.items():
        if option in given or name not in settings:
            settings[name] = given.text(option)
    return settings


def _reader_properties(given: Given) -> dict[str, str]:
    pairs = one_of(given, "property", "reader-property", _DEPRECATED)
    return {**read_file(given.get("reader-config")), **parse_pairs(given.all(pairs))}


def _send(topic: str, settings: dict[str, str], reader: Reader, *, waits: bool) -> int:
    """A record that could not be sent is reported; the others are sent all the same, and the status is Kafka's 0.

    With `--sync` the first such record is the last, and raises.
    """
    prompt = ">" if sys.stdin.isatty() else ""
    with open_producer(settings) as producer:
        print(prompt, end="", flush=True)
        for line in reader.lines(sys.stdin.buffer):
            try:
                on_delivery = None if waits else _tell_failure
                sent = producer.send(topic, line.value, line.key, headers=line.headers, on_delivery=on_delivery)
                if waits:
                    sent.result()
            except KafkaError as problem:
                if waits:
                    raise
                _tell(problem)
            print(prompt, end="", flush=bool(prompt))
    return 0


def _tell_failure(delivery: Delivery) -> None:
    problem = delivery.exception()
    if problem is not None:
        _tell(problem)


def _tell(problem: BaseException) -> None:
    print(f"Error when sending message: {error_text(problem)}", file=sys.stderr)
