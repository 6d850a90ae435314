"""`kafka-console-consumer`: prints the records of topics."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from ottla.base.ids import TopicPartition
from ottla.cli.console.client_properties import one_of, parse_pairs, read_file
from ottla.cli.console.console_consumer_options import PROGRAM, check, offset_of
from ottla.cli.console.formatters import Formatter, formatter
from ottla.cli.failures import Terse
from ottla.cli.options.checks import UsageError, run_program
from ottla.cli.options.reading import Given
from ottla.cli.sessions import open_consumer
from ottla.cli.stopping import stop_on_terminate

if TYPE_CHECKING:
    from ottla.client.blocking.consumer import Consumer
    from ottla.records.kernel import ConsumerRecord

_DEPRECATED: Final = "Option --{old} is deprecated and will be removed in a future version. Use --{new} instead."
_POLL_S: Final = 3600.0
_GROUPS: Final = 100_000


def main(arguments: list[str]) -> int:
    return run_program(PROGRAM, arguments, run, help_with_options=True)


def run(given: Given, make_formatter: Callable[[Given], Formatter] | None = None) -> int:
    check(given)
    settings = _settings(given)
    shows = (make_formatter or _formatter)(given)
    begin = offset_of(given)
    limit = given.get_integer("max-messages")
    timeout_ms = given.get_integer("timeout-ms")
    reading = _Reading()
    try:
        with open_consumer(settings) as consumer, stop_on_terminate():
            _begin(consumer, given, begin)
            records = _records(consumer, None if timeout_ms is None or timeout_ms < 0 else timeout_ms / 1000)
            try:
                _print(records, shows, reading, limit=limit, skips="skip-message-on-error" in given)
            finally:
                for partition, offset in reading.unread().items():
                    consumer.seek(partition, offset)
    finally:
        print(f"Processed a total of {reading.count} messages", file=sys.stderr)
        if "enable-systest-events" in given:
            print("shutdown_complete")
    return 0


class _Reading:
    """How far the records that one poll brought are printed."""

    count = 0
    batch: Sequence[ConsumerRecord] = ()
    printed = 0

    def unread(self) -> dict[TopicPartition, int]:
        """Where to go back to, so that the offsets that are committed are those of records that were printed."""
        first: dict[TopicPartition, int] = {}
        for record in self.batch[self.printed :]:
            first.setdefault(TopicPartition(record.topic, record.partition), record.offset)
        return first


def _print(
    batches: Iterator[list[ConsumerRecord]], shows: Formatter, reading: _Reading, *, limit: int | None, skips: bool
) -> None:
    """Writes what one poll brought at once, so that a reader of a pipe sees records when they come."""
    out = sys.stdout.buffer
    if limit == 0:
        return
    for batch in batches:
        reading.batch, reading.printed = batch, 0
        for record in batch:
            reading.count += 1
            reading.printed += 1
            try:
                out.write(shows(record))
            except BrokenPipeError:
                raise
            except Exception as problem:
                # Whatever a deserializer raises is about this record.
                if not skips:
                    out.flush()
                    raise Terse(f"Error processing message, terminating consumer process: {problem}") from problem
            if reading.count == limit:
                out.flush()
                return
        out.flush()


def _records(consumer: Consumer, timeout_s: float | None) -> Iterator[list[ConsumerRecord]]:
    """Ends when nothing has come for `timeout_s`."""
    while True:
        records = consumer.poll(_POLL_S if timeout_s is None else timeout_s)
        if not records and timeout_s is not None:
            return
        yield records


def _begin(consumer: Consumer, given: Given, begin: int | str) -> None:
    if "partition" not in given:
        if "topic" in given:
            consumer.subscribe([given.text("topic")])
        else:
            import re

            consumer.subscribe(pattern=re.compile(given.text("include").replace(",", "|").strip("\"'")))
        return
    partition = TopicPartition(given.text("topic"), given.integer("partition"))
    consumer.assign([partition])
    if begin == "earliest":
        consumer.seek_to_beginning(partition)
    elif begin == "latest":
        consumer.seek_to_end(partition)
    else:
        consumer.seek(partition, int(begin))


def _settings(given: Given) -> dict[str, object]:
    pairs = one_of(given, "consumer-property", "command-property", _DEPRECATED)
    file = one_of(given, "consumer.config", "command-config", _DEPRECATED)
    from_file, from_options = read_file(given.get(file)), parse_pairs(given.all(pairs))
    settings: dict[str, object] = {**from_file, **from_options}
    settings["bootstrap.servers"] = given.text("bootstrap-server")
    for name in ("key.deserializer", "value.deserializer"):
        settings.pop(name, None)  # the formatter deserializes
    settings.setdefault("client.id", "console-consumer")
    settings["isolation.level"] = given.text("isolation-level")
    settings["auto.offset.reset"] = _offset_reset(given, settings.get("auto.offset.reset"))
    _set_group(given, settings, [given.get("group"), from_options.get("group.id"), from_file.get("group.id")])
    return settings


def _offset_reset(given: Given, reset: object) -> str:
    if "from-beginning" in given:
        if reset not in (None, "earliest"):
            raise Terse(
                f"Can't simultaneously specify --from-beginning and 'auto.offset.reset={reset}', "
                "please remove one option"
            )
        return "earliest"
    return "latest" if reset is None else str(reset)


def _set_group(given: Given, settings: dict[str, object], named: list[str | None]) -> None:
    groups = list(dict.fromkeys(filter(None, named)))
    if len(groups) > 1:
        detected = ", ".join(f"'{group}'" for group in groups)
        raise UsageError(
            "The group ids provided in different places (directly using '--group', via '--consumer-property', or via "
            f"'--consumer.config') do not match. Detected group ids: {detected}"
        )
    if groups:
        settings["group.id"] = groups[0]
        return
    import random

    settings["group.id"] = f"console-consumer-{random.randrange(_GROUPS)}"
    # Nobody will ask for the offsets of a group of this name again.
    settings.setdefault("enable.auto.commit", "false")


def formatter_properties(given: Given) -> dict[str, str]:
    pairs = one_of(given, "property", "formatter-property", _DEPRECATED)
    properties = {**read_file(given.get("formatter-config")), **parse_pairs(given.all(pairs))}
    for option, name in (("key-deserializer", "key.deserializer"), ("value-deserializer", "value.deserializer")):
        if option in given:
            properties[name] = given.text(option)
    return properties


def _formatter(given: Given) -> Formatter:
    try:
        return formatter(given.text("formatter"), formatter_properties(given))
    except Terse as problem:
        raise UsageError(str(problem)) from None
