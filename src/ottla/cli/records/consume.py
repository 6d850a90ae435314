"""`ottla consume TOPIC`: writes records to a file or to standard output, as values or as JSON lines.

Without a group it reads from the beginning to what is the end when it starts. With a group it goes on where the group
was, and commits what is written: after the bytes are handed to the system, so that a crash repeats and never loses.
"""

import sys
from argparse import ArgumentParser, Namespace
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, BinaryIO, Literal

from ottla.base.ids import TopicPartition
from ottla.cli.help_format import help_formatter
from ottla.cli.records.connecting import FAILURES, Cluster, add_connection, at_least, complain
from ottla.cli.records.moments import moment
from ottla.cli.records.progress import Progress
from ottla.cli.records.reading_range import Remaining, Start, end_offsets, partitions_of, records_between, start_offsets
from ottla.cli.stopping import stop_on_terminate
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
    if options.json and options.key_separator is not None:
        parser.error("--json has keys in fields of their own: no --key-separator with it")
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
            with suppress(KeyboardInterrupt), stop_on_terminate():
                consuming.run()
            consuming.commit()
            progress.end()
    except FAILURES as problem:
        return complain("ottla consume", problem)
    return 0


def argument_parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="ottla consume",
        description="Writes the records of a topic, one a line, up to what is the end now.",
        formatter_class=help_formatter,
        allow_abbrev=False,
    )
    parser.add_argument("topic", metavar="TOPIC", help="what to read")
    add_connection(parser)
    parser.add_argument("-o", "--output", metavar="FILE", help="where to write (default: standard output)")
    parser.add_argument("--append", action="store_true", help="keep what is in the file")
    parser.add_argument("--json", action="store_true", help="a JSON object a line, with key, headers, time and place")
    parser.add_argument("--key-separator", metavar="TEXT", help="write keys before values, with this between them")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("-g", "--group", help="go on where this group was, and commit what is written")
    where.add_argument("--since", type=moment, metavar="TIME", help="begin with the first record of that time")
    where.add_argument(
        "-n", "--last", type=at_least(0), metavar="N", help="begin N records before the end of each partition"
    )
    parser.add_argument(
        "-p", "--partition", type=at_least(0), action="append", default=[], metavar="N", help="only this one"
    )
    parser.add_argument("-f", "--follow", action="store_true", help="wait for more at the end")
    parser.add_argument("--max", type=at_least(1), metavar="N", help="end after so many records")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress on standard error")
    return parser


class _Consuming:
    def __init__(self, options: Namespace, consumer: "Consumer", output: BinaryIO, progress: Progress) -> None:
        self._options = options
        self._consumer = consumer
        self._output = output
        self._progress = progress
        self._separator = None if options.key_separator is None else options.key_separator.encode()
        self._next: dict[TopicPartition, int] = {}
        self._lines: list[bytes] = []
        """Read and not written yet."""

    def run(self) -> None:
        remaining = self._begin_with_group() if self._options.group else self._begin()
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
        at_beginning = options.since is None and options.last is None
        starts = start_offsets(consumer, partitions, Start(at_beginning, options.since, options.last))
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
        if self._options.json:
            from ottla.cli.records.record_json import record_line

            line = record_line(record).encode()
        else:
            line = record.value or b""
            if self._separator is not None:
                line = (record.key or b"") + self._separator + line
        self._lines.append(line + b"\n")
        self._next[TopicPartition(record.topic, record.partition)] = record.offset + 1
        self._progress.add(len(line))
