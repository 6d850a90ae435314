"""The options of kafka-consumer-groups, and which of them go together."""

import sys
from typing import Final

from ottla.cli.json_output import JSON
from ottla.cli.options.checks import UsageError, refuse, require
from ottla.cli.options.reading import Given
from ottla.cli.options.table import Option, Program

ACTIONS: Final = ("list", "describe", "delete", "reset-offsets", "delete-offsets", "validate-regex")
SCENARIOS: Final = (
    "by-duration",
    "to-latest",
    "to-current",
    "to-earliest",
    "to-offset",
    "shift-by",
    "from-file",
    "to-datetime",
)
_VIEWS: Final = ("members", "offsets", "state")

PROGRAM: Final = Program(
    "kafka-consumer-groups",
    "This tool lists, describes and deletes consumer groups, and resets or deletes their offsets.",
    (
        Option(
            "bootstrap-server",
            "Brokers to begin with. REQUIRED for everything but --validate-regex.",
            "String",
            "server to connect to",
        ),
        Option(
            "command-config", "Properties file with settings of the admin.", "String", "command config property file"
        ),
        Option("group", "The group to act on. May be repeated.", "String", "consumer group"),
        Option("all-groups", "Act on all consumer groups."),
        Option(
            "topic",
            "Topic whose offsets to reset or delete; of some partitions, as topic:0,1,2. May be repeated.",
            "String",
            "topic",
        ),
        Option("all-topics", "Reset the offsets of all topics that the group has committed any for."),
        Option("list", "List the consumer groups."),
        JSON,
        Option("describe", "Print where groups are, and how far behind."),
        Option("delete", "Delete groups, with all of their offsets."),
        Option("delete-offsets", "Delete a group's offsets of some topics."),
        Option(
            "reset-offsets",
            "Give a group other offsets; it must have no members. --dry-run only shows them, --execute sets them, "
            "--export prints them as CSV. To where: one of --to-datetime, --by-duration, --to-earliest, --to-latest, "
            "--shift-by, --from-file, --to-current, --to-offset. Of which topics: --topic or --all-topics, unless the "
            "file says it.",
        ),
        Option("validate-regex", "Tell whether a regular expression is one in RE2's syntax.", "String", "regex"),
        Option(
            "timeout",
            "How long to wait for answers; to a group that is rebalancing, say.",
            "Long",
            "timeout (ms)",
            default="30000",
        ),
        Option("dry-run", "With --reset-offsets: show what would be done."),
        Option("execute", "With --reset-offsets: do it."),
        Option("export", "With --reset-offsets: print the offsets as CSV."),
        Option("to-offset", "Reset to this offset.", "Long", "offset"),
        Option("from-file", "Reset to the offsets in a file, as --export prints them.", "String", "path to CSV file"),
        Option(
            "to-datetime",
            "Reset to the first record that is not older. As 'YYYY-MM-DDThh:mm:ss.sss'.",
            "String",
            "datetime",
        ),
        Option(
            "by-duration",
            "Reset to the first record that is not older than this. As 'PnDTnHnMnS'.",
            "String",
            "duration",
        ),
        Option("to-earliest", "Reset to the first record there is."),
        Option("to-latest", "Reset to the end."),
        Option("shift-by", "Reset by so many records, back if negative.", "Long", "number-of-offsets"),
        Option("to-current", "Reset to what is committed now."),
        Option("members", "With --describe: the members of the group."),
        Option("offsets", "With --describe: offsets and lag, partition by partition. The default."),
        Option("verbose", "With --describe: more columns."),
        Option(
            "state",
            "With --describe: the state of the group. With --list: the groups' states, or only the groups in some "
            "states: --state stable,empty.",
            "String",
            is_optional=True,
        ),
        Option(
            "type",
            "With --list: the groups' types, or only the groups of some types: --type classic,consumer.",
            "String",
            is_optional=True,
        ),
    ),
)


def check(given: Given) -> str:
    """Raises `UsageError` for options that do not go together; returns the action."""
    actions = [action for action in ACTIONS if action in given]
    if len(actions) != 1:
        listed = ", ".join(f"--{action}" for action in ACTIONS)
        raise UsageError(f"Command must include exactly one action: {listed}")
    (action,) = actions
    if action == "validate-regex":
        return action
    require(given, "bootstrap-server")
    if action in ("describe", "delete", "reset-offsets"):
        _check_groups(given, action)
    if action == "describe":
        if sum(view in given for view in _VIEWS) > 1:
            raise UsageError(f"Option [describe] takes at most one of these options: {_named(_VIEWS)}")
        if "state" in given and given.get("state") is not None:
            raise UsageError("Option [describe] does not take a value for [state]")
    if action == "delete" and "topic" in given:
        raise UsageError("The consumer does not support topic-specific offset deletion from a consumer group.")
    if action == "delete-offsets" and not ("group" in given and "topic" in given):
        raise UsageError("Option [delete-offsets] takes the following options: [group], [topic]")
    if action == "reset-offsets":
        _check_reset(given)
    refuse(given, "group", ("all-groups", "list"))
    refuse(given, "topic", ("list", "describe"))
    _refuse_useless(given, action)
    return action


def _check_groups(given: Given, action: str) -> None:
    if "group" not in given and "all-groups" not in given:
        raise UsageError(f"Option [{action}] takes one of these options: [group], [all-groups]")


def _check_reset(given: Given) -> None:
    if "dry-run" in given and "execute" in given:
        raise UsageError("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
    if "dry-run" not in given and "execute" not in given:
        print(
            "WARN: No action will be performed as the --execute option is missing. In version 5.0, this command will "
            "require either --dry-run or --execute to be specified. You should add the --dry-run option explicitly if "
            "you are scripting this command and want to keep the current default behavior without prompting.",
            file=sys.stderr,
        )
    for scenario in ("to-offset", "to-datetime", "by-duration", "to-earliest", "to-latest", "to-current", "shift-by"):
        refuse(given, scenario, [other for other in SCENARIOS if other != scenario])
    if not any(scenario in given for scenario in SCENARIOS):
        raise UsageError(f"Option '[reset-offsets]' requires one of the following scenarios: [{_named(SCENARIOS)}]")
    if not any(scope in given for scope in ("topic", "all-topics", "from-file")):
        raise UsageError("One of the reset scopes should be defined: --all-topics, --topic.")


_ONLY_WITH: Final = {
    "members": ("describe",),
    "offsets": ("describe",),
    "verbose": ("describe",),
    "json": ("describe", "list"),
    "state": ("describe", "list"),
    "type": ("list",),
    "all-topics": ("reset-offsets",),
    "dry-run": ("reset-offsets",),
    "execute": ("reset-offsets",),
    "export": ("reset-offsets",),
    **dict.fromkeys(SCENARIOS, ("reset-offsets",)),
}


def _refuse_useless(given: Given, action: str) -> None:
    """An option that another action has would be ignored: Kafka's tool refuses some of them, we all."""
    for option, actions in _ONLY_WITH.items():
        if option in given and action not in actions:
            raise UsageError(f'Option "[{option}]" can\'t be used with option "[{action}]"')


def _named(options: tuple[str, ...]) -> str:
    return ", ".join(f"[{option}]" for option in options)
