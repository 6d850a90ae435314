"""`ottla consume TOPIC`: writes records to a file or to standard output, as values or as JSON lines.

Without a group it reads from the beginning to what is the end when it starts. With a group it continues where the group
was, and commits what is written: after the bytes are handed to the system, so that a crash repeats and never loses.
"""

import sys
from argparse import ArgumentParser, Namespace
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

from ottla.base.ids import TopicPartition
from ottla.cli.help_format import CommandParser
from ottla.cli.records.connecting import FAILURES, Cluster, add_connection, at_least, complain, try_for_ever
from ottla.cli.records.decoding import Decoder, Undecoded, add_decoders, decode, decoder_named
from ottla.cli.records.moments import moment
from ottla.cli.records.progress import Progress
from ottla.cli.records.reading_range import Remaining, Start, end_offsets, partitions_of, records_between, start_offsets
from ottla.cli.records.record_format import record_format
from ottla.cli.stopping import INTERRUPTED, stop_on_terminate
from ottla.config.scopes import Scope

if TYPE_CHECKING:
    from ottla.client.blocking.consumer import Consumer
    from ottla.records.kernel import ConsumerRecord

_POLL_S = 0.5


def main(arguments: list[str] | None = None) -> int:
    parser = argument_parser()
    options = parser.parse_args(arguments)
    if options.append and not options.output:
        parser.error("--append is for a file: name it with --output")
    if options.key_separator is not None and (options.json or options.format):
        parser.error("--json and --format say where keys go: no --key-separator with them")
    if options.format and (options.decode or options.decode_key):
        parser.error("--format writes the bytes of keys and values: no --decode with it")
    progress = Progress("consumed", is_quiet=options.quiet)
    try:
        with ExitStack() as stack:
            settings = {"auto_offset_reset": "earliest", "enable_auto_commit": False, "client_id": "ottla-consume"}
            consumer = stack.enter_context(
                Cluster.of(options, Scope.CONSUMER).consumer(group_id=options.group, **settings)
            )
            # Python's own standard output may be unbuffered, and would then write some of what it is given.
            where: str | int = options.output or sys.stdout.fileno()
            how: Literal["ab", "wb"] = "ab" if options.append else "wb"
            output = stack.enter_context(open(where, how, closefd=bool(options.output)))
            consuming = _Consuming(options, consumer, output, progress)
            is_interrupted = False
            try:
                with stop_on_terminate():
                    consuming.run()
            except KeyboardInterrupt:
                is_interrupted = not options.follow  # that is how it ends when it follows
            consuming.commit()
            progress.end("stopped before the end" if is_interrupted else "")
            return INTERRUPTED if is_interrupted else 0
    except FAILURES as problem:
        return complain("ottla consume", problem)


def argument_parser() -> ArgumentParser:
    parser = CommandParser(
        prog="ottla consume",
        description="Writes the records of a topic, one a line, up to what is the end now.",
    )
    parser.add_argument("topic", metavar="TOPIC", help="what to read")
    add_connection(parser)
    parser.add_argument("-o", "--output", metavar="FILE", help="where to write (default: standard output)")
    parser.add_argument("--append", action="store_true", help="keep what is in the file")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="a JSON object a line, with key, headers, time and place")
    how.add_argument(
        "--format",
        type=record_format,
        metavar="FORMAT",
        help=r"as kcat's -f: '%%t %%p %%o %%k %%s\n'; nothing is added",
    )
    parser.add_argument("--key-separator", metavar="TEXT", help="write keys before values, with this between them")
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--from-beginning", action="store_true", help="begin with the oldest record, as it does without these options"
    )
    where.add_argument("-g", "--group", help="continue where this group was, and commit what is written")
    where.add_argument("--offset", type=at_least(0), metavar="N", help="begin with this offset of each partition")
    where.add_argument("--since", type=moment, metavar="TIME", help="begin with the first record of that time")
    where.add_argument(
        "-n", "--last", type=at_least(0), metavar="N", help="begin N records before the end of each partition"
    )
    parser.add_argument(
        "-p", "--partition", type=at_least(0), action="append", default=[], metavar="N", help="only this one"
    )
    parser.add_argument("-f", "--follow", action="store_true", help="wait for more at the end")
    parser.add_argument("--max", type=at_least(1), metavar="N", help="end after so many records")
    add_decoders(parser)
    parser.set_defaults(decode=None, decode_key=None)
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress on standard error")
    return parser


class _Consuming:
    def __init__(self, options: Namespace, consumer: "Consumer", output: BinaryIO, progress: Progress) -> None:
        self._options = options
        self._consumer = consumer
        self._output = output
        self._progress = progress
        self._decode_key = _decoder(options, is_key=True)
        self._decode_value = _decoder(options, is_key=False)
        self._separator = None if options.key_separator is None else options.key_separator.encode()
        self._next: dict[TopicPartition, int] = {}
        self._lines: list[bytes] = []
        """Read and not written yet."""

    def run(self) -> None:
        remaining = self._begin_with_group() if self._options.group else self._begin()
        try_for_ever()
        while True:
            records = self._consumer.poll(_POLL_S)
            for record in records:
                if self._is_enough():
                    break
                if remaining is None or remaining.includes(record.topic, record.partition, record.offset):
                    self._write(record)
            self.commit()
            self._progress.show()
            if self._is_enough() or (remaining is not None and remaining.is_done()):
                return

    def commit(self) -> None:
        """Writes and commits what was read. After an interrupt, which may come anywhere, it may write lines again."""
        self._output.write(b"".join(self._lines))
        self._output.flush()
        self._lines.clear()
        if self._options.group and self._next:
            self._consumer.commit(self._next)
            self._next = {}

    def _is_enough(self) -> bool:
        return self._options.max is not None and self._progress.count >= self._options.max

    def _begin(self) -> Remaining | None:
        options, consumer = self._options, self._consumer
        partitions = partitions_of(consumer, [options.topic], options.partition)
        at_beginning = options.since is None and options.last is None and options.offset is None
        start = Start(at_beginning, options.since, options.last, options.offset)
        starts = start_offsets(consumer, partitions, start)
        ends = None if options.follow else end_offsets(consumer, partitions)
        consumer.assign(partitions)
        for partition, offset in starts.items():
            consumer.seek(partition, offset)
        if ends is None:
            return None
        self._progress.total = options.max or records_between(starts, ends)
        return Remaining(consumer, ends)

    def _begin_with_group(self) -> Remaining | None:
        """Only with `--follow` and all partitions it is a member: a group would share them with others."""
        options, consumer = self._options, self._consumer
        if options.follow and not options.partition:
            consumer.subscribe([options.topic])
            return None
        partitions = partitions_of(consumer, [options.topic], options.partition)
        ends = None if options.follow else end_offsets(consumer, partitions)
        consumer.assign(partitions)
        return None if ends is None else Remaining(consumer, ends)

    def _write(self, record: "ConsumerRecord") -> None:
        if self._options.format is not None:
            line = self._options.format(record)
        elif self._options.json:
            from ottla.cli.records.record_json import record_line

            line = record_line(record, **self._decoded(record)).encode() + b"\n"
        else:
            shown = {name: _bytes(value) for name, value in self._decoded(record).items()}
            line = (shown.get("value", record.value) or b"") + b"\n"
            if self._separator is not None:
                line = (shown.get("key", record.key) or b"") + self._separator + line
        self._lines.append(line)
        self._next[TopicPartition(record.topic, record.partition)] = record.offset + 1
        self._progress.add(len(line))

    def _decoded(self, record: "ConsumerRecord") -> dict[str, Any]:
        """What decoders made of key and value, where they were asked for."""
        found: dict[str, Any] = {}
        for name, decoder, content in (
            ("key", self._decode_key, record.key),
            ("value", self._decode_value, record.value),
        ):
            if decoder is not None:
                value = decode(decoder, record.topic, content, record.headers)
                found[name] = value.content if isinstance(value, Undecoded) else value
        return found


def _decoder(options: Namespace, *, is_key: bool) -> Decoder | None:
    name = options.decode_key if is_key else options.decode
    return None if name is None else decoder_named(name, options.registry, is_key=is_key)


def _bytes(value: Any) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    from ottla.cli.records.record_json import to_json

    return to_json(value, separators=(",", ":")).encode()
