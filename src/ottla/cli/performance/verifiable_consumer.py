"""`kafka-verifiable-consumer`: reads in a group, and prints as JSON what it was assigned, read and committed.

Offsets of what was read are committed after every poll, unless `--enable-autocommit` leaves it to the consumer.
"""

import signal
import sys
from argparse import Namespace
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ottla.base.errors import OttlaError
from ottla.base.ids import TopicPartition
from ottla.cli.client_settings import settings_in_file
from ottla.cli.performance.events import event
from ottla.cli.performance.tool_options import FAILURES, ToolParser, complain, deprecated, tell_troubles
from ottla.client.errors import Wakeup
from ottla.config.scopes import Scope

if TYPE_CHECKING:
    from ottla.client.blocking.consumer import Consumer
    from ottla.records.kernel import ConsumerRecord

_POLL_S = 1.0
_ASSIGNORS = "org.apache.kafka.clients.consumer."


def main(arguments: list[str] | None = None) -> int:
    parser = argument_parser()
    options = parser.parse_args(arguments)
    deprecated(options, "--consumer.config", "--command-config", "consumer_config")
    if options.group_protocol.lower() == "consumer" and options.session_timeout is not None:
        parser.error("--session-timeout is for the classic protocol")
    try:
        return _run(options)
    except FAILURES as problem:
        return complain("kafka-verifiable-consumer", problem)


def argument_parser() -> ToolParser:
    parser = ToolParser("kafka-verifiable-consumer", "Reads records in a group, and prints JSON events.")
    parser.add_argument("--topic", required=True, help="what to read")
    protocols = ("classic", "consumer", "CLASSIC", "CONSUMER")
    parser.add_argument("--group-protocol", choices=protocols, default="classic", help="(default: classic)")
    parser.add_argument("--group-remote-assignor", help="the coordinator's assignor, in the consumer protocol")
    parser.add_argument("--group-id", required=True, help="the group")
    parser.add_argument("--group-instance-id", help="makes this a static member")
    parser.add_argument("--max-messages", type=int, default=-1, help="how many; -1 is until it is stopped")
    parser.add_argument("--session-timeout", type=int, metavar="MS", help="of the classic protocol")
    parser.add_argument("--verbose", action="store_true", help="an event for every record")
    parser.add_argument("--enable-autocommit", action="store_true", help="leave commits to the consumer")
    parser.add_argument("--reset-policy", choices=("earliest", "latest", "none"), default="earliest")
    parser.add_argument("--assignment-strategy", default=f"{_ASSIGNORS}RangeAssignor", help="in the classic protocol")
    parser.add_argument("--consumer.config", dest="consumer_config", metavar="FILE", help="the old --command-config")
    parser.add_argument("--command-config", metavar="FILE", help="a properties file of the consumer")
    parser.add_servers()
    return parser


def _settings(options: Namespace) -> dict[str, object]:
    settings: dict[str, object] = dict(
        settings_in_file(options.command_config or options.consumer_config, Scope.CONSUMER)
    )
    settings |= {
        "bootstrap.servers": options.bootstrap_server,
        "group.id": options.group_id,
        "group.protocol": options.group_protocol.lower(),
        "enable.auto.commit": options.enable_autocommit,
        "auto.offset.reset": options.reset_policy,
    }
    if options.group_instance_id:
        settings["group.instance.id"] = options.group_instance_id
    if options.group_protocol.lower() == "consumer":
        if options.group_remote_assignor:
            settings["group.remote.assignor"] = options.group_remote_assignor
    else:
        settings["partition.assignment.strategy"] = options.assignment_strategy
        if options.session_timeout is not None:
            settings["session.timeout.ms"] = options.session_timeout
    return {name: value for name, value in settings.items() if not name.endswith(".deserializer")}


def _run(options: Namespace) -> int:
    from ottla.client.blocking.consumer import Consumer

    tell_troubles()
    with Consumer(_settings(options)) as consumer:
        event("startup_complete")
        reading = _Reading(options, consumer)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, reading.stop)
        consumer.subscribe([options.topic], listener=reading)
        reading.run()
        if reading.is_stopped:
            event("shutdown_requested")
    event("shutdown_complete")
    if not reading.is_stopped:
        event("shutdown_requested")  # Kafka's tool ends itself as if it were told to, and says so last
    return 0


class _Reading:
    """Reads, and is the listener of the group."""

    def __init__(self, options: Namespace, consumer: "Consumer") -> None:
        self._options = options
        self._consumer = consumer
        self._count = 0
        self.is_stopped = False

    def stop(self, *_: object) -> None:
        """For a signal."""
        self.is_stopped = True
        self._consumer.wakeup()

    def on_partitions_assigned(self, partitions: Iterable[TopicPartition]) -> None:
        event("partitions_assigned", partitions=_named(partitions))

    def on_partitions_revoked(self, partitions: Iterable[TopicPartition]) -> None:
        event("partitions_revoked", partitions=_named(partitions))

    def on_partitions_lost(self, partitions: Iterable[TopicPartition]) -> None:
        event("partitions_lost", partitions=_named(partitions))

    def run(self) -> None:
        options = self._options
        while not self.is_stopped and (options.max_messages < 0 or self._count < options.max_messages):
            try:
                records = self._consumer.poll(_POLL_S)
            except Wakeup:
                return
            if not records:
                continue
            wanted = records if options.max_messages < 0 else records[: options.max_messages - self._count]
            offsets = self._tell(wanted, len(records))
            self._count += len(wanted)
            if not options.enable_autocommit:
                self._commit(offsets)

    def _tell(self, records: "list[ConsumerRecord]", polled: int) -> dict[TopicPartition, int]:
        spans: dict[TopicPartition, list[int]] = {}
        for record in records:
            spans.setdefault(TopicPartition(record.topic, record.partition), []).append(record.offset)
            if self._options.verbose:
                event(
                    "record_data",
                    key=_text(record.key),
                    value=_text(record.value),
                    topic=record.topic,
                    partition=record.partition,
                    offset=record.offset,
                )
        event(
            "records_consumed",
            count=polled,
            partitions=[
                {
                    "topic": partition.topic,
                    "partition": partition.partition,
                    "count": len(offsets),
                    "minOffset": offsets[0],
                    "maxOffset": offsets[-1],
                }
                for partition, offsets in spans.items()
            ],
        )
        return {partition: offsets[-1] + 1 for partition, offsets in spans.items()}

    def _commit(self, offsets: dict[TopicPartition, int]) -> None:
        shown = [{"topic": one.topic, "partition": one.partition, "offset": at} for one, at in offsets.items()]
        try:
            self._consumer.commit(offsets)
        except OttlaError as problem:
            event("offsets_committed", offsets=shown, error=str(problem), success=False)
        else:
            event("offsets_committed", offsets=shown, success=True)


def _named(partitions: Iterable[TopicPartition]) -> list[dict[str, Any]]:
    return [{"topic": one.topic, "partition": one.partition} for one in sorted(partitions)]


def _text(content: bytes | None) -> str | None:
    return None if content is None else content.decode(errors="replace")


if __name__ == "__main__":
    sys.exit(main())
