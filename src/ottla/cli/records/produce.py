"""`ottla produce TOPIC [FILE…]`: sends lines of files or of standard input, as values or as JSON records.

The exit code is 1 if a record was not delivered, or a line was no record; what could be sent is sent all the same.
"""

import os
import sys
import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO

from ottla.cli.help_format import CommandParser
from ottla.cli.records.connecting import FAILURES, Cluster, add_connection, at_least, complain
from ottla.cli.records.progress import Progress
from ottla.cli.records.record_json import NotARecord, Outgoing, parse_line
from ottla.config.scopes import Scope

if TYPE_CHECKING:
    from ottla.client.blocking.producer import Producer
    from ottla.client.producer.append import Delivery

_COMPLAINTS = 10
"""After so many, failures are only counted."""
_TICK_S = 0.01


def main(arguments: list[str] | None = None) -> int:
    options = argument_parser().parse_intermixed_args(arguments)
    settings = {"acks": options.acks, "compression_type": options.compression, "client_id": "ottla-produce"}
    try:
        progress = Progress("produced", is_quiet=options.quiet)
        if options.files and "-" not in options.files:
            progress.total, progress.is_in_bytes = sum(map(os.path.getsize, options.files)), True
        with Cluster.of(options, Scope.PRODUCER).producer(**settings) as producer:
            sending = _Sending(options, producer, progress)
            for path in options.files or ["-"]:
                sending.send_file(path)
            producer.flush()
        progress.end(f"{sending.failed:,} failed" if sending.failed else "")
        return 1 if sending.failed else 0
    except FAILURES as problem:
        return complain("ottla produce", problem)


def argument_parser() -> ArgumentParser:
    parser = CommandParser(
        prog="ottla produce",
        description="Sends each line of the files, or of standard input, as a record.",
    )
    parser.add_argument("topic", metavar="TOPIC", help="where to send")
    parser.add_argument("files", nargs="*", metavar="FILE", help="what to send; - is standard input")
    add_connection(parser)
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="lines are JSON, as `ottla consume --json` writes them")
    how.add_argument("--key-separator", metavar="TEXT", help="lines are a key, this, and a value")
    parser.add_argument("--key", help="the key of records that have none")
    parser.add_argument(
        "--header", type=_header, action="append", default=[], metavar="NAME=VALUE", help="a header of every record"
    )
    parser.add_argument("-p", "--partition", type=at_least(0), metavar="N", help="send all records to this partition")
    parser.add_argument("--rate", type=_rate, metavar="N", help="send at most so many records a second")
    parser.add_argument("--acks", choices=("0", "1", "all"), default="all", help="who confirms (default: %(default)s)")
    parser.add_argument("--compression", choices=("none", "gzip", "snappy", "lz4", "zstd"), default="none")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress on standard error")
    return parser


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not rate > 0:
        raise ArgumentTypeError(f"{text!r}: it must be a number above 0")
    return rate


def _header(text: str) -> tuple[str, bytes]:
    name, _, value = text.partition("=")
    return name, value.encode()


class _Sending:
    def __init__(self, options: Namespace, producer: "Producer", progress: Progress) -> None:
        self.failed = 0
        self._options = options
        self._producer = producer
        self._progress = progress
        self._headers = tuple(options.header)
        self._key = None if options.key is None else options.key.encode()
        self._separator = None if options.key_separator is None else options.key_separator.encode()
        self._began_s = time.monotonic()

    def send_file(self, path: str) -> None:
        if path == "-":
            self._send_lines("standard input", sys.stdin.buffer)
        else:
            with open(path, "rb") as file:
                self._send_lines(path, file)

    def _send_lines(self, name: str, lines: BinaryIO) -> None:
        for number, line in enumerate(_without_ends(lines), 1):
            try:
                record = self._record(line)
            except NotARecord as problem:
                self._fail(f"{name}, line {number}: {problem}")
                continue
            self._wait_for_turn()
            self._send(record)
            self._progress.add(len(line))

    def _record(self, line: bytes) -> Outgoing:
        if self._options.json:
            return parse_line(line)
        if self._separator is not None:
            key, separator, value = line.partition(self._separator)
            if not separator:
                raise NotARecord(f"no {self._options.key_separator!r} in it")
            return Outgoing(value, key)
        return Outgoing(line)

    def _send(self, record: Outgoing) -> None:
        partition = self._options.partition
        self._producer.send(
            self._options.topic,
            record.value,
            self._key if record.key is None else record.key,
            partition=record.partition if partition is None else partition,
            timestamp_ms=record.timestamp_ms,
            headers=(*record.headers, *self._headers) or None,
            on_delivery=self._delivered,
        )

    def _delivered(self, delivery: "Delivery") -> None:
        if problem := delivery.exception():
            self._fail(str(problem))

    def _fail(self, reason: str) -> None:
        self.failed += 1
        if self.failed <= _COMPLAINTS:
            print(f"ottla produce: {reason}", file=sys.stderr)

    def _wait_for_turn(self) -> None:
        """Keeps to `--rate` over the whole run, in steps too short to be seen."""
        if self._options.rate:
            due_s = self._began_s + self._progress.count / self._options.rate
            while (wait_s := due_s - time.monotonic()) > 0:
                time.sleep(min(wait_s, _TICK_S) if wait_s < _TICK_S else wait_s)
                self._progress.show()


def _without_ends(lines: BinaryIO) -> Iterator[bytes]:
    for line in lines:
        yield line.removesuffix(b"\n").removesuffix(b"\r")
