"""Kafka's tools under their own names: `kafka-topics` and `kafka-topics.sh` find their module by how they were called.

One function is the entry point of all of them (see `[project.scripts]`), and a tool's module is imported when it is
asked for. `ottla topics …` is `kafka-topics …`.
"""

import os
import sys
from importlib import import_module
from typing import Final, NamedTuple, Protocol, cast


class Tool(NamedTuple):
    module: str
    summary: str


class Main(Protocol):
    def __call__(self, arguments: list[str]) -> int | None:
        """Runs a command; what it returns is the exit status, and None is success."""
        ...


TOOLS: Final = {
    "topics": Tool("ottla.cli.topics.topics", "create, list, describe, alter and delete topics"),
    "console-producer": Tool("ottla.cli.console.console_producer", "send lines from standard input to a topic"),
    "console-consumer": Tool("ottla.cli.console.console_consumer", "print the records of topics"),
    "consumer-groups": Tool("ottla.cli.groups.consumer_groups", "list, describe, reset and delete consumer groups"),
    "configs": Tool("ottla.cli.configs.configs", "print and change settings, quotas and credentials"),
    "get-offsets": Tool("ottla.cli.topics.get_offsets", "print offsets of partitions"),
    "groups": Tool("ottla.cli.groups.groups", "list groups of all types"),
    "delete-records": Tool("ottla.cli.topics.delete_records", "delete the records before an offset"),
    "log-dirs": Tool("ottla.cli.topics.log_dirs", "print what is in the log directories of brokers"),
    "cluster": Tool("ottla.cli.cluster.cluster", "print the cluster's id and endpoints, unregister brokers"),
    "broker-api-versions": Tool("ottla.cli.cluster.broker_api_versions", "print which APIs the brokers serve"),
    "features": Tool("ottla.cli.cluster.features", "print and change the levels of features"),
    "metadata-quorum": Tool("ottla.cli.cluster.metadata_quorum", "describe and change the quorum of controllers"),
    "acls": Tool("ottla.cli.acls.acls", "list, add and remove access rules"),
    "delegation-tokens": Tool(
        "ottla.cli.tokens.delegation_tokens", "create, renew, expire and describe delegation tokens"
    ),
    "transactions": Tool("ottla.cli.transactions.transactions", "describe transactions, and end those that hang"),
    "leader-election": Tool("ottla.cli.topics.leader_election", "elect leaders of partitions"),
    "reassign-partitions": Tool(
        "ottla.cli.reassign.reassign_partitions", "move replicas to other brokers and directories"
    ),
    "producer-perf-test": Tool("ottla.cli.performance.producer_perf", "measure how fast records are sent"),
    "consumer-perf-test": Tool("ottla.cli.performance.consumer_perf", "measure how fast records are read"),
    "e2e-latency": Tool("ottla.cli.performance.e2e_latency", "measure how soon a record is read"),
    "verifiable-producer": Tool("ottla.cli.performance.verifiable_producer", "send numbers, and print JSON events"),
    "verifiable-consumer": Tool("ottla.cli.performance.verifiable_consumer", "read in a group, and print JSON events"),
    "replica-verification": Tool(
        "ottla.cli.performance.replica_verification", "compare what replicas of partitions have"
    ),
}
"""By the name after `kafka-`."""

OTHERS: Final = {
    "metadata-shell": "ottla.cli.metadata_shell.shell",
    "server-stop": "ottla.cli.server_stop",
    "storage": "ottla.cli.storage",
}
"""Modules of tools that are about a machine and need no broker."""

WORKERS: Final = {
    "connect-distributed": "ottla.cli.connect.connect_distributed",
    "connect-standalone": "ottla.cli.connect.connect_standalone",
}
"""Modules of Kafka Connect's commands, whose names begin with no `kafka-`."""


WITH_SCHEMAS: Final = tuple(
    f"{kind}-console-{which}" for kind in ("avro", "protobuf", "json-schema") for which in ("producer", "consumer")
)
"""Confluent's console tools, which are one module."""


def main(arguments: list[str] | None = None) -> int:
    """The entry point of every tool."""
    called_as = os.path.basename(sys.argv[0])
    name = called_as.removesuffix(".exe").removesuffix(".sh").removeprefix("kafka-")
    return run(name, sys.argv[1:] if arguments is None else arguments)


def run(name: str, arguments: list[str]) -> int:
    if name in WITH_SCHEMAS:
        return run_module("ottla.cli.console.schema_console", [name, *arguments])
    return run_module(TOOLS[name].module if name in TOOLS else {**OTHERS, **WORKERS}[name], arguments)


def run_module(module: str, arguments: list[str]) -> int:
    """Runs a command's `main`, and returns the exit status."""
    from ottla.cli.stopping import interrupts_between_steps  # late, as the command: `ottla --version` needs neither

    command = cast(Main, import_module(module).main)
    try:
        with interrupts_between_steps():
            status = command(arguments) or 0
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # The reader, `head` perhaps, has seen enough. Python flushes once more at exit, to where nobody minds.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
