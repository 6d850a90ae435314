"""`kafka-transactions`: lists and describes transactions and producers, and ends transactions."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ottla.base.ids import TopicPartition
from ottla.cli.failures import Terse, error_text
from ottla.cli.json_output import print_json
from ottla.cli.options.subcommands import ToolParser, add_connection, add_json, integer, print_version, run_command
from ottla.cli.sessions import open_admin
from ottla.cli.text_tables import tabbed_table
from ottla.cli.transactions.hanging import HANGING_COLUMNS, hanging_row, hanging_transactions
from ottla.client.errors import KafkaError

if TYPE_CHECKING:
    from ottla.client.admin.transaction_states import AbortTransaction, ProducerState
    from ottla.client.blocking.admin import Admin


def main(arguments: list[str]) -> int:
    return run_command(_parser(), arguments)


def _parser() -> ToolParser:
    parser = ToolParser("kafka-transactions.sh", "The tool for transactions, and for those that hang.")
    print_version(parser, "-v", "--version")
    parser.add_argument("--command-config", metavar="FILE", help="properties file with settings of the admin")
    add_connection(parser, controllers=False)
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    listing = commands.add_parser("list", help="list transactions")
    listing.add_argument("--duration-filter", type=integer, help="only those that are open for longer than this, in ms")
    listing.add_argument("--transactional-id-pattern", help="only those whose id matches, in RE2's syntax")
    listing.set_defaults(action=_list)

    describe = commands.add_parser("describe", help="print the state of a transactional id")
    describe.add_argument("--transactional-id", required=True, help="the id")
    describe.set_defaults(action=_describe)

    producers = commands.add_parser("describe-producers", help="print the producers that a partition remembers")
    producers.add_argument("--broker-id", type=integer, help="ask this replica instead of the leader")
    _add_partition(producers, required=True)
    producers.set_defaults(action=_describe_producers)

    abort = commands.add_parser("abort", help="abort a transaction that hangs")
    _add_partition(abort, required=True)
    abort.add_argument("--start-offset", type=integer, help="where the transaction begins (brokers from 3.0 on)")
    for name in ("--producer-id", "--producer-epoch", "--coordinator-epoch"):
        abort.add_argument(name, type=integer, help="for brokers before 3.0, which need all three")
    abort.set_defaults(action=_abort)

    hanging = commands.add_parser("find-hanging", help="find transactions that hang")
    hanging.add_argument("--broker-id", type=integer, help="only on this broker")
    hanging.add_argument("--max-transaction-timeout", type=integer, default=15, help="in minutes (default: 15)")
    _add_partition(hanging, required=False)
    hanging.set_defaults(action=_find_hanging)

    for command in (listing, describe, producers, hanging):
        add_json(command)

    end = commands.add_parser("forceTerminateTransaction", help="abort the open transaction of a transactional id")
    end.add_argument("--transactionalId", required=True, help="the id")
    end.set_defaults(action=_force_terminate)
    return parser


def _add_partition(parser: ToolParser, *, required: bool) -> None:
    parser.add_argument("--topic", required=required, help="the topic")
    parser.add_argument("--partition", type=integer, required=required, help="the partition")


def _admin(options: Namespace) -> Admin:
    return open_admin(options.bootstrap_server, config_file=options.command_config)


@contextmanager
def _failing_to(what: str) -> Iterator[None]:
    try:
        yield
    except KafkaError as problem:
        raise Terse(f"Failed to {what}: {error_text(problem)}. Enable debug logging for additional detail.") from None


def _list(options: Namespace) -> int:
    duration_ms = options.duration_filter
    with _admin(options) as admin, _failing_to("list transactions"):
        listed = admin.list_transactions(
            running_longer_than_ms=None if duration_ms is None or duration_ms < 0 else duration_ms,
            transactional_id_pattern=options.transactional_id_pattern,
        )
    if options.json:
        print_json(listed)
        return 0
    rows = [[one.transactional_id, str(one.coordinator_id), str(one.producer_id), one.state.value] for one in listed]
    _print(["TransactionalId", "Coordinator", "ProducerId", "TransactionState"], rows)
    return 0


def _describe(options: Namespace) -> int:
    name = options.transactional_id
    with _admin(options) as admin, _failing_to(f"describe transaction state of transactional-id `{name}`"):
        found = admin.describe_transactions([name])[name]
    if options.json:
        print_json({"transactional_id": name, **found._asdict()})
        return 0
    begun_ms = found.transaction_start_ms
    row = [
        str(found.coordinator_id),
        name,
        str(found.producer_id),
        str(found.producer_epoch),
        found.state.value,
        str(found.transaction_timeout_ms),
        "None" if begun_ms is None else str(begun_ms),
        "None" if begun_ms is None else str(int(time.time() * 1000) - begun_ms),
        ",".join(f"{one.topic}-{one.partition}" for one in sorted(found.partitions)),
    ]
    columns = ["CoordinatorId", "TransactionalId", "ProducerId", "ProducerEpoch", "TransactionState"]
    columns += ["TransactionTimeoutMs", "CurrentTransactionStartTimeMs", "TransactionDurationMs", "TopicPartitions"]
    _print(columns, [row])
    return 0


def _describe_producers(options: Namespace) -> int:
    partition = TopicPartition(options.topic, options.partition)
    where = "leader" if options.broker_id is None else f"broker {options.broker_id}"
    named = f"{partition.topic}-{partition.partition}"
    with _admin(options) as admin, _failing_to(f"describe producers for partition {named} on {where}"):
        producers = admin.describe_producers([partition], broker_id=options.broker_id)[partition]
    if options.json:
        print_json(producers)
        return 0
    columns = ["ProducerId", "ProducerEpoch", "LatestCoordinatorEpoch", "LastSequence", "LastTimestamp"]
    _print([*columns, "CurrentTransactionStartOffset"], [_producer_row(one) for one in producers])
    return 0


def _producer_row(producer: ProducerState) -> list[str]:
    start = producer.current_transaction_start_offset
    return [
        str(producer.producer_id),
        str(producer.producer_epoch),
        str(-1 if producer.coordinator_epoch is None else producer.coordinator_epoch),
        str(producer.last_sequence),
        str(-1 if producer.last_timestamp_ms is None else producer.last_timestamp_ms),
        "None" if start is None else str(start),
    ]


def _abort(options: Namespace) -> int:
    if options.start_offset is None and options.producer_id is None:
        raise Terse(
            "The transaction to abort must be identified either with --start-offset (for brokers on 3.0 or above) or "
            "with --producer-id, --producer-epoch, and --coordinator-epoch (for older brokers)"
        )
    with _admin(options) as admin:
        spec = _spec(admin, options)
        with _failing_to(f"abort transaction {spec}"):
            admin.abort_transaction(spec)
    return 0


def _spec(admin: Admin, options: Namespace) -> AbortTransaction:
    """By the offset at which it begins, or by what the caller knows of its producer."""
    from ottla.client.admin.transaction_states import AbortTransaction

    partition = TopicPartition(options.topic, options.partition)
    if options.start_offset is None:
        for name in ("producer_epoch", "coordinator_epoch"):
            if getattr(options, name) is None:
                raise Terse(f"Missing required argument --{name.replace('_', '-')}")
        # A transaction that never ended has no coordinator epoch yet; 0 is not above any that could come.
        epoch = max(options.coordinator_epoch, 0)
        return AbortTransaction(partition, options.producer_id, options.producer_epoch, epoch)
    named = f"{partition.topic}-{partition.partition}"
    with _failing_to(f"describe producers for partition {named}"):
        producers = admin.describe_producers([partition])[partition]
    for producer in producers:
        if producer.current_transaction_start_offset == options.start_offset:
            epoch = producer.coordinator_epoch or 0
            return AbortTransaction(partition, producer.producer_id, producer.producer_epoch, max(epoch, 0))
    raise Terse(f"Could not find any open transactions starting at offset {options.start_offset} on partition {named}")


def _find_hanging(options: Namespace) -> int:
    if options.topic is None and options.broker_id is None:
        raise Terse(
            "The `find-hanging` command requires either --topic or --broker-id to limit the scope of the search"
        )
    if options.partition is not None and options.topic is None:
        raise Terse("The --partition argument requires --topic to be provided")
    with _admin(options) as admin:
        partitions = _partitions(admin, options)
        now_ms = int(time.time() * 1000)
        timeout_ms = options.max_transaction_timeout * 60_000
        hanging = hanging_transactions(admin, partitions, options.broker_id, timeout_ms, now_ms)
    if options.json:
        print_json(hanging)
        return 0
    _print(HANGING_COLUMNS, [hanging_row(one, now_ms) for one in hanging])
    return 0


def _partitions(admin: Admin, options: Namespace) -> list[TopicPartition]:
    if options.partition is not None:
        return [TopicPartition(options.topic, options.partition)]
    if options.topic is not None:
        topics = [options.topic]
    else:
        topics = [topic.name for topic in admin.list_topics(include_internal=True)]
    with _failing_to(f"describe {len(topics)} topics"):
        described = admin.describe_topics(topics).raise_first()
    return [
        TopicPartition(name, one.partition)
        for name, topic in described.items()
        for one in topic.partitions
        if options.broker_id is None or options.broker_id in one.replicas
    ]


def _force_terminate(options: Namespace) -> int:
    with _admin(options) as admin, _failing_to(f"force terminate transactionalId `{options.transactionalId}`"):
        admin.force_terminate_transaction(options.transactionalId)
    return 0


def _print(columns: list[str], rows: list[list[str]]) -> None:
    for line in tabbed_table(columns, rows):
        print(line)
