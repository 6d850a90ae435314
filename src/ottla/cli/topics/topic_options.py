"""The options of kafka-topics, and which of them go together."""

from typing import Final

from ottla.cli.json_output import JSON
from ottla.cli.options.checks import UsageError, refuse, refuse_combination, require
from ottla.cli.options.reading import Given, OptionError
from ottla.cli.options.table import Option, Program

ACTIONS: Final = ("create", "list", "alter", "describe", "delete")

_ASSIGNMENT: Final = (
    "broker_id_for_part1_replica1 : broker_id_for_part1_replica2 , "
    "broker_id_for_part2_replica1 : broker_id_for_part2_replica2 , ..."
)

PROGRAM: Final = Program(
    "kafka-topics",
    "This tool creates, lists, describes, alters and deletes topics.",
    (
        Option("bootstrap-server", "REQUIRED: Brokers to begin with.", "String", "server to connect to"),
        Option(
            "command-config", "Properties file with settings of the admin.", "String", "command config property file"
        ),
        Option("list", "List the topics."),
        JSON,
        Option("create", "Create a topic."),
        Option("delete", "Delete topics."),
        Option("alter", "Give topics more partitions. (Their settings are changed with kafka-configs.)"),
        Option("describe", "Print the partitions and settings of topics."),
        Option("topic", "Topic to act on. But for --create, a regular expression or several.", "String", "topic"),
        Option("topic-id", "Id of the topic to describe.", "String", "topic-id"),
        Option(
            "config",
            "With --create: a setting of the new topic, such as retention.ms=3600000. May be repeated. "
            "docs/settings.md lists them. (kafka-configs changes those of a topic that is there.)",
            "String",
            "name=value",
        ),
        Option(
            "delete-config",
            "Takes a setting from a topic.",
            "String",
            "name",
            why_not="since Kafka 4.0 it does nothing; use kafka-configs --alter --delete-config",
        ),
        Option(
            "partitions",
            "How many partitions the topic is to have; without it, as many as the cluster's default. "
            "More partitions send the keys of a topic to other ones than before.",
            "Integer",
            "# of partitions",
        ),
        Option(
            "replication-factor",
            "How many replicas each partition of the new topic is to have; without it, the cluster's default.",
            "Integer",
            "replication factor",
        ),
        Option("replica-assignment", "Which brokers hold each of the partitions.", "String", _ASSIGNMENT),
        Option("under-replicated-partitions", "With --describe: only partitions with a replica that is behind."),
        Option("unavailable-partitions", "With --describe: only partitions without a leader."),
        Option(
            "under-min-isr-partitions", "With --describe: only partitions with less replicas in sync than they need."
        ),
        Option(
            "at-min-isr-partitions", "With --describe: only partitions with just as many in sync replicas as they need."
        ),
        Option("topics-with-overrides", "With --describe: only topics with settings of their own."),
        Option("if-exists", "With --alter, --delete or --describe: no error if the topic does not exist."),
        Option("if-not-exists", "With --create: no error if the topic exists already."),
        Option("exclude-internal", "With --list or --describe: leave the cluster's own topics out."),
        Option(
            "partition-size-limit-per-response",
            "With --describe: how many partitions one response of the broker may have.",
            "Integer",
            "maximum number of partitions per response",
        ),
    ),
)

_FILTERS: Final = (
    "under-min-isr-partitions",
    "at-min-isr-partitions",
    "unavailable-partitions",
    "under-replicated-partitions",
)


def check(given: Given) -> str:
    """Raises `UsageError` for options that do not go together; returns the action."""
    actions = [action for action in ACTIONS if action in given]
    if len(actions) != 1:
        raise UsageError("Command must include exactly one action: --list, --describe, --create, --alter or --delete")
    (action,) = actions
    if "bootstrap-server" not in given:
        raise OptionError("--bootstrap-server must be specified")
    if action == "describe" and "if-exists" in given and "topic" not in given and "topic-id" not in given:
        raise UsageError("--topic or --topic-id is required to describe a topic")
    if action not in ("list", "describe"):
        require(given, "topic")
    if action == "alter":
        refuse_combination(
            given,
            ("bootstrap-server", "config"),
            ("alter",),
            "(To alter topic configurations, the kafka-configs tool can be used.)",
        )
        require(given, "partitions")
    _check_combinations(given)
    return action


def _check_combinations(given: Given) -> None:
    _only_with(given, "config", ("create", "alter"))
    _only_with(given, "partitions", ("create", "alter"))
    _only_with(given, "replication-factor", ("create",))
    _only_with(given, "replica-assignment", ("create", "alter"))
    if "create" in given:
        refuse(given, "replica-assignment", ("partitions", "replication-factor"))
    for number, option in enumerate(_FILTERS):
        others = [other for other in _FILTERS if other != option]
        _only_with(given, option, ("describe",))
        if number < 2:
            refuse(given, option, [*others, "topics-with-overrides"])
        else:
            refuse(given, option, ["topics-with-overrides"])
    _only_with(given, "topics-with-overrides", ("describe",))
    _only_with(given, "if-exists", ("alter", "delete", "describe"))
    _only_with(given, "if-not-exists", ("create",))
    _only_with(given, "exclude-internal", ("list", "describe"))
    _only_with(given, "json", ("list", "describe"))


def _only_with(given: Given, option: str, actions: tuple[str, ...]) -> None:
    refuse(given, option, [action for action in ACTIONS if action not in actions])
