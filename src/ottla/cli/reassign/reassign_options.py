"""The options of `kafka-reassign-partitions`, and which of them go with which action."""

from typing import Final, NamedTuple

from ottla.cli.options.checks import UsageError, require
from ottla.cli.options.reading import Given
from ottla.cli.options.table import Option, Program

PROGRAM: Final = Program(
    "kafka-reassign-partitions",
    "This tool helps to move topic partitions between replicas.",
    (
        Option("generate", "Propose where the partitions of topics could be. Nothing is moved."),
        Option("execute", "Begin to move replicas to where the file of --reassignment-json-file has them."),
        Option(
            "verify",
            "Print how far the moves of --reassignment-json-file are. When nothing moves any more, throttles are "
            "removed.",
        ),
        Option("cancel", "Cancel those moves of --reassignment-json-file that are under way."),
        Option("list", "Print all moves that are under way."),
        Option(
            "bootstrap-server",
            "Brokers to begin with. REQUIRED unless --bootstrap-controller is given.",
            "String",
            "Server(s) to use for bootstrapping",
            is_optional=True,
        ),
        Option(
            "bootstrap-controller",
            "Controllers to begin with, for --cancel and --list.",
            "String",
            "bootstrap controller to connect to",
            is_optional=True,
        ),
        Option("command-config", "Properties file with settings of the admin.", "String", "Admin client property file"),
        Option(
            "reassignment-json-file",
            "A JSON file with the replicas of partitions:\n"
            '{"partitions": [{"topic": "clicks", "partition": 0, "replicas": [1, 2], "log_dirs": ["any", "/disk2"]}], '
            '"version": 1}\n'
            'The preferred leader comes first. "log_dirs" may be left out; otherwise it has the directory of each '
            'replica, or "any" where the broker shall choose.',
            "String",
            "manual assignment json file path",
        ),
        Option(
            "topics-to-move-json-file",
            'A JSON file with the topics to propose something for:\n{"topics": [{"topic": "clicks"}], "version": 1}',
            "String",
            "topics to reassign json file path",
        ),
        Option(
            "broker-list", 'Ids of the brokers that shall have the replicas, as in "1,2,3".', "String", "brokerlist"
        ),
        Option("disable-rack-aware", "Do not look at the racks of brokers."),
        Option(
            "throttle",
            "How many bytes a second may be moved between brokers; at least 1024 is advised. With --additional, the "
            "limit of moves under way is changed.",
            "Long",
            "throttle",
            default="-1",
        ),
        Option(
            "replica-alter-log-dirs-throttle",
            "How many bytes a second may be moved between the directories of a broker; at least 1024 is advised.",
            "Long",
            "replicaAlterLogDirsThrottle",
            default="-1",
        ),
        Option(
            "timeout",
            "How long to wait, in ms, for moves between directories to begin.",
            "Long",
            "timeout",
            default="10000",
        ),
        Option("additional", "Execute although other moves are under way, or change their throttle."),
        Option("preserve-throttles", "Leave throttles as they are."),
        Option(
            "wait",
            "With --execute or --verify: stay until all moves are done, and show how far they are. Kafka's own tool "
            "has no such option.",
        ),
        Option(
            "disallow-replication-factor-change", "Refuse an assignment that gives a partition more or fewer replicas."
        ),
    ),
)


class _Action(NamedTuple):
    required: tuple[str, ...]
    permitted: tuple[str, ...]


_ACTIONS: Final = {
    "generate": _Action(
        ("topics-to-move-json-file", "broker-list"), ("bootstrap-server", "command-config", "disable-rack-aware")
    ),
    "execute": _Action(
        ("reassignment-json-file",),
        (
            "bootstrap-server", "command-config", "additional", "throttle", "replica-alter-log-dirs-throttle",
            "timeout", "disallow-replication-factor-change", "wait",
        ),
    ),
    "verify": _Action(
        ("reassignment-json-file",), ("bootstrap-server", "command-config", "preserve-throttles", "wait")
    ),
    "cancel": _Action(
        ("reassignment-json-file",),
        ("bootstrap-server", "bootstrap-controller", "command-config", "preserve-throttles", "timeout"),
    ),
    "list": _Action((), ("bootstrap-server", "bootstrap-controller", "command-config")),
}  # fmt: skip


def check(given: Given) -> str:
    """The action. Raises `UsageError` for options that do not go with it."""
    actions = [name for name in _ACTIONS if name in given]
    if len(actions) != 1:
        raise UsageError(f"Command must include exactly one action: {', '.join(f'--{name}' for name in _ACTIONS)}")
    if "bootstrap-server" in given and "bootstrap-controller" in given:
        raise UsageError("Please don't specify both --bootstrap-server and --bootstrap-controller")
    if "bootstrap-server" not in given and "bootstrap-controller" not in given:
        raise UsageError("Please specify either --bootstrap-server or --bootstrap-controller")
    (name,) = actions
    action = _ACTIONS[name]
    require(given, *action.required)
    for option, _ in given.in_order:
        if option not in (name, *action.required, *action.permitted):
            raise UsageError(f'Option "[{option}]" can\'t be used with action "[{name}]"')
    return name
