"""The options of kafka-acls, and which of them go together."""

from typing import Final

from ottla.cli.json_output import JSON
from ottla.cli.options.checks import UsageError, refuse
from ottla.cli.options.reading import Given
from ottla.cli.options.table import Option, Program

_OPERATIONS: Final = (
    "All, Alter, AlterConfigs, ClusterAction, Create, CreateTokens, Delete, Describe, DescribeConfigs, "
    "DescribeTokens, IdempotentWrite, Read, TwoPhaseCommit, Write"
)

PROGRAM: Final = Program(
    "kafka-acls",
    "This tool lists, adds and removes access rules.",
    (
        Option("bootstrap-server", "Brokers to begin with.", "String", "server to connect to"),
        Option("bootstrap-controller", "Controllers to begin with.", "String", "controller to connect to"),
        Option(
            "command-config",
            "Properties file with settings of the admin.",
            "String",
            "command-config",
            is_optional=True,
        ),
        Option("topic", "Topic that the rules are about; * for all.", "String", "topic", separator=","),
        Option("cluster", "The rules are about the cluster."),
        Option("group", "Group that the rules are about; * for all.", "String", "group", separator=","),
        Option(
            "transactional-id", "Transactional id that the rules are about; * for all.", "String", "transactional-id",
            separator=",",
        ),
        Option("idempotent", "With --producer: it may also be idempotent without a transactional id."),
        Option(
            "delegation-token", "Delegation token that the rules are about; * for all.", "String", "delegation-token",
            separator=",",
        ),
        Option(
            "resource-pattern-type",
            "Whether names are whole (literal) or beginnings (prefixed). To list and remove, also any, for rules of "
            "exactly this name, and match, for all rules that apply to it. Take care with match and --remove.",
            "ANY|MATCH|LITERAL|PREFIXED",
            default="LITERAL",
        ),
        Option("add", "Add rules."),
        Option("remove", "Remove rules."),
        Option("list", "List rules."),
        JSON,
        Option("operation", f"What is allowed or denied: {_OPERATIONS}.", "String", default="All", separator=","),
        Option("allow-principal", "Who may do it, as User:alice; User:* for all.", "String", "allow-principal"),
        Option("deny-principal", "Who may not do it. Denying goes before allowing.", "String", "deny-principal"),
        Option("principal", "With --list: only the rules of this principal.", "String", "principal", is_optional=True),
        Option("allow-host", "Hosts from which the allowed principals have access; * if not given.", "String",
               "allow-host", separator=","),
        Option("deny-host", "Hosts from which the denied principals have no access; * if not given.", "String",
               "deny-host", separator=","),
        Option("producer", "What a producer needs: Write, Describe and Create of the topic."),
        Option("consumer", "What a consumer needs: Read and Describe of the topic, Read of the group."),
        Option("force", "Ask no questions."),
        Option(
            "user-principal", "Principal that the rules are about, for tokens.", "String", "user-principal",
            separator=",",
        ),
    ),
)  # fmt: skip

ACTIONS: Final = ("list", "add", "remove")


def check(given: Given) -> str:
    """Raises `UsageError` for options that do not go together; returns the action."""
    if "bootstrap-server" in given and "bootstrap-controller" in given:
        raise UsageError("Only one of --bootstrap-server or --bootstrap-controller must be specified")
    if "bootstrap-server" not in given and "bootstrap-controller" not in given:
        raise UsageError("One of --bootstrap-server or --bootstrap-controller must be specified")
    actions = [action for action in ACTIONS if action in given]
    if len(actions) != 1:
        raise UsageError("Command must include exactly one action: --list, --add, --remove. ")
    whom = ("allow-host", "allow-principal", "deny-host", "deny-principal")
    refuse(given, "list", ("producer", "consumer", *whom))
    refuse(given, "producer", ("operation", "deny-principal", "deny-host"))
    refuse(given, "consumer", ("operation", "deny-principal", "deny-host"))
    refuse(given, "json", ("add", "remove"))
    if "principal" in given and "list" not in given:
        raise UsageError("The --principal option is only available if --list is set")
    if "producer" in given and "topic" not in given:
        raise UsageError("With --producer you must specify a --topic")
    if "idempotent" in given and "producer" not in given:
        raise UsageError("The --idempotent option is only available if --producer is set")
    is_alone = "producer" not in given
    extra = is_alone and ("cluster" in given or "transactional-id" in given)
    if "consumer" in given and ("topic" not in given or "group" not in given or extra):
        raise UsageError(
            "With --consumer you must specify a --topic and a --group and no --cluster or --transactional-id option "
            "should be specified."
        )
    return actions[0]
