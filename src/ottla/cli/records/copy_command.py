"""`ottla copy SOURCE DESTINATION`: records of a topic to another, in the same cluster or another.

Kept are the partition, the order in it, key, value, headers and timestamp. Offsets are the destination's own, unless
`--keep-offsets` insists on those of the source. A copy that is stopped goes on where it was, by a group (`--group`) or
a file (`--state`), and may repeat the last records; with `--exactly-once` or `--keep-offsets`, none.
"""

import sys
from argparse import ArgumentParser, Namespace
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

from ottla.base.errors import OttlaError
from ottla.base.ids import TopicPartition
from ottla.cli.help_format import help_formatter
from ottla.cli.records.connecting import FAILURES, Cluster, add_connection, at_least, complain
from ottla.cli.records.copy_progress import (
    CopyProgress,
    FileProgress,
    GroupProgress,
    NoProgress,
    TransactionProgress,
)
from ottla.cli.records.kept_offsets import KeptOffsets
from ottla.cli.records.moments import moment
from ottla.cli.records.progress import Progress
from ottla.cli.records.reading_range import Remaining, Start, end_offsets, partitions_of, records_between, start_offsets
from ottla.cli.stopping import stop_on_terminate
from ottla.config.scopes import Scope

if TYPE_CHECKING:
    from ottla.client.blocking.consumer import Consumer
    from ottla.client.blocking.producer import Producer
    from ottla.client.producer.append import Delivery
    from ottla.records.kernel import ConsumerRecord

_POLL_S = 0.5
_CLIENTS = (Scope.CONSUMER, Scope.PRODUCER, Scope.ADMIN)
_SAVE_RECORDS = 10_000
"""How much may be repeated after a crash, or is in one transaction."""


class CannotCopy(OttlaError):
    """The two topics, or the options, do not go together."""


def main(arguments: list[str] | None = None) -> int:
    parser = argument_parser()
    options = parser.parse_args(arguments)
    if options.exactly_once and (options.state or not options.group):
        parser.error("--exactly-once keeps its place in a --group at the destination")
    if options.keep_offsets:
        others = ("group", "state", "exactly_once", "since", "by_key")
        if given := [name.replace("_", "-") for name in others if getattr(options, name)]:
            parser.error(f"--keep-offsets has its place and partitions from the destination: no --{given[0]} with it")
    if options.to_server or options.to_config:
        servers = options.to_server or options.bootstrap_server
        source = Cluster.of(options, Scope.CONSUMER)
        destination = Cluster(servers, options.to_config, {}, _CLIENTS)
    else:
        source = destination = Cluster.of(options, *_CLIENTS)
    if source is destination and options.source == options.destination:
        parser.error("source and destination are the same topic")
    progress = Progress("copied", is_quiet=options.quiet)
    try:
        with ExitStack() as stack:
            copying = _Copying(options, stack, source, destination, progress)
            try:
                with stop_on_terminate():
                    copying.run()
            except KeyboardInterrupt:
                copying.leave()
        progress.end()
    except FAILURES as problem:
        return complain("ottla copy", problem)
    return 0


def argument_parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="ottla copy",
        description="Copies the records of a topic to another, with their partitions, keys, headers and timestamps, up "
        "to what is the end now.",
        formatter_class=help_formatter,
        allow_abbrev=False,
    )
    parser.add_argument("source", metavar="SOURCE", help="the topic to read")
    parser.add_argument("destination", metavar="DESTINATION", help="the topic to write, made if it does not exist")
    add_connection(parser)
    parser.add_argument("--to-server", metavar="HOST:PORT", help="the destination's cluster (default: the source's)")
    parser.add_argument("--to-config", metavar="FILE", help="a properties file for the destination's clients")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("-g", "--group", help="keep the place in a group, and go on there")
    where.add_argument("--state", metavar="FILE", help="keep the place in a file, and go on there")
    parser.add_argument("--exactly-once", action="store_true", help="records and place in one transaction")
    parser.add_argument("--keep-offsets", action="store_true", help="the source's offsets, or none: refused at gaps")
    parser.add_argument("--since", type=moment, metavar="TIME", help="begin there, where no place is kept")
    parser.add_argument("-f", "--follow", action="store_true", help="wait for more at the end")
    parser.add_argument("--max", type=at_least(1), metavar="N", help="end after so many records")
    parser.add_argument("--by-key", action="store_true", help="let keys choose the partition anew")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress on standard error")
    return parser


class _Copying:
    def __init__(
        self, options: Namespace, stack: ExitStack, source: Cluster, destination: Cluster, progress: Progress
    ) -> None:
        self._options = options
        self._shown = progress
        self._failure: BaseException | None = None
        self._kept: KeptOffsets | None = None
        self._next: dict[TopicPartition, int] = {}
        self._unsaved = 0
        group = None if options.exactly_once else options.group
        reading = {"enable_auto_commit": False, "isolation_level": "read_committed", "client_id": "ottla-copy"}
        self._consumer: Consumer = stack.enter_context(source.consumer(group_id=group, **reading))
        self._partitions = partitions_of(self._consumer, [options.source])
        count = self._make_destination(destination)
        transactional_id = f"{options.group}.{options.destination}" if options.exactly_once else None
        writing = {"transactional_id": transactional_id, "client_id": "ottla-copy"}
        self._producer: Producer = stack.enter_context(destination.producer(**writing))
        self._is_transactional = options.exactly_once
        if options.exactly_once:
            if count < len(self._partitions):
                raise CannotCopy(f"--exactly-once needs {len(self._partitions)} partitions in {options.destination}")
            # Fences off a copy that was stopped and may still be at work, before its place is read.
            self._producer.init_transactions()
        self._progress = self._progress_kept(stack, source, destination)

    def _make_destination(self, destination: Cluster) -> int:
        """The number of the destination's partitions."""
        options = self._options
        with destination.admin() as admin:
            if options.destination not in {topic.name for topic in admin.list_topics()}:
                from ottla.client.admin.topics import NewTopic

                admin.create_topics([NewTopic(options.destination, len(self._partitions))]).raise_first()
            described = admin.describe_topics([options.destination])
            count = len(described[options.destination].partitions)
        if count < len(self._partitions) and not options.by_key:
            raise CannotCopy(
                f"{options.destination} has {count} partitions and {options.source} {len(self._partitions)}: "
                "add partitions, or use --by-key"
            )
        return count

    def _progress_kept(self, stack: ExitStack, source: Cluster, destination: Cluster) -> CopyProgress:
        options = self._options
        if options.keep_offsets:
            copy = stack.enter_context(destination.consumer(enable_auto_commit=False))
            self._kept = KeptOffsets(self._consumer, copy, options.destination)
            return self._kept
        if options.exactly_once:
            reader = stack.enter_context(destination.consumer(group_id=options.group, enable_auto_commit=False))
            return TransactionProgress(self._producer, reader, options.group, options.destination)
        if options.group:
            return GroupProgress(self._consumer)
        if options.state:
            return FileProgress(options.state, options.source, options.destination)
        return NoProgress()

    def run(self) -> None:
        consumer = self._consumer
        start = Start(at_beginning=self._options.since is None, since_ms=self._options.since)
        starts = start_offsets(consumer, self._partitions, start)
        starts |= self._progress.load(self._partitions)
        remaining = None
        if not self._options.follow:
            ends = end_offsets(consumer, self._partitions)
            remaining = Remaining(consumer, ends)
            self._shown.total = self._options.max or records_between(starts, ends)
        consumer.assign(self._partitions)
        for partition, offset in starts.items():
            consumer.seek(partition, offset)
        while not (self._is_enough() or (remaining and remaining.is_done())):
            for record in consumer.poll(_POLL_S):
                if self._is_enough():
                    break
                if remaining is None or remaining.includes(record.topic, record.partition, record.offset):
                    self._send(record)
            if self._unsaved >= _SAVE_RECORDS or self._options.follow:
                self.save()
            self._shown.show()
        self.save()

    def save(self) -> None:
        """Waits for what was sent, and keeps the place behind it. Raises what went wrong with a record."""
        if not self._next:
            return
        self._producer.flush()
        if self._failure is not None:
            raise self._failure
        self._progress.save(self._next)
        if self._is_transactional:
            self._producer.commit()
        self._next = {}
        self._unsaved = 0

    def leave(self) -> None:
        """Interrupted, perhaps between a record and its place: gives a transaction up, and else keeps the place."""
        if not self._is_transactional:
            self.save()
        elif self._next:
            self._producer.abort()

    def _is_enough(self) -> bool:
        return self._options.max is not None and self._shown.count >= self._options.max

    def _send(self, record: "ConsumerRecord") -> None:
        on_delivery = self._delivered
        if self._kept is not None:
            self._kept.check(record)
            on_delivery = partial(self._delivered_at, record)
        if self._is_transactional and not self._next:
            self._producer.begin()
        self._producer.send(
            self._options.destination,
            record.value,
            record.key,
            partition=None if self._options.by_key else record.partition,
            timestamp_ms=record.timestamp if record.timestamp >= 0 else None,
            headers=record.headers or None,
            on_delivery=on_delivery,
        )
        self._next[TopicPartition(record.topic, record.partition)] = record.offset + 1
        self._unsaved += 1
        self._shown.add(len(record.value or b"") + len(record.key or b""))

    def _delivered(self, delivery: "Delivery") -> None:
        if self._failure is None:
            self._failure = delivery.exception()

    def _delivered_at(self, record: "ConsumerRecord", delivery: "Delivery") -> None:
        assert self._kept is not None
        if self._failure is None:
            self._failure = self._kept.check_delivery(record, delivery)


if __name__ == "__main__":
    sys.exit(main())
