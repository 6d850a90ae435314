"""`ottla tail TOPIC…`: prints records as they come, and the last ones before. Joins no group and commits nothing."""

import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from ottla.cli.colours import BOLD, CYAN, DIM, RED, Palette, palette_for
from ottla.cli.help_format import CommandParser
from ottla.cli.records.connecting import FAILURES, Cluster, add_connection, at_least, complain, try_for_ever
from ottla.cli.records.decoding import Decoder, Undecoded, add_decoders, decode, decoder_named
from ottla.cli.records.moments import moment, shown
from ottla.cli.records.reading_range import Remaining, Start, end_offsets, partitions_of, start_offsets
from ottla.cli.records.record_filter import RecordFilter, header_wanted, pattern
from ottla.cli.records.record_format import RecordFormat, record_format
from ottla.config.scopes import Scope

if TYPE_CHECKING:
    from ottla.records.kernel import ConsumerRecord

_POLL_S = 0.5


def main(arguments: list[str] | None = None) -> int:
    parser = argument_parser()
    options = parser.parse_intermixed_args(arguments)
    if options.json and options.pretty:
        parser.error("--json prints an object a line: no --pretty with it")
    try:
        printer = _Printer(options, palette_for(sys.stdout))
        with Cluster.of(options, Scope.CONSUMER).consumer(enable_auto_commit=False, client_id="ottla-tail") as consumer:
            partitions = partitions_of(consumer, options.topics, options.partition)
            start = Start(options.from_beginning, options.since, options.last, options.offset)
            starts = start_offsets(consumer, partitions, start)
            has_end = options.no_follow or options.until is not None
            ends = end_offsets(consumer, partitions, options.until) if has_end else None
            consumer.assign(partitions)
            for partition, offset in starts.items():
                consumer.seek(partition, offset)
            remaining = Remaining(consumer, ends) if ends is not None else None
            try_for_ever()
            while not (remaining and remaining.is_done()):
                for record in consumer.poll(_POLL_S):
                    if remaining and not remaining.includes(record.topic, record.partition, record.offset):
                        continue
                    printer.show(record)
                    if options.max is not None and printer.count >= options.max:
                        return 0
                sys.stdout.flush()
    except KeyboardInterrupt:
        return 0  # how a tail is ended
    except FAILURES as problem:
        return complain("ottla tail", problem)
    return 0


def argument_parser() -> ArgumentParser:
    parser = CommandParser(
        prog="ottla tail",
        description="Prints the records of topics as they come. Joins no group and commits nothing.",
        epilog="TIME is like 2026-03-01T12:00, 1772366400000, or 10m for ten minutes ago. PATTERN is a regular "
        "expression that matches anywhere. A DECODER is auto, text, json, hex, base64, long, double, schema, the "
        "name of an entry point in the group ottla.decoders, or module:function.",
    )
    parser.add_argument("topics", nargs="+", metavar="TOPIC", help="what to read")
    add_connection(parser)
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "-n", "--last", type=at_least(0), metavar="N", help="begin N records before the end of each partition"
    )
    where.add_argument("--from-beginning", action="store_true", help="begin with the oldest record")
    where.add_argument("--offset", type=at_least(0), metavar="N", help="begin with this offset of each partition")
    where.add_argument("--since", type=moment, metavar="TIME", help="begin with the first record of that time")
    parser.add_argument("--until", type=moment, metavar="TIME", help="end before the first record of that time")
    parser.add_argument("--no-follow", action="store_true", help="end at what is the end now")
    parser.add_argument("--max", type=at_least(1), metavar="N", help="end after so many records were printed")
    parser.add_argument(
        "-p", "--partition", type=at_least(0), action="append", default=[], metavar="N", help="only this one"
    )
    parser.add_argument("-k", "--key", type=pattern, metavar="PATTERN", help="only records with such a key")
    parser.add_argument("-v", "--value", type=pattern, metavar="PATTERN", help="only records with such a value")
    parser.add_argument(
        "--header",
        type=header_wanted,
        action="append",
        default=[],
        metavar="NAME[=PATTERN]",
        help="only records that have this header, with such a value",
    )
    add_decoders(parser)
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="a JSON object a line, with everything")
    how.add_argument(
        "--format",
        type=record_format,
        metavar="FORMAT",
        help=r"as kcat's -f: '%%t %%p %%o %%k %%s\n'; nothing is added",
    )
    parser.add_argument("--pretty", action="store_true", help="JSON values over several lines")
    return parser


class _Printer:
    def __init__(self, options: Namespace, paint: Palette) -> None:
        self.count = 0
        self._paint = paint
        self._decode_key: Decoder = decoder_named(options.decode_key, options.registry, is_key=True)
        self._decode_value: Decoder = decoder_named(options.decode, options.registry)
        self._wanted = RecordFilter(options.key, options.value, tuple(options.header), options.since, options.until)
        self._as_json = options.json
        self._format: RecordFormat | None = options.format
        self._indent = 2 if options.pretty else None

    def show(self, record: "ConsumerRecord") -> None:
        key = decode(self._decode_key, record.topic, record.key, record.headers)
        value = decode(self._decode_value, record.topic, record.value, record.headers)
        if not self._wanted.wants(_text(key), _text(value), record.headers, record.timestamp):
            return
        self.count += 1
        if self._format is not None:
            sys.stdout.buffer.write(self._format(record))
        elif self._as_json:
            from ottla.cli.records.record_json import record_line

            print(record_line(record, key=_plain(key), value=_plain(value)))
        else:
            print(self._line(record, key, value))

    def _line(self, record: "ConsumerRecord", key: Any, value: Any) -> str:
        paint = self._paint
        place = paint(f"{record.topic}-{record.partition}@{record.offset}", CYAN)
        parts = [paint(shown(record.timestamp), DIM), place]
        if key is not None:
            parts.append(paint(self._shown(key), BOLD))
        parts.append(paint("null", DIM) if value is None else self._shown(value))
        if record.headers:
            headers = " ".join(f"{name}={_header(content)}" for name, content in record.headers)
            parts.append(paint(f"[{headers}]", DIM))
        return "  ".join(parts)

    def _shown(self, value: Any) -> str:
        if isinstance(value, Undecoded):
            return f"{self._shown(value.content)} {self._paint(f'(not decoded: {value.problem})', RED)}"
        if isinstance(value, str):
            return value
        if isinstance(value, bytes):
            return repr(value)
        from ottla.cli.records.json_colours import json_shown

        return json_shown(value, self._paint, indent=self._indent)


def _text(value: Any) -> str | None:
    """What patterns are matched with."""
    value = _plain(value)
    if value is None or isinstance(value, str):
        return value
    from ottla.cli.records.record_json import to_json

    return to_json(value)


def _plain(value: Any) -> Any:
    value = value.content if isinstance(value, Undecoded) else value
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _header(content: bytes | None) -> str:
    return "null" if content is None else content.decode(errors="backslashreplace")
