"""`kafka-log-dirs`: what is in the log directories of brokers, as a line of JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ottla.cli.failures import Terse
from ottla.cli.java_names import java_text
from ottla.cli.options.checks import require, run_program
from ottla.cli.options.reading import Given
from ottla.cli.options.table import Option, Program
from ottla.cli.sessions import admin_of

if TYPE_CHECKING:
    from ottla.client.blocking.admin import Admin

PROGRAM: Final = Program(
    "kafka-log-dirs",
    "This tool prints what is in the log directories of brokers.",
    (
        Option(
            "bootstrap-server", "REQUIRED: Brokers to begin with.", "String", "The server(s) to use for bootstrapping"
        ),
        Option("command-config", "Properties file with settings of the admin.", "String", "Admin client property file"),
        Option("describe", "REQUIRED: Print what is in the directories."),
        Option("topic-list", 'Topics of interest, as "clicks,orders"; all if empty.', "String", "Topic list", ""),
        Option("broker-list", 'Brokers to ask, as "0,1,2"; all if empty.', "String", "Broker list", ""),
    ),
)


def main(arguments: list[str]) -> int:
    return run_program(PROGRAM, arguments, run)


def run(given: Given) -> int:
    require(given, "bootstrap-server", "describe")
    with admin_of(given) as admin:
        _describe(admin, given)
    return 0


def _describe(admin: Admin, given: Given) -> None:
    topics = [name for name in given.text("topic-list").split(",") if name]
    known = sorted(node.id for node in admin.describe_cluster().nodes)
    brokers = _brokers(given.text("broker-list")) or known
    if missing := [broker for broker in brokers if broker not in known]:
        raise Terse(
            f"ERROR: The given brokers do not exist from --broker-list: {_listed(missing)}. "
            f"Current existent brokers: {_listed(known)}"
        )
    print("Querying brokers for log directories information")
    described = admin.describe_log_dirs(brokers)
    print(f"Received log directory information from brokers {_listed(brokers)}")
    print(log_dirs_json(described.raise_first(), topics))


def _brokers(text: str) -> list[int]:
    found = []
    for word in filter(None, text.split(",")):
        try:
            found.append(int(word))
        except ValueError:
            raise Terse(f'For input string: "{word}"') from None
    return found


def _listed(brokers: list[int]) -> str:
    return ",".join(map(str, brokers))


def log_dirs_json(described: Any, topics: list[str]) -> str:
    """By broker and directory; only partitions of `topics`, unless there are none given."""
    import json

    brokers = []
    for broker, directories in described.items():
        log_dirs = []
        for path, directory in directories.items():
            partitions = [
                {
                    "partition": f"{partition.topic}-{partition.partition}",
                    "size": replica.size_bytes,
                    "offsetLag": replica.offset_lag,
                    "isFuture": replica.is_future,
                }
                for partition, replica in directory.replicas.items()
                if not topics or partition.topic in topics
            ]
            error = None if directory.error is None else java_text(directory.error)
            log_dirs.append({"partitions": partitions, "error": error, "logDir": path})
        brokers.append({"broker": broker, "logDirs": log_dirs})
    return json.dumps({"brokers": brokers, "version": 1}, separators=(",", ":"))
