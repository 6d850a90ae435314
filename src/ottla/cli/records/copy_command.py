"""`ottla copy SOURCE DESTINATION`: records of a topic to another, in the same cluster or another.

Kept are the partition, the order in it, key, value, headers and timestamp. Offsets are the destination's own, unless
`--keep-offsets` insists on those of the source. A copy that is stopped continues where it was, by a group (`--group`)
or a file (`--state`), and may repeat the last records; with `--exactly-once` or `--keep-offsets`, none.

No record is passed over in silence. The consumer has no `auto.offset.reset`: where the source has deleted records
before they were copied, the copy says how many, and continues with the first that is there. Where the source is another
topic than before, or ends before the place, the copy ends with an error. It looks at the source every second.
"""

import sys
from argparse import ArgumentParser, Namespace
from contextlib import ExitStack
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from ottla.base.ids import TopicPartition
from ottla.cli.help_format import CommandParser
from ottla.cli.records.connecting import FAILURES, Cluster, add_connection, at_least, complain
from ottla.cli.records.copied_topics import (
    CannotCopy,
    CopyOf,
    described,
    differences,
    make_destination,
    once_known,
    settings_of,
)
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
from ottla.cli.stopping import INTERRUPTED, stop_on_terminate
from ottla.cli.text_tables import counted
from ottla.config.scopes import Scope

if TYPE_CHECKING:
    from ottla.client.blocking.admin import Admin
    from ottla.client.blocking.consumer import Consumer
    from ottla.client.blocking.producer import Producer
    from ottla.client.producer.append import Delivery
    from ottla.records.kernel import ConsumerRecord

_POLL_S = 0.5
_LOOK_S = 1.0
"""How often the source is looked at, for partitions that were added, and whether it is still the same topic."""
_LOOK_TIMEOUT_S = 5.0
_CLIENTS = (Scope.CONSUMER, Scope.PRODUCER, Scope.ADMIN)
_SAVE_RECORDS = 10_000
"""How much may be repeated after a crash, or is in one transaction."""
_LEAST_REQUEST_BYTES = 1 << 20


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
        source = Cluster.of(options, Scope.CONSUMER, Scope.ADMIN)
        destination = Cluster(servers, options.to_config, {}, _CLIENTS)
    else:
        source = destination = Cluster.of(options, *_CLIENTS)
    if source is destination and options.source == options.destination:
        parser.error("source and destination are the same topic")
    progress, is_interrupted = Progress("copied", is_quiet=options.quiet), False
    try:
        with ExitStack() as stack:
            copying = _Copying(options, stack, source, destination, progress)
            try:
                with stop_on_terminate():
                    copying.run()
            except KeyboardInterrupt:
                is_interrupted = not options.follow  # that is how a copy ends that follows
                copying.leave()
            gone = copying.gone
        remarks = [f"{gone:,} gone from {options.source} before they were copied"] if gone else []
        if is_interrupted:
            remarks.append("stopped before the end")
        progress.end(", ".join(remarks))
    except FAILURES as problem:
        return complain("ottla copy", problem)
    return INTERRUPTED if is_interrupted else 0


def argument_parser() -> ArgumentParser:
    parser = CommandParser(
        prog="ottla copy",
        description="Copies the records of a topic to another, with their partitions, keys, headers and timestamps, up "
        "to what is the end now.",
        epilog="A place is kept with the ids of both topics and clusters, and refused for others. Records that SOURCE "
        "deleted before they were copied are counted, and so is what an open transaction holds back. Settings by which "
        "an existing DESTINATION keeps less than SOURCE are named first. TIME is like 2026-03-01T12:00, 1772366400000, "
        "or 10m for ten minutes ago.",
    )
    parser.add_argument("source", metavar="SOURCE", help="the topic to read")
    parser.add_argument(
        "destination",
        metavar="DESTINATION",
        help="the topic to write; made with SOURCE's settings if need be",
    )
    add_connection(parser)
    parser.add_argument("--to-server", metavar="HOST:PORT", help="the destination's cluster (default: the source's)")
    parser.add_argument("--to-config", metavar="FILE", help="a properties file for the destination's clients")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("-g", "--group", help="keep the place in a group, and continue there")
    where.add_argument("--state", metavar="FILE", help="keep the place in a file, and continue there")
    parser.add_argument("--exactly-once", action="store_true", help="records and place in one transaction")
    parser.add_argument("--keep-offsets", action="store_true", help="the source's offsets, or none: refused at gaps")
    parser.add_argument("--since", type=moment, metavar="TIME", help="begin there, where no place is kept")
    parser.add_argument("-f", "--follow", action="store_true", help="wait for more at the end")
    parser.add_argument("--max", type=at_least(1), metavar="N", help="end after so many records")
    parser.add_argument("--by-key", action="store_true", help="choose the partition again, by the key")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress on standard error")
    return parser


class _Copying:
    def __init__(
        self, options: Namespace, stack: ExitStack, source: Cluster, destination: Cluster, progress: Progress
    ) -> None:
        self.gone = 0
        """Offsets that the source had deleted before they were copied: at most so many records."""
        self._options = options
        self._shown = progress
        self._failure: BaseException | None = None
        self._kept: KeptOffsets | None = None
        self._next: dict[TopicPartition, int] = {}
        self._unsaved = 0
        self._is_missed = False
        """Whether the source was not there when it was last looked at."""
        self._destination_has = 0
        """Partitions, as far as is known."""
        group = None if options.exactly_once else options.group
        reading = {"enable_auto_commit": False, "isolation_level": "read_committed", "client_id": "ottla-copy"}
        self._consumer: Consumer = stack.enter_context(
            source.consumer(group_id=group, auto_offset_reset="none", **reading)
        )
        self._partitions = partitions_of(self._consumer, [options.source])
        self._source_admin: Admin = stack.enter_context(source.admin())
        self._destination_admin: Admin = stack.enter_context(destination.admin())
        self._of, largest_bytes = self._ends_of_the_copy()
        writing = {
            "transactional_id": f"{options.group}.{options.destination}" if options.exactly_once else None,
            "client_id": "ottla-copy",
            "max_request_size": max(_LEAST_REQUEST_BYTES, largest_bytes),
        }
        self._producer: Producer = stack.enter_context(destination.producer(**writing))
        self._is_transactional = options.exactly_once
        if options.exactly_once:
            # Fences off a copy that was stopped and may still be at work, before its place is read.
            self._producer.init_transactions()
        self._progress = self._progress_kept(stack, destination)

    def _ends_of_the_copy(self) -> tuple[CopyOf, int]:
        """The two topics, the destination made if need be, and how large records may be there."""
        options, admin = self._options, self._destination_admin
        source, _ = described(self._source_admin, options.source)
        of_source = self._settings_of(self._source_admin, options.source)
        if options.destination not in {topic.name for topic in admin.list_topics()}:
            make_destination(admin, options.destination, len(self._partitions), of_source)
        destination, _ = once_known(lambda: described(admin, options.destination))
        if source == destination:
            raise CannotCopy(f"source and destination are the same topic: {source}")
        of_destination = self._settings_of(admin, options.destination)
        for difference in differences(options.destination, of_destination, options.source, of_source):
            self._say(difference)
        return CopyOf(source, destination), int(of_destination.get("max.message.bytes", 0))

    def _settings_of(self, admin: "Admin", topic: str) -> dict[str, str]:
        from ottla.client.errors import KafkaError

        try:
            return once_known(lambda: settings_of(admin, topic))
        except KafkaError as problem:  # to read and write is allowed, and to look at settings may not be
            self._say(f"the settings of {topic} cannot be compared: {problem}")
            return {}

    def _progress_kept(self, stack: ExitStack, destination: Cluster) -> CopyProgress:
        options = self._options
        if options.keep_offsets:
            copy = stack.enter_context(destination.consumer(enable_auto_commit=False))
            self._kept = KeptOffsets(self._consumer, copy, options.destination)
            return self._kept
        if options.exactly_once:
            reader = stack.enter_context(destination.consumer(group_id=options.group, enable_auto_commit=False))
            return TransactionProgress(self._producer, reader, options.group, self._of)
        if options.group:
            return GroupProgress(self._consumer, options.group, self._of, self._say)
        if options.state:
            return FileProgress(options.state, self._of)
        return NoProgress()

    def run(self) -> None:
        consumer = self._consumer
        starts = self._starts(self._partitions, self._options.since)
        remaining = None
        if not self._options.follow:
            ends = self._stable_ends()
            remaining = Remaining(consumer, ends)
            self._shown.total = self._options.max or records_between(starts, ends)
        self._read_from(starts)
        look_again_s = monotonic() + _LOOK_S
        while not (self._is_enough() or (remaining and remaining.is_done())):
            records = self._poll()
            for record in records:
                if self._is_enough():
                    break
                if remaining is None or remaining.includes(record.topic, record.partition, record.offset):
                    self._send(record)
            # Also when nothing comes: a transaction must not wait for a source that does not answer.
            if self._unsaved >= _SAVE_RECORDS or self._options.follow or not records:
                self.save()
            if monotonic() >= look_again_s:
                self._look_at_source()
                look_again_s = monotonic() + _LOOK_S
            self._shown.show()
        self._look_at_source()
        self.save()

    def _stable_ends(self) -> dict[TopicPartition, int]:
        """Where the copy ends: at the end as it is now, or before the first open transaction, which is reported."""
        from ottla.client.admin.records import OffsetSpec

        listed = self._source_admin.list_offsets(dict.fromkeys(self._partitions, OffsetSpec.LATEST))
        # Asked for after that: what is written in between must not look as if a transaction held it back.
        ends = end_offsets(self._consumer, self._partitions)
        for partition, end in ends.items():
            held_back = (listed[partition].offset or 0) - end
            if held_back > 0:
                self._say(
                    f"{partition}: a transaction is open, and {held_back} offsets from {end} on "
                    "are not copied; copy again when it has ended"
                )
        return ends

    def _starts(self, partitions: list[TopicPartition], since_ms: int | None) -> dict[TopicPartition, int]:
        """Where to begin with each: at the place that was kept, or else at that time, or with the first record."""
        consumer = self._consumer
        kept = self._progress.load(partitions)
        self._give_partitions(len(self._partitions), is_resumed=any(kept.values()))
        starts = start_offsets(consumer, partitions, Start(since_ms is None, since_ms))
        first, ends = consumer.beginning_offsets(partitions), consumer.end_offsets(partitions)
        for partition, place in kept.items():
            starts[partition] = self._there(partition, place, first[partition], ends[partition])
        return starts

    def _there(self, partition: TopicPartition, place: int, first: int, end: int) -> int:
        """The place, or the first record after it that is there. Raises `CannotCopy` if the log ends before it."""
        if place > end:
            raise CannotCopy(
                f"{partition} ends at offset {end}, before {place}, up to which it was copied: its records are not the "
                "ones that they were. To copy them again, use another group or state"
            )
        if place < first:
            self.gone += first - place
            self._say(
                f"{partition}: {first - place} offsets, {place} to {first - 1}, were deleted before they were copied; "
                f"the copy continues at {first}"
            )
        return max(place, first)

    def _poll(self) -> "list[ConsumerRecord]":
        from ottla.client.errors import OffsetOutOfRange

        try:
            return self._consumer.poll(_POLL_S)
        except OffsetOutOfRange as outside:
            partition = outside.partition
            assert partition is not None and outside.offset is not None, "a consumer without auto.offset.reset"
            first, ends = self._consumer.beginning_offsets([partition]), self._consumer.end_offsets([partition])
            place = self._there(partition, outside.offset, first[partition], ends[partition])
            self._consumer.seek(partition, place)
            return []

    def _read_from(self, starts: dict[TopicPartition, int]) -> None:
        self._consumer.assign(self._partitions)
        for partition, offset in starts.items():
            self._consumer.seek(partition, offset)

    def _look_at_source(self) -> None:
        """Takes up partitions that were added, if it follows. Raises `CannotCopy` if the topic is another one now."""
        from ottla.client.errors import KafkaError, UnknownTopicOrPartition

        try:
            source, count = described(self._source_admin, self._options.source, _LOOK_TIMEOUT_S)
        except UnknownTopicOrPartition:
            if self._is_missed:  # once, a broker may say so that has just started
                raise CannotCopy(f"{self._of.source} was deleted while it was copied") from None
            self._is_missed = True
            return
        except (KafkaError, TimeoutError) as problem:
            if isinstance(problem, TimeoutError) or problem.retriable:
                return  # the source is waited for, as the consumer does
            raise
        self._is_missed = False
        if source != self._of.source:
            raise CannotCopy(f"{source.topic} was deleted and made again while it was copied: it was {self._of.source}")
        if self._options.follow and count > len(self._partitions):
            self._add_partitions(count)

    def _add_partitions(self, count: int) -> None:
        self.save()
        starts = {partition: self._consumer.position(partition) for partition in self._partitions}
        new = [TopicPartition(self._options.source, number) for number in range(len(self._partitions), count)]
        self._partitions += new
        self._give_partitions(count, is_resumed=True)
        starts |= self._starts(new, None)  # what is in a partition that was not there came after `--since`
        self._read_from(starts)

    def _give_partitions(self, count: int, *, is_resumed: bool) -> None:
        """Has the destination have as many as the source: added if it had as many before, and otherwise refused."""
        from ottla.client.errors import InvalidPartitions

        options, admin = self._options, self._destination_admin
        # A broker that is asked now may not have heard yet of what the controller has done before.
        self._destination_has = has = max(
            self._destination_has, once_known(lambda: described(admin, options.destination))[1]
        )
        # With transactions, the place is kept in the destination's partitions.
        if has >= count or (options.by_key and not options.exactly_once):
            return
        if not is_resumed:
            remedy = "add partitions" if options.exactly_once else "add partitions, or use --by-key"
            raise CannotCopy(
                f"{options.destination} has {counted(has, 'partition')} and {options.source} {count}: {remedy}"
            )
        try:
            admin.create_partitions({options.destination: count}).raise_first()
        except InvalidPartitions:  # somebody else has added them
            if described(admin, options.destination)[1] < count:
                raise
        self._destination_has = count
        self._say(f"{options.destination} has {counted(count, 'partition')} now, as {options.source} has")

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

    def _say(self, text: str) -> None:
        self._shown.say(f"ottla copy: {text}")

    def _send(self, record: "ConsumerRecord") -> None:
        if self._failure is not None:
            raise self._failure
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
